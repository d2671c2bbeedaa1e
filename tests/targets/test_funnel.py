import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from salmc.errors import ArgumentError
from salmc.targets import Funnel


def test_density_as_scipy_has_it_up_to_a_constant():
    target = Funnel(dim=3)
    points = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, -3.0], [-4.0, 0.1, 0.05]])
    expected = stats.norm(0, 3).logpdf(points[:, 0])
    expected += stats.norm(0, np.exp(points[:, :1] / 2)).logpdf(points[:, 1:]).sum(axis=1)
    values = np.asarray(target.log_densities(jnp.asarray(points)))
    np.testing.assert_allclose(values - values[0], expected - expected[0], rtol=1e-5, atol=1e-5)


def test_truth():
    np.testing.assert_allclose(Funnel(dim=3).std, [3.0, np.exp(9 / 4), np.exp(9 / 4)], rtol=1e-6)


def test_spread_of_draws_at_a_scale_where_it_converges():
    """4 standard errors from the draws; at s = 0.7 the fourth moment is 3e^0.98, well behaved."""
    target = Funnel(dim=2, scale=0.7)
    draws = np.asarray(target.sample(jax.random.key(0), 40_000), dtype=float)
    error = (draws**2).std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs((draws**2).mean(axis=0) - np.asarray(target.std) ** 2) < 4 * error)
    assert abs(np.asarray(target.std)[1] - 1) > 0.1


def test_draws_given_the_first_coordinate_are_standard_normal():
    draws = np.asarray(Funnel(dim=4).sample(jax.random.key(1), 5_000), dtype=float)
    normals = (draws[:, 1:] / np.exp(draws[:, :1] / 2)).ravel()
    assert stats.kstest(normals, "norm").pvalue > 1e-4
    assert stats.kstest(draws[:, 0] / 3, "norm").pvalue > 1e-4


def test_far_down_the_neck_numbers_stay_finite():
    target = Funnel(dim=2)
    assert np.isfinite(target.log_density(jnp.array([-60.0, 1e-13])))


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="`dim` argument must be a whole number of at least 2"):
        Funnel(dim=1)
