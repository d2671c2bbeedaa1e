"""A file for each peer, with `run(problem)`: as its documentation shows it, with its defaults.

Chains begin where Stan's do, uniform on (−2, 2); samplers that need a prior have the target's
reference. Nobody is told more of the target than that, nor of its truth.
"""
