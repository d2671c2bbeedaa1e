"""The matrix forms against double loops, in one block and in many."""

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.movers import stein

GENERATOR = np.random.default_rng(0)
POINTS = GENERATOR.normal(size=(23, 3))
SCORES = GENERATOR.normal(size=(23, 3))
WEIGHTS = GENERATOR.dirichlet(np.ones(23))
BANDWIDTH = 1.7


def naive_direction(points, scores, bandwidth, weights):
    """Σ_j ω_j [κ(x_i, x_j) s_j + ∇_{x_j} κ(x_i, x_j)], term by term."""
    direction = np.zeros_like(points)
    for i, x in enumerate(points):
        for j, y in enumerate(points):
            kernel = np.exp(-np.sum((x - y) ** 2) / bandwidth)
            direction[i] += weights[j] * kernel * (scores[j] + 2.0 / bandwidth * (x - y))
    return direction


@pytest.fixture(params=["one block", "five rows at a time", "one row at a time"])
def _block_size(request, monkeypatch):
    entries = {"one block": 10**6, "five rows at a time": 5 * 23, "one row at a time": 1}
    monkeypatch.setattr(stein, "_BLOCK_ENTRIES", entries[request.param])


@pytest.mark.usefixtures("_block_size")
@pytest.mark.parametrize("shift", [0.0, 50.0])
def test_direction_is_the_double_loop(shift):
    found = stein.stein_direction(
        jnp.asarray(POINTS + shift), jnp.asarray(SCORES), jnp.array(BANDWIDTH), jnp.asarray(WEIGHTS)
    )
    # Float32 keeps 7 digits, of which a shift of 50 takes two.
    np.testing.assert_allclose(
        found, naive_direction(POINTS, SCORES, BANDWIDTH, WEIGHTS), atol=1e-4
    )


def test_weights_are_equal_unless_given():
    found = stein.stein_direction(jnp.asarray(POINTS), jnp.asarray(SCORES), jnp.array(BANDWIDTH))
    expected = naive_direction(POINTS, SCORES, BANDWIDTH, np.full(23, 1 / 23))
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.usefixtures("_block_size")
def test_kernel_product_is_the_product_with_the_matrix():
    rows = GENERATOR.normal(size=(17, 3))
    kernel = np.exp(-np.sum((rows[:, None] - POINTS[None]) ** 2, axis=2) / BANDWIDTH)
    found = stein.kernel_product(
        jnp.asarray(rows), jnp.asarray(POINTS), jnp.array(BANDWIDTH), jnp.asarray(SCORES)
    )
    np.testing.assert_allclose(found, kernel @ SCORES, atol=1e-5)


@pytest.mark.parametrize(("count", "tolerance"), [(23, 1e-5), (300, 0.06)])
def test_median_over_pairs(count, tolerance):
    """All pairs where they are few; else 4096 of them, with an error of about 1.5 %, here 4 sd."""
    points = GENERATOR.normal(size=(count, 3))
    first, second = np.triu_indices(count, k=1)
    expected = np.median(np.sum((points[first] - points[second]) ** 2, axis=1))
    found = stein.median_squared_distance(jnp.asarray(points))
    np.testing.assert_allclose(found, expected, rtol=tolerance)


def test_median_of_one_place_is_positive():
    assert float(stein.median_squared_distance(jnp.ones((5, 2)))) > 0
    assert float(stein.median_squared_distance(jnp.ones((1, 2)))) == 1.0
