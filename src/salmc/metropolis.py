"""The Metropolis-Hastings rule, in one place for all who accept or reject.

A proposal x' from x is taken with probability

    min{1, p(x') r / p(x)},   r = q(x|x') / q(x'|x),

which leaves p invariant whatever q is. A symmetric proposal has r = 1; a map of volume 1 that moves
(x, v) has r = N(v')/N(v) (see `kernels.base`). A proposal that is not finite, or whose correction
is not, is rejected: the same pair of points is rejected in both directions, so this stays exact.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

Values = Float[Array, "*n"]
Points = Float[Array, "n dim"]

_STUCK, _STUCK_SHARE, _ENOUGH_TAKEN, _LOCAL_STEPS = 0.05, 0.005, 0.4, 1
"""A chain is stuck where it takes fewer proposals than that; of the pool so much may be so, and in
the mean so many proposals must be taken, for chains without local steps."""


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


def local_steps_needed(at_pool: np.ndarray, at_proposals: np.ndarray) -> int:
    """How many local steps follow each independent one.

    From x an independent proposal is taken with probability α(x) = E min{1, w(x')/w(x)}. None are
    needed where proposals are mostly taken, from nearly everywhere: local steps cost time.
    """
    usable = at_pool[np.isfinite(at_pool)]
    ordered = np.sort(at_proposals[at_proposals > -np.inf])
    if not len(ordered) or not len(usable):
        return 0
    # E min{1, w'/w}: those above w count 1, those below w'/w.
    below = np.searchsorted(ordered, usable)
    # Sums of logs, as the weights may lie further apart than numbers reach.
    sums = np.concatenate([[-np.inf], np.logaddexp.accumulate(ordered)])
    taken = (len(ordered) - below) + np.exp(np.minimum(sums[below] - usable, np.log(below + 1.0)))
    probability = np.clip(taken / len(at_proposals), 0.0, 1.0)
    stuck = float(np.mean(probability < _STUCK))
    enough = float(np.mean(probability)) > _ENOUGH_TAKEN and stuck < _STUCK_SHARE
    return 0 if enough else _LOCAL_STEPS
