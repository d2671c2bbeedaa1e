import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError
from salmc.targets import Banana


def test_unbending_the_draws_gives_standard_normals():
    """Mean and mean square of n normals: standard errors 1/√n and √(2/n), 4 of them allowed."""
    n = 20_000
    draws = np.asarray(Banana(3.0, 0.2, 0.7).sample(jax.random.key(0), n))
    along, across = draws[:, 0] / 3.0, (draws[:, 1] - 0.2 * draws[:, 0] ** 2) / 0.7
    for normal in (along, across, (along + across) / np.sqrt(2)):
        assert abs(normal.mean()) < 4 / np.sqrt(n)
        assert abs((normal**2).mean() - 1) < 4 * np.sqrt(2 / n)


def test_ridge_of_the_density():
    target = Banana(2.0, 0.5, 0.5)
    np.testing.assert_allclose(target.log_density(jnp.array([2.0, 2.0])), -0.5)
    np.testing.assert_allclose(target.log_density(jnp.array([0.0, 0.5])), -0.5)


def test_no_curvature_is_a_gaussian():
    np.testing.assert_allclose(Banana(2.0, 0.0, 0.5).std, [2.0, 0.5])


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="`thickness` argument must be a finite number above 0"):
        Banana(thickness=0.0)
