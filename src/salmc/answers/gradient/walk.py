"""A block of steps of many chains along the gradient, as one program that any step size shares."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.kernels.layers import Whitening
from salmc.metropolis import acceptance, log_ratio, taken
from salmc.programs import compiled
from salmc.sampling.trajectories import Trajectory, follow
from salmc.target import AbstractTarget, Points

BLOCK = 16
_DIVERGED = -50.0
"""Of a log ratio: a trajectory whose energy is off by so much has left what it can follow."""

_RISING = 0.5
"""√dim, by which log p rises on the way to a target: there it scatters by √(dim / 2)."""

_FAR_BELOW = 8.0
"""Quartiles of log p, below which a chain is still on its way."""

_ROUND = 3.0
"""Variances of white coordinates, either way, at which they are white enough."""


class Walk(NamedTuple):
    """Steps of chains, in white coordinates; of a program JAX's arrays, of rounds NumPy's."""

    points: Any
    """(step, chain, dim)."""
    log_density: Any
    accepted: Any
    """Probabilities."""
    diverged: Any


@compiled
def walk_block(
    target: AbstractTarget,
    whitening: Whitening,
    trajectory: Trajectory,
    key: PRNGKeyArray,
    points: Points,
) -> Walk:
    """`BLOCK` steps of all chains."""

    def values_at(points: Points) -> Float[Array, " n"]:
        return target.log_densities(whitening.colour(points))

    def step(state: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Walk]:
        points, values = state
        keys = jax.random.split(key, 4)
        momentum = jax.random.normal(keys[0], points.shape)
        share = jax.random.uniform(keys[1], values.shape)
        ends = follow(values_at, trajectory, points, momentum, share)
        finite = jnp.all(jnp.isfinite(ends.points), axis=1)
        ratio = log_ratio(ends.log_density, values, ends.log_correction, finite)
        moves = taken(jnp.log1p(-jax.random.uniform(keys[2], values.shape)), ratio)
        points = jnp.where(moves[:, None], ends.points, points)
        values = jnp.where(moves, ends.log_density, values)
        if trajectory.symmetries is not None:
            uniform = jax.random.uniform(keys[3], (2, len(values)))
            others = trajectory.symmetries(points, uniform[0])
            at_others = values_at(others)
            both_finite = jnp.all(jnp.isfinite(others), axis=1)
            jumps = taken(jnp.log1p(-uniform[1]), log_ratio(at_others, values, 0.0, both_finite))
            points = jnp.where(jumps[:, None], others, points)
            values = jnp.where(jumps, at_others, values)
        return (points, values), Walk(points, values, acceptance(ratio), ratio < _DIVERGED)

    state = points, values_at(points)
    return jax.lax.scan(step, state, jax.random.split(key, BLOCK))[1]


def is_rising(values: np.ndarray, dim: int) -> bool:
    """Whether log p, (steps, chains), is higher at the end than before, beyond its own scatter."""
    half = len(values) // 2
    with np.errstate(invalid="ignore"):
        rise = np.nanmedian(values[half:]) - np.nanmedian(values[:half])
    return bool(rise > _RISING * np.sqrt(dim))


def is_white(points: np.ndarray) -> bool:
    """Whether variances of points are 1, or nearly, in all directions."""
    flat = points.reshape(-1, points.shape[-1]).astype(np.float64)
    variances = np.linalg.eigvalsh(np.atleast_2d(np.cov(flat, rowvar=False)))
    return bool(variances[0] > 1.0 / _ROUND and variances[-1] < _ROUND)


def not_lost(values: np.ndarray) -> np.ndarray:
    """Draws whose density is that of others: chains that are still far away tell nothing."""
    positive = values > -np.inf
    if not np.any(positive):
        return positive
    median, low = np.quantile(values[positive], [0.5, 0.25])
    return values > median - _FAR_BELOW * (median - low) - 1.0
