"""Adjusting particles: the line x_t ← AG-SVGD(x̃_{t−1}) of Algorithm 1, over a pool that persists.

    exact     a slice of the pool takes a Metropolis step by differential evolution
    mover     the mover, such as AG-SVGD, takes one step with the whole pool
    samples   without a target the pool stays as it is, and random rows of it are the real samples

Before that, the share `refresh` of the slice is replaced by the kernel's own last outputs x̃_{t−1};
with 1 nothing else is ever adjusted, which is the paper's scheme.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.learning.moves import evolve_slice
from salmc.learning.settings import LearningSettings
from salmc.learning.state import Problem, TrainingState
from salmc.target import Points, Scalar


class Adjusted(NamedTuple):
    """A slice of the pool after its move."""

    state: TrainingState
    first: Int[Array, ""]
    real: Points
    log_density: Float[Array, " n"]
    acceptance: Scalar


def adjust_particles(
    problem: Problem, settings: LearningSettings, state: TrainingState, key: PRNGKeyArray
) -> Adjusted:
    """x_t: the step's real samples. The line "AG-SVGD(x̃_{t−1})" of Algorithm 1."""
    refresh_key, move_key = jax.random.split(key)
    size, count = len(state.pool), settings.batch
    if problem.target is None:
        # Given samples stay as they are, and may be of any number.
        rows = jax.random.randint(move_key, (count,), 0, size)
        zero = jnp.zeros((), dtype=int)
        return Adjusted(state, zero, state.pool[rows], state.log_density[rows], jnp.zeros(()))

    first = (state.step * count) % size
    points = jax.lax.dynamic_slice_in_dim(state.pool, first, count)
    values = jax.lax.dynamic_slice_in_dim(state.log_density, first, count)
    if settings.refresh > 0.0 and not settings.exact_refresh:
        share = refresh_share(settings, state)
        fresh = jax.random.uniform(refresh_key, (count,)) < share
        points = jnp.where(fresh[:, None], state.inputs, points)
        values = jnp.where(fresh, problem.log_density(state.inputs), values)
    if problem.mover is not None:
        return _move_all(problem, state, points, values, first, move_key)
    points, values, accepted = evolve_slice(
        move_key, points, values, state.pool, first, problem.log_density
    )
    state = write_slice(state, points, values, first)
    return Adjusted(state, first, points, values, jnp.mean(accepted))


def _move_all(
    problem: Problem,
    state: TrainingState,
    points: Points,
    values: Float[Array, " n"],
    first: Int[Array, ""],
    key: PRNGKeyArray,
) -> Adjusted:
    """The mover advances the whole pool one step; particles it would lose stay where they were."""
    assert problem.mover is not None
    state = write_slice(state, points, values, first)
    before = problem.whitening.colour(state.pool)
    mover_state: Any = eqx.tree_at(lambda state: state.particles, state.mover, before)
    if getattr(mover_state, "log_density", None) is not None:
        mover_state = eqx.tree_at(lambda state: state.log_density, mover_state, state.log_density)
    moved, _ = problem.mover.step(key, mover_state)
    finite = jnp.all(jnp.isfinite(moved.particles), axis=1, keepdims=True)
    pool = problem.whitening.whiten(jnp.where(finite, moved.particles, before))
    real = jax.lax.dynamic_slice_in_dim(pool, first, len(points))
    values = problem.log_density(pool)
    state = dataclasses.replace(state, pool=pool, log_density=values, mover=moved)
    values = jax.lax.dynamic_slice_in_dim(values, first, len(points))
    return Adjusted(state, first, real, values, jnp.zeros(()))


def write_slice(
    state: TrainingState, points: Points, values: Float[Array, " n"], first: Int[Array, ""]
) -> TrainingState:
    """Put a slice back into the pool, from row `first` on."""
    pool = jax.lax.dynamic_update_slice_in_dim(state.pool, points, first, axis=0)
    log_density = jax.lax.dynamic_update_slice_in_dim(state.log_density, values, first, axis=0)
    return dataclasses.replace(state, pool=pool, log_density=log_density)


def refresh_share(settings: LearningSettings, state: TrainingState) -> Scalar | float:
    """`refresh` at a step: constant, or falling linearly to 0 by `refresh_end`."""
    if not settings.refresh_end:
        return settings.refresh
    remaining = 1.0 - state.step / (settings.refresh_end * state.steps)
    return settings.refresh * jnp.clip(remaining, 0.0, 1.0)
