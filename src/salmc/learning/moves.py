"""Exact moves of the pool: each leaves the target invariant, whatever the pool is.

    evolve_slice    a slice moves by differences of particles outside it (differential evolution)
    kernel_move     a slice moves by the kernel itself, with Metropolis-Hastings
    mixture_move    each half moves by a Gaussian mixture fitted to the other half

A proposal may be learned from particles that stand still meanwhile, never from the one that it
moves: so the pool forgets the bias of the mover that filled it, and does not run dry of fresh
particles. Points are whitened; only values of log p are used.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from salmc.kernels.base import AbstractTractableKernel, AbstractVolumePreservingKernel
from salmc.movers.evolution import evolution_move
from salmc.target import Points, Scalar

Values = Float[Array, " n"]
LogDensity = Callable[[Points], Values]

_MIXTURE_ROUNDS = 25
_MIXTURE_REPEATS = 4
_PRIOR_VARIANCE = 0.3
"""Components are pulled toward this variance, by as many pseudo-points as there are dimensions."""


def evolve_slice(
    key: PRNGKeyArray,
    points: Points,
    values: Values,
    pool: Float[Array, "m dim"],
    first: Int[Array, ""],
    log_density: LogDensity,
) -> tuple[Points, Values, Bool[Array, " n"]]:
    """One differential-evolution step of `points`, which sit in the pool from row `first` on."""
    count = len(points)
    choose_key, move_key = jax.random.split(key)
    away = jax.random.randint(choose_key, (count,), 0, len(pool) - count)
    others = pool[(first + count + away) % len(pool)]
    return evolution_move(move_key, points, values, others, log_density)


class Proposals(NamedTuple):
    """What the kernel proposes from some points."""

    points: Points
    log_proposal: Values
    """log q(x'|x); for a volume-preserving kernel log N(v) − log N(v'), with 0 for the way back."""
    log_density: Values


def kernel_move(
    key: PRNGKeyArray,
    points: Points,
    values: Values,
    proposals: Proposals,
    log_backward: Values,
    share: float | Scalar = 1.0,
) -> tuple[Points, Values, Values]:
    """Take proposals with probability min{1, p(x') q(x|x') / (p(x) q(x'|x))}.

    Args:
        key: of the decisions.
        points, values: where the particles are, and log p there.
        proposals: of the kernel from these points.
        log_backward: log q(x|x').
        share: of the particles that may move.

    Returns:
        Points, their log p, and the probability with which each proposal was to be taken.
    """
    accept_key, share_key = jax.random.split(key)
    gain = proposals.log_density - proposals.log_proposal - (values - log_backward)
    # From zero density (−inf − (−inf) is NaN) any proposal of positive density is taken.
    gain = jnp.where(values > -jnp.inf, gain, jnp.inf)
    usable = (
        (proposals.log_density > -jnp.inf)
        & jnp.isfinite(proposals.log_proposal)
        & (log_backward < jnp.inf)
        & jnp.all(jnp.isfinite(proposals.points), axis=1)
    )
    probability = jnp.where(usable & ~jnp.isnan(gain), jnp.exp(jnp.minimum(gain, 0.0)), 0.0)
    taken = jax.random.uniform(accept_key, gain.shape) < probability
    taken &= jax.random.uniform(share_key, gain.shape) < share
    return (
        jnp.where(taken[:, None], proposals.points, points),
        jnp.where(taken, proposals.log_density, values),
        probability,
    )


def propose(
    kernel: AbstractTractableKernel | AbstractVolumePreservingKernel,
    key: PRNGKeyArray,
    points: Points,
    log_density: LogDensity,
) -> Proposals:
    """Proposals of the kernel with log q and log p."""
    if isinstance(kernel, AbstractVolumePreservingKernel):
        new, correction = kernel.propose_with_correction(key, points)
        return Proposals(new, -correction, log_density(new))
    new, log_proposal = kernel.propose_with_log_density(key, points)
    return Proposals(new, log_proposal, log_density(new))


class Mixture(NamedTuple):
    """Gaussians with weights."""

    weights: Float[Array, " k"]
    means: Float[Array, "k dim"]
    covariances: Float[Array, "k dim dim"]


def mixture_move(
    key: PRNGKeyArray, pool: Points, values: Values, log_density: LogDensity, components: int
) -> tuple[Points, Values, Scalar]:
    """Independence Metropolis of each half with a mixture fitted to the other half.

    Where the mixture fits, particles go from any mode to any other, so that the weights of the
    modes come right. The particles change places.

    Returns:
        The pool, its log p, and the share of proposals that was accepted.
    """
    half = len(pool) // 2

    def move_half(
        carry: tuple[Points, Values], half_key: PRNGKeyArray
    ) -> tuple[tuple[Points, Values], Scalar]:
        points, values = carry
        fit_key, move_key = jax.random.split(half_key)
        mixture = fit_mixture(fit_key, points[half:], components)
        factors = jnp.linalg.cholesky(mixture.covariances)

        def move(
            carry: tuple[Points, Values, Values], key: PRNGKeyArray
        ) -> tuple[tuple[Points, Values, Values], Scalar]:
            points, values, log_proposals = carry
            component_key, noise_key, accept_key = jax.random.split(key, 3)
            which = jax.random.categorical(
                component_key, jnp.log(mixture.weights), shape=(len(points),)
            )
            noise = jax.random.normal(noise_key, points.shape)
            new = mixture.means[which] + jnp.einsum("nij,nj->ni", factors[which], noise)
            log_proposal = mixture_log_density(mixture, new)
            proposals = Proposals(new, log_proposal, log_density(new))
            moved, moved_values, probability = kernel_move(
                accept_key, points, values, proposals, log_proposals
            )
            taken = jnp.any(moved != points, axis=1)
            log_proposals = jnp.where(taken, log_proposal, log_proposals)
            return (moved, moved_values, log_proposals), jnp.mean(probability)

        start = (points[:half], values[:half], mixture_log_density(mixture, points[:half]))
        keys = jax.random.split(move_key, _MIXTURE_REPEATS)
        (moved, moved_values, _), accepted = jax.lax.scan(move, start, keys)
        swapped = jnp.concatenate([points[half:], moved])
        return (swapped, jnp.concatenate([values[half:], moved_values])), jnp.mean(accepted)

    keys = jax.random.split(key, 2)
    (pool, values), accepted = jax.lax.scan(move_half, (pool, values), keys)
    # Dealt to both halves, so that the next fit sees others; a random order would cost a sort.
    order = np.concatenate([np.arange(0, len(pool), 2), np.arange(1, len(pool), 2)])
    return pool[order], values[order], jnp.mean(accepted)


def fit_mixture(key: PRNGKeyArray, points: Points, components: int) -> Mixture:
    """Expectation maximisation from random points; covariances shrunk, so never singular."""
    count, dim = points.shape
    prior = _PRIOR_VARIANCE * dim * jnp.eye(dim)

    def iterate(_: Array, mixture: Mixture) -> Mixture:
        shares = jax.nn.softmax(_component_log_densities(mixture, points), axis=0)
        totals = jnp.sum(shares, axis=1) + 1e-3
        means = (shares @ points) / totals[:, None]

        def scatter(share: Array, mean: Array) -> Array:
            centred = points - mean
            return centred.T @ (share[:, None] * centred)

        covariances = (jax.vmap(scatter)(shares, means) + prior) / (totals + dim)[:, None, None]
        return Mixture(totals / jnp.sum(totals), means, covariances + 1e-5 * jnp.eye(dim))

    # Evenly spaced from a random row on: all different, and no sorting.
    first = jax.random.randint(key, (), 0, count)
    chosen = (first + jnp.arange(components) * (count // components)) % count
    start = Mixture(
        jnp.full(components, 1.0 / components),
        points[chosen],
        jnp.broadcast_to(0.2 * jnp.eye(dim), (components, dim, dim)),
    )
    return jax.lax.fori_loop(0, _MIXTURE_ROUNDS, iterate, start)


def mixture_log_density(mixture: Mixture, points: Points) -> Values:
    """log q at n points, up to the constant −(d/2) log 2π."""
    return jax.nn.logsumexp(_component_log_densities(mixture, points), axis=0)


def _component_log_densities(mixture: Mixture, points: Points) -> Float[Array, "k n"]:
    factors = jnp.linalg.cholesky(mixture.covariances)

    def squares(factor: Array, mean: Array) -> Array:
        return jnp.sum(solve_triangular(factor, (points - mean).T, lower=True) ** 2, axis=0)

    log_widths = jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)), axis=1)
    constants = jnp.log(mixture.weights) - log_widths
    return constants[:, None] - 0.5 * jax.vmap(squares)(factors, mixture.means)
