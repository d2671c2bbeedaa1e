"""A memory of weighted draws: what particles learned of the target on the way is not forgotten.

Beside each particle x_i one draw y_i ~ N(x_i, s² I) is made, so that together they come from

    q_t(y) = (1/M) Σ_i N(y; x_i, s² I),

the density of the cloud, smoothed. Of these draws, unlike of the particles, the density is known
exactly, and with w = p(y)/q_t(y) they stand for the target whatever the cloud looks like
(importance sampling). The draws of many steps are kept, the oldest are overwritten; how many exact
draws they are worth is

    n = (Σ w)² / Σ w².

Weights are cut at the share 1/√(number of draws) of all, so that a few draws do not decide
(Ionides, "Truncated importance sampling", 2008).

Where p is the density of all data, values stay true for ever. Values of minibatches do not, and
are not to be kept.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.movers.stein import map_rows, squared_distances
from salmc.target import Points

_PARTS = 4
_PART = 4096
"""The memory has so many parts of about so many draws. Each step looks at one part in turn: steps
average over parts, and cost no more where the memory is larger."""


class Memory(eqx.Module):
    """Draws in the target's coordinates with log(p/q); −inf where there is none as yet."""

    points: Points
    log_density: Float[Array, " n"]
    log_weights: Float[Array, " n"]

    @classmethod
    def empty(cls, particles: Points) -> "Memory":
        """Room for draws of many steps of these particles."""
        count, dim = particles.shape
        size = _PARTS * count * -(-_PART // count)
        # Places without weight still enter products, where NaN and far-off points would do harm.
        points = jnp.broadcast_to(jnp.mean(particles, axis=0), (size, dim))
        nothing = jnp.full(size, -jnp.inf, dtype=points.dtype)
        return cls(points, nothing, nothing)

    def with_draws(
        self,
        step: Int[Array, ""],
        points: Float[Array, "m dim"],
        log_density: Float[Array, " m"],
        log_proposal: Float[Array, " m"],
    ) -> "Memory":
        """The draws of a step in place of the oldest."""
        first = (step * len(points)) % len(self.points)
        log_density = jnp.where(jnp.isfinite(log_density), log_density, -jnp.inf)

        def updated(kept: Array, new: Array) -> Array:
            # Turned by a row at each step, so that no part has all its draws beside the same
            # particles: it would have too many of their modes.
            new = jnp.roll(new, step, axis=0)
            return jax.lax.dynamic_update_slice(kept, new, (first,) + (0,) * (new.ndim - 1))

        return Memory(
            updated(self.points, points),
            updated(self.log_density, log_density),
            updated(self.log_weights, log_density - log_proposal),
        )

    @property
    def weights(self) -> Float[Array, " n"]:
        """Weights that sum to 1, cut at about 1/√n; zeros while nothing has a density."""
        highest = jnp.max(self.log_weights)
        weights = jnp.exp(self.log_weights - jnp.where(jnp.isfinite(highest), highest, 0.0))
        weights = _shares(weights)
        return _shares(jnp.minimum(weights, len(weights) ** -0.5))

    @property
    def worth(self) -> Float[Array, ""]:
        """The number of exact draws that tell as much."""
        weights = self.weights
        return jnp.sum(weights) ** 2 / jnp.maximum(jnp.sum(weights**2), 1e-20)

    def part(self, step: Int[Array, ""]) -> tuple[Float[Array, "m dim"], Float[Array, " m"]]:
        """The draws of this step's part, which are of all ages, and their weights."""

        def chosen(array: Array) -> Array:
            parts = array.reshape(-1, _PARTS, *array.shape[1:])
            return jax.lax.dynamic_index_in_dim(parts, step % _PARTS, axis=1, keepdims=False)

        return chosen(self.points), _shares(chosen(self.weights))

    def resampled(self, key: PRNGKeyArray, count: int) -> Float[Array, "m dim"]:
        """Draws of equal weight, out of all."""
        return self.points[by_weight(key, self.weights, count)]

    def moments(self) -> tuple[Float[Array, " dim"], Float[Array, "dim dim"]]:
        """Mean, and a triangular factor of the covariance."""
        weights = self.weights
        mean = weights @ self.points
        centred = self.points - mean
        covariance = (weights[:, None] * centred).T @ centred
        unit = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), 1e-30))
        correlation = covariance / jnp.outer(unit, unit) + 1e-4 * jnp.eye(len(unit))
        return mean, unit[:, None] * jnp.linalg.cholesky(correlation)


def draws_beside(
    key: PRNGKeyArray, points: Points, variance: Float[Array, ""]
) -> tuple[Points, Float[Array, " n"]]:
    """One draw of N(x_i, variance · I) beside each point, and log q of all of them together."""
    count, dim = points.shape
    draws = points + jnp.sqrt(variance) * jax.random.normal(key, points.shape)

    def log_sums(rows: Array) -> Array:
        exponents = -0.5 * squared_distances(rows, points) / variance
        return jax.nn.logsumexp(exponents, axis=1, keepdims=True)

    normaliser = jnp.log(count) + 0.5 * dim * jnp.log(2.0 * jnp.pi * variance)
    return draws, map_rows(log_sums, (draws,), count)[:, 0] - normaliser


def by_weight(key: PRNGKeyArray, weights: Float[Array, " n"], count: int) -> Int[Array, " m"]:
    """Numbers of entries, each as often as it weighs on average."""
    cumulative = jnp.cumsum(weights)
    marks = jax.random.uniform(key, (count,)) * cumulative[-1]
    return jnp.searchsorted(cumulative, marks).clip(0, len(weights) - 1)


def _shares(weights: Float[Array, " n"]) -> Float[Array, " n"]:
    return weights / jnp.maximum(jnp.sum(weights), 1e-30)
