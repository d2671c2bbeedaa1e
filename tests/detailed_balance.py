"""How far draws are from detailed balance, and means from their truth, in standard errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc.target import AbstractTarget


def standard_errors_from(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """|mean − truth| in units of the standard error of the mean."""
    values = np.asarray(values, dtype=np.float64)
    error = values.std(axis=0) / np.sqrt(len(values))
    # A quantity that does not vary (the weight of a mode never visited) must be met exactly.
    return np.abs(values.mean(axis=0) - np.asarray(truth)) / np.maximum(error, 1e-12)


def imbalance(target: AbstractTarget, draws: jax.Array) -> float:
    """How far draws are from detailed balance under the density, in standard errors.

    For x ~ p and any symmetric displacement δ, independent of x, y = x + δ,

        E[(φ(x) − φ(y)) min(1, p(y)/p(x))] = 0

    for every function φ: the flow of probability from x to y equals that from y to x. It takes
    the density up to a constant only, and its terms are bounded where φ is. Displacements are
    differences of two other draws: whole ones lead from mode to mode, short ones are accepted in
    any dimension. The φ are bounded: each coordinate, its modulus, the log density.
    """
    flows = np.asarray(_flows(target, *jnp.split(draws, 3)), dtype=np.float64)
    return max(standard_errors_from(flow, np.zeros(())).max() for flow in flows)


@eqx.filter_jit
def _flows(
    target: AbstractTarget, points: jax.Array, others: jax.Array, more: jax.Array
) -> jax.Array:
    at_points = target.log_densities(points)
    centre, spread = jnp.median(at_points), jnp.std(at_points)

    def quantities(x: jax.Array, log_density: jax.Array) -> jax.Array:
        z = (x - jnp.mean(points, axis=0)) / jnp.std(points, axis=0)
        height = jnp.tanh((log_density - centre) / spread)[:, None]
        return jnp.concatenate([jnp.tanh(z), jnp.tanh(jnp.abs(z)), height], axis=1)

    def flow(share: jax.Array) -> jax.Array:
        moved = points + share * (others - more)
        at_moved = target.log_densities(moved)
        acceptance = jnp.exp(jnp.minimum(at_moved - at_points, 0.0))[:, None]
        return (quantities(points, at_points) - quantities(moved, at_moved)) * acceptance

    return jax.lax.map(flow, jnp.array([1.0, 0.5, 0.1]))
