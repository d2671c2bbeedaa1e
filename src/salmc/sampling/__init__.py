"""Sampling. Run movers and kernels, keep `Draws`, write and read them."""
