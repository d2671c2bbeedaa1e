"""A mixture that adapts to the target by importance sampling, in few evaluations.

answer          the way in: a sampler, or why no mixture fits
beginning       Gaussians at some scales, Laplace's at modes (`laplace`), the support's (`support`)
adaptation      rounds of drawing, weighing and fitting
weighted_draws  draws of all rounds, each weighed by p/q̄
fitting         expectation-maximisation on weighted points
density         the mixture's density, on the host
evaluator       log p on the host, counted and within a budget
host_moves      exact local moves that put the mixture to the test
effort          how much may be spent, by what the density costs
binding         the mixture as the kernel of a sampler
"""
