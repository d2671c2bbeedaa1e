"""Where the noise of a generator is placed."""

import jax
import numpy as np
import pytest

from salmc.kernels import MLPKernel
from salmc.learning import default_settings, sal_mc
from salmc.learning.places import Places, fit_places, refined
from salmc.targets import Mog6

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[-1.2, 0.0], [1.0, 1.0], [1.0, -1.4]])
FACTOR = np.array([[0.1, 0.0], [0.05, 0.2]])


def cloud(n, seed=0):
    generator = np.random.default_rng(seed)
    which = generator.choice(3, n, p=WEIGHTS)
    return MEANS[which] + generator.standard_normal((n, 2)) @ FACTOR.T


@pytest.mark.parametrize("seed", range(3))
def test_finds_the_gaussians_that_there_are(seed):
    clouds = [cloud(2000, 2 * seed), cloud(2000, 2 * seed + 1)]
    found = fit_places(clouds, 64, np.random.default_rng(seed))
    order = np.argsort(-found.weights)
    assert len(order) == 3
    # Four standard errors of 4000 points: shares √(w (1 − w) / n), means 0.2 / √(0.2 n).
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=0.035)
    np.testing.assert_allclose(found.means[order], MEANS, atol=0.03)
    covariances = found.factors @ np.swapaxes(found.factors, 1, 2)
    np.testing.assert_allclose(covariances, np.tile(FACTOR @ FACTOR.T, (3, 1, 1)), atol=0.01)


def test_one_gaussian_is_one_place_and_the_bound_holds():
    generator = np.random.default_rng(0)
    assert len(fit_places([generator.standard_normal((2000, 3))], 64, generator).weights) == 1
    assert len(fit_places([cloud(2000), cloud(2000, 1)], 2, generator).weights) == 2


def test_samples_in_their_order_are_as_good_as_in_any():
    ordered = cloud(3000)[np.argsort(cloud(3000)[:, 0])]
    assert len(fit_places([ordered], 64, np.random.default_rng(0)).weights) == 3


def test_the_generator_has_no_draw_between_modes_from_its_first_step_on(given_pool):
    target = Mog6()
    given_pool(target.sample(jax.random.key(1), 4096))
    settings = default_settings("mlp", 2).replace(steps=1, chunk=1, pool_size=4096)
    sampler = sal_mc(target, settings=settings, kernel="mlp", progress=False)
    assert isinstance(sampler.kernel, MLPKernel)
    assert not sampler.kernel.connected
    # The moments of all would move each component.
    np.testing.assert_array_equal(sampler.kernel.calibration_matrix, np.eye(2))
    draws = sampler.sample(chains=32, draws=200, metropolis=False, progress=False)
    flat = np.asarray(draws.positions).reshape(-1, 2)
    apart = np.min(np.linalg.norm(flat[:, None] - np.asarray(target.means), axis=2), axis=1)
    # Of exact draws 0.034 % lie beyond four standard deviations; of one cloud that is torn, 3 %.
    assert np.mean(apart > 2.0) < 0.002
    labels = target.component(jax.numpy.asarray(flat))
    shares = np.bincount(np.asarray(labels), minlength=6) / len(flat)
    np.testing.assert_allclose(shares, 1 / 6, atol=0.04)


def test_the_density_corrects_the_components():
    """Two modes, of which a pool gave weights, means and widths that are off by some hundredths.

    Of 32,768 particles, weights err by 0.0028 and means by 0.0078 of a width. Here it is a part of
    that, as p/q varies by 0.1: weights to 0.001, means to 0.004 and widths to 0.005 of a width.
    """
    means, factor = np.array([[-1.0, 0.0], [1.0, 0.0]]), 0.1 * np.eye(2)
    shapes = np.stack([1.02 * factor, 0.98 * factor])
    places = Places(np.array([0.47, 0.53]), means + 0.003, shapes)

    def log_density(points):
        apart = points[:, None] - means
        return jax.nn.logsumexp(-50.0 * jax.numpy.sum(apart**2, axis=2), axis=1)

    found = refined(places, log_density, np.random.default_rng(0))
    np.testing.assert_allclose(found.weights, 0.5, atol=0.001)
    np.testing.assert_allclose(found.means, means, atol=0.0004)
    widths = np.sqrt(np.sum(found.factors**2, axis=2))
    np.testing.assert_allclose(widths, 0.1, atol=0.0005)
    # Of a density that is nothing like them p/q says nothing.
    shifted = refined(places, lambda points: log_density(points + 0.3), np.random.default_rng(0))
    np.testing.assert_array_equal(shifted.means, places.means)
