"""The energy direction: against the gradient of the energy distance, and what it leads to."""

import jax
import jax.numpy as jnp
import numpy as np

from salmc.movers import energy, stein
from salmc.movers.energy import energy_direction


def points_and_draws():
    generator = np.random.default_rng(0)
    weights = generator.uniform(0.1, 1.0, size=30)
    arrays = generator.normal(size=(12, 3)), generator.normal(size=(30, 3)), weights / weights.sum()
    return tuple(jnp.asarray(array) for array in arrays)


def test_direction_descends_the_energy_distance():
    """φ_i = −(M/2) ∂D²/∂x_i; the softening changes unit vectors by about 1e-6."""
    points, draws, weights = points_and_draws()

    def squared_energy_distance(x):
        apart = jnp.sqrt(jnp.sum((x[:, None] - x[None]) ** 2, axis=2) + energy._SOFT)
        to_draws = jnp.sqrt(jnp.sum((x[:, None] - draws[None]) ** 2, axis=2) + energy._SOFT)
        return 2.0 * jnp.mean(to_draws @ weights) - jnp.mean(apart)

    expected = -0.5 * len(points) * jax.grad(squared_energy_distance)(points)
    np.testing.assert_allclose(energy_direction(points, draws, weights), expected, atol=1e-4)


def test_direction_is_the_same_in_blocks(monkeypatch):
    """In double precision: in single, distances from products round by 1e-5 or more."""
    with jax.enable_x64(True):
        points, draws, weights = points_and_draws()
        expected = jax.jit(lambda *given: energy_direction(*given))(points, draws, weights)
        assert expected.dtype == jnp.float64
        monkeypatch.setattr(stein, "_BLOCK_ENTRIES", 100)
        found = jax.jit(lambda *given: energy_direction(*given))(points, draws, weights)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_coinciding_points_stay_finite_and_balanced_ones_at_rest():
    draws = jnp.array([[-1.0], [1.0]])
    direction = energy_direction(jnp.zeros((4, 1)), draws, jnp.array([0.5, 0.5]))
    np.testing.assert_allclose(direction, 0.0, atol=1e-6)
    # A heavier side pulls.
    assert jnp.all(energy_direction(jnp.zeros((4, 1)), draws, jnp.array([0.2, 0.8])) > 0.5)
