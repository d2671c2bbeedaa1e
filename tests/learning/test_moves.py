"""Moves of the pool leave the target invariant: exact draws stay exact draws."""

import jax
import jax.numpy as jnp
import numpy as np

from salmc.learning.mixture_move import mixture_move
from salmc.learning.particles import Particles, Proposals, Slice, evolved, exact_ratio
from salmc.metropolis import acceptance, log_ratio, taken
from simple_kernels import Mirror

_COUNT = 8000


def _log_density(points):
    """½ N(−2, 0.25) + ½ N(2, 0.25) in the first coordinate, N(0, 1) in the second."""
    first = jnp.logaddexp(-2.0 * (points[:, 0] - 2.0) ** 2, -2.0 * (points[:, 0] + 2.0) ** 2)
    return first - 0.5 * points[:, 1] ** 2


def _exact(count, seed=0):
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(count, 2)) * [0.5, 1.0]
    points[:, 0] += generator.choice([-2.0, 2.0], count)
    return jnp.asarray(points)


def _statistics(points):
    # Square, tail, side and a product: their sd is of order 1, so 5 standard errors are 5/√n.
    x, y = np.asarray(points).T
    values = np.stack([(np.abs(x) - 2.0) / 0.5, x / 2.0, y, y**2 - 1.0, x * y / 2.0])
    return np.abs(values.mean(axis=1)) / (values.std(axis=1) / np.sqrt(len(x)))


def test_evolution_of_a_slice():
    points = _exact(2 * _COUNT)
    pool = Particles(points, _log_density(points), jnp.zeros((1, 1)))
    for i in range(3):
        rows, _ = evolved(jax.random.key(i), pool, pool.rows(jnp.array(0), _COUNT), _log_density)
        pool = pool.with_rows(rows)
    assert np.mean(np.any(pool.points[:_COUNT] != points[:_COUNT], axis=1)) > 0.3
    np.testing.assert_array_equal(pool.points[_COUNT:], points[_COUNT:])
    np.testing.assert_allclose(pool.log_density, _log_density(pool.points), atol=1e-4)
    # Five standard errors; starting points count too, so that this is a little strict.
    assert np.all(_statistics(pool.points[:_COUNT]) < 5.0)


def test_the_metropolis_rule_is_exact_and_needs_the_correction():
    points = _exact(_COUNT)
    noise = jax.random.normal(jax.random.key(1), points.shape)
    new = jnp.array([1.0, 0.3]) + 2.0 * noise
    forward = -0.5 * jnp.sum(noise**2, axis=1)
    backward = -0.125 * jnp.sum((points - jnp.array([1.0, 0.3])) ** 2, axis=1)
    log_uniform = jnp.log1p(-jax.random.uniform(jax.random.key(2), (_COUNT,)))

    def moved(correction):
        ratio = log_ratio(_log_density(new), _log_density(points), correction)
        assert np.all((acceptance(ratio) >= 0) & (acceptance(ratio) <= 1))
        return jnp.where(taken(log_uniform, ratio)[:, None], new, points)

    right = moved(backward - forward)
    assert np.mean(np.any(right != points, axis=1)) > 0.2
    assert np.all(_statistics(right) < 5.0)
    assert np.any(_statistics(moved(0.0)) > 5.0)


def test_the_metropolis_rule_where_something_is_not_finite():
    old = jnp.array([-jnp.inf, -jnp.inf, 0.0, 0.0, 0.0, 0.0, 0.0])
    new = jnp.array([0.0, -jnp.inf, -jnp.inf, 0.0, 0.0, 0.0, 0.0])
    correction = jnp.array([0.0, 0.0, 0.0, jnp.inf, jnp.nan, -jnp.inf, 0.0])
    finite = jnp.array([True, True, True, True, True, True, False])
    ratio = log_ratio(new, old, correction, finite)
    np.testing.assert_array_equal(acceptance(ratio), [1, 0, 0, 0, 0, 0, 0])


def test_the_ratio_of_proposals_that_are_not_finite_is_zero():
    points = jnp.zeros((2, 2))
    real = Slice(points, jnp.zeros(2), jnp.array(0))
    proposals = Proposals(points.at[1, 0].set(jnp.nan), jnp.zeros(2), jnp.zeros(2))
    ratio = exact_ratio(Mirror(2), real, proposals, None)
    np.testing.assert_array_equal(acceptance(ratio), [1, 0])


def test_mixture_move_corrects_the_weights_of_modes():
    pool = _exact(_COUNT)
    # All in one mode: only jumps can balance them, and differences cannot (they are too short).
    lopsided = jnp.where((jnp.arange(_COUNT) < _COUNT // 5)[:, None], pool, jnp.abs(pool))
    values = _log_density(lopsided)
    move = jax.jit(lambda key, points, values: mixture_move(key, points, values, _log_density, 4))
    for i in range(4):
        lopsided, values, accepted = move(jax.random.key(i), lopsided, values)
    assert accepted > 0.3
    np.testing.assert_allclose(values, _log_density(lopsided), atol=1e-4)
    # 4·4 moves at acceptance above 0.3 leave less than 0.7^16 = 0.3 % of the start.
    assert abs(np.mean(lopsided[:, 0] > 0) - 0.5) < 5 * 0.5 / np.sqrt(_COUNT)
    stay, _, _ = move(jax.random.key(9), pool, _log_density(pool))
    assert np.all(_statistics(stay) < 5.0)
