"""The mixture move: each half of the pool moves by a Gaussian mixture fitted to the other half.

Independence Metropolis with a proposal that is learned from particles that stand still meanwhile.
Where the mixture fits, particles go from any mode to any other, so that the weights of the modes
come right. Points are whitened; only values of log p are used.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.metropolis import acceptance, log_ratio, taken
from salmc.target import Points, Scalar

Values = Float[Array, " n"]
LogDensity = Callable[[Points], Values]

_MIXTURE_ROUNDS = 25
_MIXTURE_REPEATS = 4
_PRIOR_VARIANCE = 0.3
"""Components are pulled toward this variance, by as many pseudo-points as there are dimensions."""


class Mixture(NamedTuple):
    """Gaussians with weights."""

    weights: Float[Array, " k"]
    means: Float[Array, "k dim"]
    covariances: Float[Array, "k dim dim"]


def mixture_move(
    key: PRNGKeyArray, pool: Points, values: Values, log_density: LogDensity, components: int
) -> tuple[Points, Values, Scalar]:
    """Each half moves some times; the particles change places.

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
            new_values = log_density(new)
            finite = jnp.all(jnp.isfinite(new), axis=1)
            ratio = log_ratio(new_values, values, log_proposals - log_proposal, finite)
            moves = taken(jnp.log1p(-jax.random.uniform(accept_key, ratio.shape)), ratio)
            carry = (
                jnp.where(moves[:, None], new, points),
                jnp.where(moves, new_values, values),
                jnp.where(moves, log_proposal, log_proposals),
            )
            return carry, jnp.mean(acceptance(ratio))

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
