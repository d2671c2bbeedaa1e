import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from salmc.errors import ArgumentError
from salmc.targets import GaussianMixture, Mog2, Mog4, Mog6, Mog10

FULL = np.array([[[1.0, 0.6], [0.6, 0.5]], [[0.3, -0.1], [-0.1, 2.0]]])
MEANS = np.array([[1.0, -2.0], [4.0, 3.0]])


def test_density_is_normalised_as_scipy_has_it():
    target = GaussianMixture(MEANS, FULL, [0.3, 0.7])
    points = np.array([[0.0, 0.0], [4.0, 2.0], [-1.0, -3.0]])
    density = 0.3 * stats.multivariate_normal(MEANS[0], FULL[0]).pdf(points)
    density += 0.7 * stats.multivariate_normal(MEANS[1], FULL[1]).pdf(points)
    np.testing.assert_allclose(
        target.log_densities(jnp.asarray(points)), np.log(density), rtol=1e-5
    )


@pytest.mark.parametrize("covariances", [[0.25, 4.0], [[0.25, 0.25], [4.0, 4.0]]])
def test_short_forms_of_covariance(covariances):
    short = GaussianMixture(MEANS, covariances)
    full = GaussianMixture(MEANS, [0.25 * np.eye(2), 4.0 * np.eye(2)])
    np.testing.assert_array_equal(short.factors, full.factors)
    np.testing.assert_allclose(short.weights, [0.5, 0.5])


def test_published_moments():
    np.testing.assert_allclose(Mog2().std, [5.025, 0.5], atol=5e-4)
    np.testing.assert_allclose(Mog6().std, 3.571, atol=5e-4)
    np.testing.assert_allclose(Mog6().mean, 0.0, atol=1e-6)


def test_components():
    points = jnp.array([[4.0, 0.1], [-6.0, 0.0]])
    assert Mog2().component(points).tolist() == [0, 1]
    assert Mog6().component(Mog6().means).tolist() == list(range(6))
    np.testing.assert_allclose(Mog4().component_weights, 0.25)


def test_overlapping_modes_have_no_known_weights():
    assert Mog10().component_weights is None
    assert Mog10().component(Mog10().means).tolist() == list(range(10))
    assert GaussianMixture([[0.0], [3.0]], [1.0, 1.0]).component_weights is None
    assert GaussianMixture([[0.0], [9.0]], [1.0, 1.0]).component_weights is not None


def test_far_from_all_modes_the_log_density_is_finite():
    assert np.isfinite(Mog6().log_density(jnp.array([1e4, 0.0])))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 2.0], [1.0]), r"`means` argument must be an array of shape \(modes, dim\)"),
        ((MEANS, [1.0]), r"`covariances` argument must be an array of shape \(2,\), \(2, 2\)"),
        ((MEANS, [1.0, -1.0]), "`covariances` argument must be positive definite"),
        ((MEANS, [1.0, 1.0], [0.5, 0.6]), "`weights` argument must be 2 positive numbers"),
        ((MEANS, [1.0, 1.0], [1.0]), "`weights` argument must be 2 positive numbers"),
        ((MEANS, [1.0, 1.0], [1.0, 0.0]), "`weights` argument must be a finite number above 0"),
        ((MEANS * np.nan, [1.0, 1.0]), "`means` argument must be a finite number"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        GaussianMixture(*arguments)
