import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from salmc.errors import ArgumentError
from salmc.targets import Gaussian

COVARIANCE = np.array([[2.0, -0.7], [-0.7, 0.5]])


def test_density_is_normalised_as_scipy_has_it():
    target = Gaussian([1.0, -3.0], COVARIANCE)
    points = np.array([[0.0, 0.0], [1.0, -3.0], [5.0, 1.0]])
    expected = stats.multivariate_normal([1.0, -3.0], COVARIANCE).logpdf(points)
    np.testing.assert_allclose(target.log_densities(jnp.asarray(points)), expected, rtol=1e-5)
    np.testing.assert_allclose(target.std, np.sqrt([2.0, 0.5]), rtol=1e-6)


def test_draws_have_the_covariance():
    """Each of the entries has standard error √((Σᵢᵢ Σⱼⱼ + Σᵢⱼ²)/n); 4 of them are allowed."""
    n = 20_000
    draws = np.asarray(Gaussian([1.0, -3.0], COVARIANCE).sample(jax.random.key(0), n))
    variances = np.diag(COVARIANCE)
    error = np.sqrt((np.outer(variances, variances) + COVARIANCE**2) / n)
    assert np.all(np.abs(np.cov(draws.T) - COVARIANCE) < 4 * error)


@pytest.mark.parametrize("condition_number", [1.0, 1e4])
def test_condition_number(condition_number):
    target = Gaussian.with_condition_number(5, condition_number)
    factor = np.asarray(target.factor, dtype=float)
    covariance = factor @ factor.T
    np.testing.assert_allclose(np.linalg.cond(covariance), condition_number, rtol=1e-2)
    if condition_number > 1:
        off_diagonal = covariance[~np.eye(5, dtype=bool)]
        assert np.all(np.abs(off_diagonal) > 1e-3)


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.eye(3), r"must be an array of shape \(2, 2\). Got 'shape \(3, 3\)'"),
        ([[1.0, 0.5], [0.0, 1.0]], "must be symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "must be positive definite. Got 'a smallest eigenvalue of -1'"),
        ([[1.0, 1.0], [1.0, 1.0]], "must be positive definite"),
        ([[1.0, np.nan], [np.nan, 1.0]], "must be a finite number"),
    ],
)
def test_bad_covariances(covariance, message):
    with pytest.raises(ArgumentError, match=f"`covariance` argument {message}"):
        Gaussian(np.zeros(2), covariance)


def test_a_covariance_from_single_precision_is_symmetric_enough():
    root = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    covariance = root @ root.T + np.eye(6, dtype=np.float32)
    covariance[0, 1] *= 1 + 1e-7
    Gaussian(np.zeros(6), covariance)
