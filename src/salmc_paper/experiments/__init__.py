"""One file for each table or figure of the paper, and the jobs that several of them share.

training     train a kernel        chains       run it, or a mover, and judge the draws
regressions  NUTS, test accuracy   races        samplers that take turns, for their speed
rows         the samplers of both tables
six_modes    chains on Mog6        image_jobs   chains over images
"""
