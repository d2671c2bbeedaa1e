"""Moves of the pool leave the target invariant: exact draws stay exact draws."""

import jax
import jax.numpy as jnp
import numpy as np

from salmc.learning.moves import Proposals, evolve_slice, kernel_move, mixture_move

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
    pool = _exact(2 * _COUNT)
    points = pool[:_COUNT]
    for i in range(3):
        points, values, _ = evolve_slice(
            jax.random.key(i), points, _log_density(points), pool, jnp.array(0), _log_density
        )
    assert np.mean(np.any(points != pool[:_COUNT], axis=1)) > 0.3
    np.testing.assert_allclose(values, _log_density(points), atol=1e-4)
    # Five standard errors; starting points count too, so that this is a little strict.
    assert np.all(_statistics(points) < 5.0)


def test_kernel_move_is_exact_and_needs_the_proposal_density():
    points = _exact(_COUNT)
    noise = jax.random.normal(jax.random.key(1), points.shape)
    new = jnp.array([1.0, 0.3]) + 2.0 * noise
    log_q = -0.5 * jnp.sum(noise**2, axis=1)
    backward = -0.125 * jnp.sum((points - jnp.array([1.0, 0.3])) ** 2, axis=1)
    proposals = Proposals(new, log_q, _log_density(new))
    values = _log_density(points)
    moved, _, probability = kernel_move(jax.random.key(2), points, values, proposals, backward)
    assert np.mean(np.any(moved != points, axis=1)) > 0.2
    assert np.all((probability >= 0) & (probability <= 1))
    assert np.all(_statistics(moved) < 5.0)
    none = jnp.zeros(_COUNT)
    wrong, _, _ = kernel_move(
        jax.random.key(2), points, values, proposals._replace(log_proposal=none), none
    )
    assert np.any(_statistics(wrong) > 5.0)


def test_kernel_move_at_zero_density():
    points, new = jnp.zeros((3, 2)), jnp.ones((3, 2)).at[2, 0].set(jnp.nan)
    values = jnp.array([-jnp.inf, -jnp.inf, 0.0])
    proposals = Proposals(new, jnp.zeros(3), jnp.array([0.0, -jnp.inf, jnp.nan]))
    moved, values, probability = kernel_move(
        jax.random.key(0), points, values, proposals, jnp.zeros(3)
    )
    np.testing.assert_array_equal(probability, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(moved, [[1, 1], [0, 0], [0, 0]])
    assert values[0] == 0.0


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
