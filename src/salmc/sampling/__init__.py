"""Stage 5: sampling. Run movers and kernels, keep `Draws`, write and read them."""
