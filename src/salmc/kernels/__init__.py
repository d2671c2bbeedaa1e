"""Stage 3: kernels, learned Markov transitions x' = G(x, ξ). One file each.

`base` has the contract.
"""
