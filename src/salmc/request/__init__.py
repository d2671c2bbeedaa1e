"""`salmc.sample`: ask for effective draws, and get them with as little work as they need.

`sample` searches, learns if that pays, and draws until there is enough; `worth` weighs a further
step of training against the draws that are still wanted.
"""
