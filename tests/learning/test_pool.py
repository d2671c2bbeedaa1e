import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import TargetError
from salmc.learning import fill_pool
from salmc.movers import AGSVGD
from salmc.target import Target


def _check_two_modes(positions, log_density):
    # mean 0, sd (2.06, 0.5). Modes may be off by a few standard errors of 1024 resampled
    # particles, some of which are copies: 0.12 in the share of a mode is about 4 of 256 draws.
    assert positions.shape == (1024, 2)
    assert np.all(np.isfinite(log_density))
    assert abs(np.mean(positions[:, 0] > 0) - 0.5) < 0.12
    np.testing.assert_allclose(np.std(positions, axis=0), [2.06, 0.5], rtol=0.15)


def test_tempered_smc(two_modes):
    pool = fill_pool(two_modes, jax.random.key(0), 1024)
    _check_two_modes(np.asarray(pool.positions), np.asarray(pool.log_density))
    np.testing.assert_allclose(pool.log_density, two_modes.log_densities(pool.positions), atol=1e-4)
    assert pool.start.shape == (1024, 2)
    assert not pool.warnings


def test_another_mover(two_modes):
    pool = fill_pool(
        two_modes, jax.random.key(0), 1024, AGSVGD(two_modes), steps=100, particles=200
    )
    assert pool.start.shape == (200, 2)
    _check_two_modes(np.asarray(pool.positions), np.asarray(pool.log_density))
    # Exact moves took the copies apart.
    assert len(np.unique(np.asarray(pool.positions), axis=0)) > 900


def test_regions_of_nan_and_zero_density():
    def half_normal(x):
        value = -0.5 * jnp.sum(x**2)
        return jnp.where(x[0] < 0, -jnp.inf, jnp.where(x[1] > 1.0, jnp.nan, value))

    pool = fill_pool(Target(half_normal, 2), jax.random.key(0), 512)
    assert np.all(np.isfinite(pool.positions))
    assert np.all(np.isfinite(pool.log_density))
    assert np.min(pool.positions[:, 0]) >= 0
    assert np.max(pool.positions[:, 1]) <= 1.0


def test_density_that_is_zero_everywhere():
    with pytest.raises(TargetError):
        fill_pool(Target(lambda x: -jnp.inf * jnp.sum(x**2), 2), jax.random.key(0), 256)


def test_nothing_is_tempered_from_where_the_density_is_zero():
    """A box of twenty dimensions, which a wider Gaussian hardly ever meets."""

    def box(x):
        return jnp.where(jnp.all((x > 3.0) & (x < 4.0)), 0.0, -jnp.inf)

    pool = fill_pool(Target(box, 20), jax.random.key(0), 512)
    assert not pool.warnings  # as 200 rounds from nowhere would leave
    assert np.all((pool.positions > 3.0) & (pool.positions < 4.0))
