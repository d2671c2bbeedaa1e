"""Climbs find modes that draws hardly see, and Laplace's mixture gives them their weights."""

import jax
import jax.numpy as jnp
import numpy as np

import salmc
from salmc.movers.climb import balance, find_modes
from salmc.targets import Mog2


def two_widths(x):
    """Equal weights: sd 1 at (−3, 0), sd 0.02 at (3, 0)."""
    wide = -0.5 * jnp.sum((x - jnp.array([-3.0, 0.0])) ** 2)
    narrow = -0.5 * jnp.sum((x - jnp.array([3.0, 0.0])) ** 2) / 0.02**2 - 2.0 * jnp.log(0.02)
    return jnp.logaddexp(wide, narrow)


def test_modes_and_masses():
    """Of a mixture of Gaussians far apart, Laplace's masses are the weights."""
    starts = jnp.array([[-2.0, 1.0], [3.01, 0.01], [-4.0, 0.0]])
    modes = find_modes(salmc.Target(two_widths, 2), starts)
    assert len(modes.positions) == 2
    np.testing.assert_allclose(modes.log_masses, np.log(2 * np.pi), atol=1e-2)
    order = np.argsort(modes.positions[:, 0])
    np.testing.assert_allclose(modes.positions[order], [[-3, 0], [3, 0]], atol=1e-2)
    np.testing.assert_allclose(modes.factors[order[1]], 0.02 * np.eye(2), rtol=1e-2, atol=1e-5)


def test_a_mode_of_no_mass_is_let_go():
    def needle(x):
        return jnp.logaddexp(-0.5 * jnp.sum(x**2), -0.5 * jnp.sum((x - 5) ** 2) / 1e-8 + 0.0)

    modes = find_modes(salmc.Target(needle, 2), jnp.array([[0.1, 0.1], [5.0, 5.0]]))
    assert len(modes.positions) == 1


def test_climbs_from_far_out_in_heavy_tails_arrive():
    """10⁹ units out in the tails of a power law the gradient is 10⁻⁹, and no reason to stop; the
    top is long and narrow."""

    def heavy(x):
        y = jnp.array([x[0] - 100.0, (x[1] - 50.0 - (x[0] - 100.0)) / 0.01])
        return -1.75 * jnp.log1p(jnp.sum(y**2) / 1.5)

    starts = jnp.array([[1e9, -2e9], [-3e9, 1e9], [2e9, 2e9], [1e8, 3e9]])
    modes = find_modes(salmc.Target(heavy, 2), starts)
    assert len(modes.positions) == modes.tops == 1
    np.testing.assert_allclose(modes.positions[0], [100.0, 50.0], atol=0.1)


def test_ends_at_a_wall_are_no_tops():
    def wall(x):
        return jnp.where(x[0] > 0.0, -5.0 * x[0] - 0.5 * jnp.sum(x**2), -jnp.inf)

    modes = find_modes(salmc.Target(wall, 2), jnp.array([[1.0, 0.5], [2.0, -3.0], [0.5, 4.0]]))
    assert modes.tops == 0


def test_nowhere_and_no_maximum():
    nan = salmc.Target(lambda x: jnp.sum(x) * jnp.nan, 2)
    assert len(find_modes(nan, jnp.zeros((2, 2))).positions) == 0
    saddle = salmc.Target(lambda x: x[0] ** 2 - x[1] ** 2, 2)
    assert len(find_modes(saddle, jnp.zeros((1, 2))).positions) == 0


def test_climbs_that_all_lead_away_are_soon_the_last():
    """Of 24 that would find nothing new, a third: the density has no maximum, and they go far."""
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x[1:] ** 2) + x[0], 2)
    starts = jax.random.normal(jax.random.key(0), (40, 2))
    found = find_modes(target, starts, 24)
    assert len(found.positions) == 0
    assert found.gradients < 0.5 * find_modes(target, starts).gradients


def test_balanced_weights():
    """From all particles in the wide mode; the share errs by √(¼/4000) = 0.008."""
    target = salmc.Target(two_widths, 2)
    points = jax.random.normal(jax.random.key(0), (4000, 2)) + jnp.array([-3.0, 0.0])
    modes = find_modes(target, jnp.array([[-3.0, 0.0], [3.0, 0.0]]))
    values = target.log_densities(points)
    moved, values, accepted = balance(target, jax.random.key(1), modes, points, values)
    assert accepted > 0.5
    assert abs(np.mean(np.asarray(moved)[:, 0] > 2.0) - 0.5) < 0.035
    np.testing.assert_allclose(values, target.log_densities(moved), rtol=1e-4, atol=1e-3)


def test_exact_draws_stay_exact():
    target = Mog2()
    points = target.sample(jax.random.key(0), 4000)
    modes = find_modes(target, jnp.array([[-5.0, 0.0], [5.0, 0.0]]))
    moved = np.asarray(
        balance(target, jax.random.key(1), modes, points, target.log_densities(points))[0]
    )
    np.testing.assert_allclose(moved.std(axis=0), target.std, rtol=0.06)
