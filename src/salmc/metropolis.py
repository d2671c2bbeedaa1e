"""The Metropolis-Hastings rule, in one place for all who accept or reject.

A proposal x' from x is taken with probability

    min{1, p(x') r / p(x)},   r = q(x|x') / q(x'|x),

which leaves p invariant whatever q is. A symmetric proposal has r = 1; a map of volume 1 that moves
(x, v) has r = N(v')/N(v) (see `kernels.base`). A proposal that is not finite, or whose correction
is not, is rejected: the same pair of points is rejected in both directions, so this stays exact.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

Values = Float[Array, "*n"]
Points = Float[Array, "n dim"]


def log_ratio(
    new_log_density: Values,
    old_log_density: Values,
    log_correction: Values | float = 0.0,
    finite: Bool[Array, "*n"] | bool = True,
) -> Values:
    """log of p(x') r / p(x); −inf for what must not be taken.

    Args:
        new_log_density, old_log_density: log p(x') and log p(x).
        log_correction: log r; +inf or NaN where it is not defined.
        finite: whether x' is.
    """
    gain = new_log_density - old_log_density + log_correction
    # From zero density (−inf − (−inf) is NaN) any proposal of positive density is taken.
    gain = jnp.where(old_log_density > -jnp.inf, gain, jnp.inf)
    defined = jnp.asarray(log_correction < jnp.inf) & (new_log_density > -jnp.inf)
    return jnp.where(defined & finite & ~jnp.isnan(gain), gain, -jnp.inf)


def acceptance(log_ratio: Values) -> Values:
    """min{1, ratio}."""
    return jnp.exp(jnp.minimum(log_ratio, 0.0))


def taken(log_uniform: Values, log_ratio: Values) -> Bool[Array, "*n"]:
    """Whether to take each proposal, given log U of uniform numbers U in (0, 1]."""
    return log_uniform <= log_ratio


def mean_jump(probability: Float[Array, " n"], old: Points, new: Points) -> Float[Array, ""]:
    """E[α min{|x' − x|², 2d}] / 2d, in whitened coordinates.

    Args:
        probability: α, with which each proposal is taken; 0 where it is not finite.
        old, new: x and x'.
    """
    longest = 2.0 * old.shape[1]
    squares = jnp.minimum(jnp.sum((new - old) ** 2, axis=1), longest)
    return jnp.mean(jnp.where(probability > 0.0, probability * squares, 0.0)) / longest
