"""What counts as many: dimensions and rows of data, beyond which other ways are taken."""

MANY_DIMENSIONS = 30
"""Above this a gradient fills the pool, if there is one, and Laplace's mixture is seldom accepted;
smaller steps, fewer of them, a larger pool and more patience."""

MANY_DATA = 100_000
"""Above this each evaluation is dear, and a posterior is all but Gaussian."""
