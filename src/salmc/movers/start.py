"""Where movers start when nobody says: a Gaussian of the target's own location and scale.

`find_location` repeats the round that `cover` describes until the Gaussian fits. It is quick, from
values of log p alone, and it chooses: with two modes it may walk into one. `find_support` is for
densities that are zero wherever one looks first.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.metropolis import log_ratio, taken
from salmc.movers.base import log_densities
from salmc.movers.cover import (
    FIRST_SCALES,
    MOST_ROUNDS,
    NEAR_ENOUGH,
    Location,
    adapt,
    first_location,
)
from salmc.programs import compiled, on_device
from salmc.target import AbstractTarget, Points

_OVERDISPERSION = 1.25
"""Particles start a little wider than what was found: coming in is easier than going out."""

_SCALES = (1 / 4, 1.0, 4.0)
_SETTLED = 0.15
"""The search ends when a round moved no mean by more than this share of an sd, and neither a log sd
nor log β by more than this."""

_WALK = 50
"""Steps of the walk in each coordinate."""


def find_start(target: AbstractTarget, key: PRNGKeyArray, count: int) -> Points:
    """`count` particles that cover the target, found from values of its density alone."""
    search_key, draw_key = jax.random.split(key)
    return find_location(target, search_key).sample(draw_key, count, _OVERDISPERSION)


@compiled
def find_location(target: AbstractTarget, key: PRNGKeyArray) -> Location:
    """A Gaussian of the target's own location and scale."""
    first_key, loop_key = jax.random.split(key)
    first, log_beta, _ = adapt(target, first_location(target), first_key, FIRST_SCALES)

    def unsettled(carry: tuple[Array, Location, Array, Array]) -> Array:
        round_number, _, _, moved = carry
        return (round_number < MOST_ROUNDS) & (moved > _SETTLED)

    def body(
        carry: tuple[Array, Location, Array, Array],
    ) -> tuple[Array, Location, Array, Array]:
        round_number, location, before, _ = carry
        round_key = jax.random.fold_in(loop_key, round_number)
        location, log_beta, moved = adapt(target, location, round_key, _SCALES)
        moved = jnp.maximum(moved, jnp.abs(log_beta - before))
        moved = jnp.where(log_beta < jnp.log(NEAR_ENOUGH), jnp.inf, moved)
        return round_number + 1, location, log_beta, moved

    carry = (jnp.zeros((), dtype=int), first, log_beta, jnp.array(jnp.inf))
    return jax.lax.while_loop(unsettled, body, carry)[1]


def find_support(target: AbstractTarget, key: PRNGKeyArray, count: int) -> Points | None:
    """Points of positive density where N(0, 2.5 I) has found none; None if there are none to find.

    First points whose coordinates are all alike, of many magnitudes and both signs, for a box or a
    half space has such points as a rule; then walks from there, which spread over the support.
    """
    magnitudes = np.outer(10.0 ** np.arange(-6.0, 7.0), [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 5.0, 7.0])
    levels = np.concatenate([[0.0], magnitudes.ravel(), -magnitudes.ravel()])
    points = on_device(np.tile(levels[:, None], target.dim))
    values = np.asarray(log_densities(target, points))
    found = np.flatnonzero(values > -np.inf)
    if not len(found):
        return None
    rows = np.resize(found, count)
    return _walk(target, key, points[rows], jnp.asarray(values[rows]))


@compiled
def _walk(
    target: AbstractTarget, key: PRNGKeyArray, points: Points, values: Float[Array, " n"]
) -> Points:
    """Metropolis steps of one coordinate at a time, of lengths over many magnitudes."""
    count, dim = points.shape

    def step(i: Array, carry: tuple[Points, Array]) -> tuple[Points, Array]:
        points, values = carry
        keys = jax.random.split(jax.random.fold_in(key, i), 3)
        length, sign, threshold = jax.random.uniform(keys[0], (3, count))
        which = jax.random.randint(keys[1], (count,), 0, dim)
        size = jnp.maximum(jnp.abs(points[jnp.arange(count), which]), 1e-3)
        move = jnp.where(sign < 0.5, 1.0, -1.0) * size * 10.0 ** (5.0 * length - 4.0)
        proposals = points.at[jnp.arange(count), which].add(move)
        new = target.log_densities(proposals)
        accepted = taken(jnp.log1p(-threshold), log_ratio(new, values))
        return jnp.where(accepted[:, None], proposals, points), jnp.where(accepted, new, values)

    return jax.lax.fori_loop(0, _WALK * dim, step, (points, values))[0]
