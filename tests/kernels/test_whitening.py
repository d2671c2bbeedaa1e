"""Whitened coordinates."""

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.kernels import Whitening


def cloud(dim, condition, n=2000, seed=0):
    """Points whose covariance has that condition number, in a random direction, away from 0."""
    generator = np.random.default_rng(seed)
    axes = np.linalg.qr(generator.normal(size=(dim, dim)))[0]
    scales = np.sqrt(np.geomspace(condition, 1.0, dim)) if dim > 1 else np.array([3.0])
    points = generator.normal(size=(n, dim)) * scales @ axes + 7.0
    return jnp.asarray(points, dtype=float)


# Single precision: coordinates of size √condition leave 1e-7 √condition to the narrowest direction.
@pytest.mark.parametrize(
    ("dim", "condition", "tolerance"),
    [(1, 1, 1e-4), (2, 10, 1e-4), (3, 1e6, 1e-3), (25, 1e6, 1e-3)],
)
def test_whitened_points_have_mean_zero_and_covariance_one(dim, condition, tolerance):
    points = cloud(dim, condition)
    whitened = np.asarray(Whitening.fit(points).whiten(points), np.float64)
    np.testing.assert_allclose(np.mean(whitened, axis=0), 0.0, atol=tolerance)
    covariance = np.cov(whitened.T).reshape(dim, dim)
    np.testing.assert_allclose(covariance, np.eye(dim), atol=tolerance)


@pytest.mark.parametrize(("dim", "condition"), [(1, 1), (2, 10), (25, 1e6)])
def test_there_and_back(dim, condition):
    points = cloud(dim, condition)
    whitening = Whitening.fit(points)
    # Sums of `dim` products round by about √dim ε of the length of x. There are two of them, and
    # two matrices that are rounded themselves; twice that is allowed.
    error = 8 * np.sqrt(dim) * np.finfo(np.float32).eps * np.max(np.linalg.norm(points, axis=1))
    back = np.asarray(whitening.colour(whitening.whiten(points)))
    np.testing.assert_allclose(back, points, atol=error)
    one = whitening.colour(whitening.whiten(points[0]))
    np.testing.assert_allclose(one, points[0], atol=error)


def test_the_widest_direction_comes_first():
    variances = 1 / np.sum(np.asarray(Whitening.fit(cloud(4, 1e4)).forward_matrix) ** 2, axis=0)
    assert np.all(np.diff(variances) < 0)


def test_log_determinant_takes_a_density_back():
    """The density of N(m, Σ) at its mean is that of N(0, I) at 0 plus the log determinant."""
    points = cloud(3, 100)
    whitening = Whitening.fit(points)
    covariance = np.cov(np.asarray(points, np.float64).T)
    expected = -0.5 * np.linalg.slogdet(covariance)[1]
    np.testing.assert_allclose(whitening.log_determinant, expected, atol=1e-4)


@pytest.mark.parametrize("dim", [2, 5])
def test_a_cloud_without_width_still_has_an_inverse(dim):
    flat = np.random.default_rng(0).normal(size=(100, dim))
    flat[:, -1] = 2.0
    whitening = Whitening.fit(jnp.asarray(flat, dtype=float))
    for matrix in (whitening.forward_matrix, whitening.inverse_matrix):
        assert np.all(np.isfinite(matrix))
    points = jnp.asarray(flat, dtype=float)
    np.testing.assert_allclose(whitening.colour(whitening.whiten(points)), flat, atol=1e-5)


def test_a_cloud_of_equal_points_has_a_finite_map():
    whitening = Whitening.fit(jnp.full((10, 3), 7.0))
    u = whitening.whiten(jnp.full((1, 3), 8.0))
    assert np.all(np.isfinite(u))
    assert np.allclose(whitening.colour(u), 8.0)
