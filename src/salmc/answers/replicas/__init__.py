"""Chains with replicas at temperatures between a Gaussian and the target.

answer           the way in: a sampler, or None where replicas do not mix
annealing        particles that are annealed, and what moved them on the way
chains           temperatures, steps and lengths, found from the replicas themselves
symmetry_search  maps that take modes into each other: chains go from each place to its images
"""
