"""A mover driven for many steps, as the tests of single movers need it."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from salmc.target import Target


@eqx.filter_jit
def _drive(mover, particles, steps):
    init_key, step_key = jax.random.split(jax.random.key(0))
    dynamic, static = eqx.partition(mover.init(init_key, particles), eqx.is_array)

    def body(dynamic, i):
        state, info = mover.step(jax.random.fold_in(step_key, i), eqx.combine(dynamic, static))
        return eqx.filter(state, eqx.is_array), (state.particles, info)

    dynamic, (paths, infos) = jax.lax.scan(body, dynamic, jnp.arange(steps))
    return eqx.combine(dynamic, static), paths, infos


@pytest.fixture
def drive():
    """drive(mover, particles, steps) → last state, positions (step, n, dim), stacked infos."""
    return lambda mover, particles, steps: _drive(mover, particles, steps)


@pytest.fixture
def start():
    """start(n, dim) → points from N(0, 2.5 I)."""

    def points(count, dim):
        return jnp.sqrt(2.5) * jax.random.normal(jax.random.key(7), (count, dim))

    return points


@pytest.fixture
def normal():
    """normal(dim, std) → a Gaussian target."""

    def target(dim, std=1.0):
        return Target(partial(_log_normal, std=std), dim)

    return target


def _log_normal(x, std):
    return -0.5 * jnp.sum((x / std) ** 2)
