"""After training: is the pool that the kernel learned from itself to be trusted?

A kernel is as good as its pool. Questions that chains of the kernel cannot answer:

* Did the warm-up see places as likely as the pool's own particles, but far from all of them? Then
  a mode was found and lost again.
* Is the pool further from the density than exact draws would be (kernel Stein discrepancy)? This
  is asked only where the kernel cannot be exact.
* Are there places in the pool that a kernel with a known density proposes far too rarely? Exact
  Metropolis chains reach them late and then stay for long: their spread is too small at first,
  and neither R-hat nor the acceptance shows it. Nor do they show tails of p/q so heavy that few
  proposals decide (Pareto's k̂).

What it finds is a doubt (`DOUBT`): draws that pass all tests of their own disprove it.

The last, whether draws go everywhere that the pool is, is asked of the draws (`missed_share`).

The same weights p/q tell whether chains of independent proposals need local steps between them
(`metropolis.local_steps_needed`).
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.ksd import ksd_squared
from salmc.diagnostics.verdict import DISCREPANCY_LIMIT, DOUBT
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.metropolis import local_steps_needed, normal
from salmc.programs import RUNTIME_ERRORS, compiled, failure, on_device
from salmc.sampling.sampler import Sampler
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

_RARE_SHARE_LOCAL = 0.05
"""The same where local steps take chains on from there."""

_HEAVY, _FEWEST_WEIGHTS = 0.7, 100
"""Pareto's k̂ above which means of p/q cannot be trusted, and weights that it takes to tell."""

_LEAST_LOST = 2
"""One stray point may be a fluke; two are a place."""


def review(sampler: Sampler, start: np.ndarray) -> Sampler:
    """The sampler with what is wrong with its pool, in words, and the local steps that it needs.

    Args:
        sampler: trained on its target.
        start: where the mover began.
    """
    assert sampler.target is not None
    local = 0
    try:
        found = _lost(sampler, sampler.target, start)
        if not sampler.kernel.exact:
            # Exact draws show their own discrepancy; a pool is only a means to them.
            found += _discrepancy(sampler, sampler.target)
        if sampler.kernel.tractable:
            weights = _pool_weights(sampler, sampler.target)
            local = local_steps_needed(*weights) if sampler.kernel.latent else 0
            found += _rarely_proposed(*weights, _RARE_SHARE_LOCAL if local else _RARE_SHARE)
            found += _light_tails(weights[1])
        # Of the pool, which is a means: draws that pass their own tests disprove it.
        found = tuple(f"{DOUBT}{told}" for told in found)
    except RUNTIME_ERRORS as error:
        # The kernel is trained, and worth more than this look at its pool.
        found = (f"The pool could not be checked, as the target failed: {failure(error)}",)
    return dataclasses.replace(sampler, warnings=(*sampler.warnings, *found), local=local)


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
    likely_pool = pool[:half][pool_values[:half] > np.quantile(pool_values, _LIKELY)]
    if not len(likely_pool):
        # Nowhere in the pool is likelier than elsewhere: there is no scale to tell far from near.
        return 0
    own = _nearest(likely_pool, pool[half:])
    return int(np.sum(_nearest(likely, pool) > _FAR * np.max(own)))


def _lost(sampler: Sampler, target: AbstractTarget, start: np.ndarray) -> tuple[str, ...]:
    generator = np.random.default_rng(0)
    pool, pool_values = inner_pool(sampler)
    chosen = _some(np.arange(len(pool)), 2 * _POINTS, generator)
    start = _some(start, 2 * _POINTS, generator)
    values = np.asarray(eqx.filter_jit(target.log_densities)(on_device(start)))
    white = sampler.whitening.whiten
    lost = lost_points(
        np.asarray(white(jnp.asarray(start))),
        values,
        np.asarray(white(jnp.asarray(pool[chosen]))),
        pool_values[chosen],
    )
    if lost < _LEAST_LOST:
        return ()
    return (
        f"The warm-up saw {lost} places as likely as where the pool is, but far from all of it: a "
        "mode was probably lost. Use a larger `pool_size`, or another mover.",
    )


def inner_pool(sampler: Sampler) -> tuple[np.ndarray, np.ndarray]:
    """The pool in the coordinates without bounds, and log p there."""
    pool, values = sampler.inward(sampler.pool), np.asarray(sampler.pool_log_density)
    if sampler.target is not None and sampler.target.outer is not sampler.target:
        _, less = sampler.target.outward(jnp.asarray(pool), jnp.zeros(len(pool)))
        values = values - np.asarray(less)
    return pool, values


def _discrepancy(sampler: Sampler, target: AbstractTarget) -> tuple[str, ...]:
    chosen = _some(np.arange(len(sampler.pool)), _POINTS, np.random.default_rng(1))
    pool, pool_values = inner_pool(sampler)
    points = np.asarray(pool[chosen], dtype=np.float64)
    if target.differentiable:
        scores = np.asarray(eqx.filter_jit(target.gradients)(on_device(points)))
        usable = np.all(np.isfinite(scores), axis=1)
        if np.sum(usable) < 4:
            return ()
        found = ksd_squared(points[usable], scores[usable].astype(np.float64))
    else:
        found = gradient_free_ksd_squared(points, np.asarray(pool_values, np.float64)[chosen])
    if found.value <= DISCREPANCY_LIMIT * found.floor:
        return ()
    return (
        f"The pool is {found.ratio:.1f} times as far from the density as exact draws: train "
        "longer, or use another mover.",
    )


def _pool_weights(sampler: Sampler, target: AbstractTarget) -> tuple[np.ndarray, np.ndarray]:
    """log p − log q at places of the pool, and at proposals."""
    pool = _some(sampler.inward(sampler.pool), 2 * _POINTS, np.random.default_rng(2))
    points = sampler.whitening.whiten(on_device(pool))
    found = _log_weights(sampler.kernel, target, sampler.whitening, points)
    return np.asarray(found[0], np.float64), np.asarray(found[1], np.float64)


def _rarely_proposed(at_pool: np.ndarray, at_proposals: np.ndarray, most: float) -> tuple[str, ...]:
    """Where p/q is large, an independence chain stays for about that many steps."""
    finite = at_proposals[np.isfinite(at_proposals)]
    if not len(finite):
        return ()
    mean = np.logaddexp.reduce(finite) - np.log(len(at_proposals))
    share = float(np.mean(at_pool - mean > np.log(_RARELY)))
    if share <= most:
        return ()
    return (
        f"The kernel proposes {100 * share:.1f} % of the pool's places {_RARELY:.0f} times too "
        "rarely: chains will stick there, and too few of them go there. Train longer, or use a "
        "larger kernel.",
    )


def _light_tails(at_proposals: np.ndarray) -> tuple[str, ...]:
    """Pareto's k̂ of p/q (Vehtari et al. 2024): acceptance hides that p has the heavier tails."""
    finite = at_proposals[np.isfinite(at_proposals)]
    if len(finite) < _FEWEST_WEIGHTS:
        return ()
    # A second to import, which a fit of seconds does not notice and `import salmc` would.
    from arviz_stats.base import array_stats

    shape = float(array_stats.psislw(-finite)[1])
    if not shape > _HEAVY:
        return ()
    return (
        f"The density has heavier tails than the kernel proposes (Pareto k̂ = {shape:.2f}, above "
        f"{_HEAVY}): chains reach them late. Train longer, or use a larger kernel.",
    )


@compiled
def _log_weights(
    kernel: AbstractKernel, target: AbstractTarget, whitening: Whitening, points: Points
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """log p − log q at the points, and at one proposal from each."""
    noise = normal(jax.random.key(0), (len(points), kernel.noise_dim))
    new, log_q = kernel.propose_with_density(points, noise)
    log_p = target.log_densities(whitening.colour(new))
    at_points = target.log_densities(whitening.colour(points)) - kernel.log_densities(
        points, points
    )
    return at_points, log_p - log_q


def _some(rows: np.ndarray, most: int, generator: np.random.Generator) -> np.ndarray:
    """At most so many rows, in their order."""
    if len(rows) <= most:
        return rows
    return rows[np.sort(generator.choice(len(rows), most, replace=False))]


def _nearest(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(others**2, axis=1)[None, :]
    return np.sqrt(np.maximum(np.min(squares - 2.0 * points @ others.T, axis=1), 0.0))
