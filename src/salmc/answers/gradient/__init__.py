"""Chains that follow the gradient.

answer       the way in: a sampler, or None where chains do not agree
chains       step size, length and coordinates, found from the chains themselves
walk         a block of steps of many chains
coordinates  funnels made straight by the density's derivatives
"""
