"""After training: is the pool that the kernel learned from itself to be trusted?

A kernel is as good as its pool. Three questions that chains of the kernel cannot answer:

* Did the warm-up see places as likely as the pool's own particles, but far from all of them? Then
  a mode was found and lost again.
* Is the pool further from the density than exact draws would be (kernel Stein discrepancy)?
* Are there places in the pool that a kernel with a known density proposes far too rarely? Exact
  Metropolis chains reach them late and then stay for long: their spread is too small at first,
  and neither R-hat nor the acceptance shows it.

The last, whether draws go everywhere that the pool is, is asked of the draws (`missed_share`).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.compiled import RUNTIME_ERRORS, failure
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.ksd import ksd_squared
from salmc.diagnostics.point_sets import subset
from salmc.diagnostics.verdict import DISCREPANCY_LIMIT
from salmc.kernels.base import AbstractTractableKernel
from salmc.kernels.whitening import Whitening
from salmc.learning.learned import Learned
from salmc.target import AbstractTarget, Points

_POINTS = 1000
_LIKELY = 0.05
"""Places count as likely above this quantile of the pool's own log density."""

_FAR = 3.0
"""Times the largest distance that a likely particle of the pool keeps to the others."""

_RARELY = 30.0
"""A place is proposed rarely if p/q there is so many times its mean over proposals."""

_RARE_SHARE = 0.01
"""Of the pool, that may lie in such places."""

_LEAST_LOST = 2
"""One stray point may be a fluke; two are a place."""


def review(learned: Learned) -> tuple[str, ...]:
    """What is wrong with the pool, in words; nothing if nothing is."""
    if learned.target is None:
        return ()
    try:
        found = (*_lost(learned, learned.target), *_discrepancy(learned, learned.target))
    except RUNTIME_ERRORS as error:
        # The kernel is trained, and worth more than this look at its pool.
        found = (f"The pool could not be checked, as the target failed: {failure(error)}",)
    return (*found, *_rarely_proposed(learned))


def lost_points(
    seen: np.ndarray, seen_values: np.ndarray, pool: np.ndarray, pool_values: np.ndarray
) -> int:
    """How many seen points are as likely as the pool's and yet far from all of it.

    All arguments are in whitened coordinates, where a unit is a unit everywhere.
    """
    likely = seen[seen_values > np.quantile(pool_values, _LIKELY)]
    if not len(likely):
        return 0
    half = len(pool) // 2
    own = _nearest(pool[:half][pool_values[:half] > np.quantile(pool_values, _LIKELY)], pool[half:])
    return int(np.sum(_nearest(likely, pool) > _FAR * np.max(own)))


def _lost(learned: Learned, target: AbstractTarget) -> tuple[str, ...]:
    generator = np.random.default_rng(0)
    chosen = subset(len(learned.pool), 2 * _POINTS, generator)
    start = learned.start[subset(len(learned.start), 2 * _POINTS, generator)]
    values = np.asarray(eqx.filter_jit(target.log_densities)(jnp.asarray(start, dtype=float)))
    white = learned.whitening.whiten
    lost = lost_points(
        np.asarray(white(jnp.asarray(start))),
        values,
        np.asarray(white(jnp.asarray(learned.pool[chosen]))),
        learned.log_density[chosen],
    )
    if lost < _LEAST_LOST:
        return ()
    return (
        f"The warm-up saw {lost} places as likely as where the pool is, but far from all of it: a "
        "mode was probably lost. Use a larger `pool_size`, or another mover.",
    )


def _discrepancy(learned: Learned, target: AbstractTarget) -> tuple[str, ...]:
    chosen = subset(len(learned.pool), _POINTS, np.random.default_rng(1))
    points = np.asarray(learned.pool[chosen], dtype=np.float64)
    if target.differentiable:
        scores = np.asarray(eqx.filter_jit(target.gradients)(jnp.asarray(points, dtype=float)))
        usable = np.all(np.isfinite(scores), axis=1)
        if np.sum(usable) < 4:
            return ()
        found = ksd_squared(points[usable], scores[usable].astype(np.float64))
    else:
        found = gradient_free_ksd_squared(points, learned.log_density[chosen].astype(np.float64))
    if found.value <= DISCREPANCY_LIMIT * found.floor:
        return ()
    return (
        f"The pool is {found.ratio:.1f} times as far from the density as exact draws: train "
        "longer, or use another mover.",
    )


def _rarely_proposed(learned: Learned) -> tuple[str, ...]:
    """Where p/q is large, an independence chain stays for about that many steps."""
    kernel = learned.kernel
    if not isinstance(kernel, AbstractTractableKernel) or learned.target is None:
        return ()
    generator = np.random.default_rng(2)
    pool = learned.pool[subset(len(learned.pool), 2 * _POINTS, generator)]
    points = learned.whitening.whiten(jnp.asarray(pool, dtype=float))
    at_pool, at_proposals = _log_weights(kernel, learned.target, learned.whitening, points)
    finite = at_proposals[np.isfinite(at_proposals)]
    if not len(finite):
        return ()
    mean = np.logaddexp.reduce(finite) - np.log(len(at_proposals))
    share = float(np.mean(at_pool - mean > np.log(_RARELY)))
    if share <= _RARE_SHARE:
        return ()
    return (
        f"The kernel proposes {100 * share:.1f} % of the pool's places {_RARELY:.0f} times too "
        "rarely: chains will stick there, and too few of them go there. Train longer, or use a "
        "larger kernel.",
    )


@eqx.filter_jit
def _log_weights(
    kernel: AbstractTractableKernel, target: AbstractTarget, whitening: Whitening, points: Points
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """log p − log q at the points, and at one proposal from each."""
    new, log_q = kernel.propose_with_log_density(jax.random.key(0), points)
    log_p = target.log_densities(whitening.colour(new))
    at_points = target.log_densities(whitening.colour(points)) - kernel.log_densities(
        points, points
    )
    return at_points, log_p - log_q


def _nearest(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(others**2, axis=1)[None, :]
    return np.sqrt(np.maximum(np.min(squares - 2.0 * points @ others.T, axis=1), 0.0))
