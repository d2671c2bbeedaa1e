"""Expectation-maximisation on the host: densities, shares, counts of components."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.fitting import fit_mixture
from salmc.kernels.mixture import DEGREES, MixtureKernel, widths


def two(generator, count=2000, apart=8.0, scale=1.0):
    points = generator.normal(size=(count, 2))
    points[: count // 4, 0] += apart
    return scale * points


def test_density_is_that_of_its_parts():
    mixture = Mixture(
        np.array([0.3, 0.7]),
        np.array([[0.0, 1.0], [2.0, -1.0]]),
        np.array([[[1.0, 0.0], [0.5, 2.0]], [[0.3, 0.0], [0.0, 0.4]]]),
        np.array([0.4, 0.1, 0.3, 0.2]),
    )
    points = np.random.default_rng(0).normal(size=(20, 2))
    expected = np.zeros(20)
    for weight, mean, factor in zip(*mixture[:3], strict=True):
        for share, degrees, width in zip(mixture.shares, DEGREES, widths(2), strict=True):
            law = stats.multivariate_t(mean, width**2 * factor @ factor.T, df=degrees)
            expected += weight * share * law.pdf(points)
    np.testing.assert_allclose(mixture.log_density(points), np.log(expected), rtol=1e-10)
    # The kernel is the same density, compiled.
    kernel = MixtureKernel.of(*mixture)
    found = kernel.log_densities(jnp.asarray(points, float), jnp.zeros((20, 2)))
    np.testing.assert_allclose(found, np.log(expected), rtol=2e-5, atol=2e-5)


def test_draws_have_the_density():
    """The share of draws beyond a radius, in binomial standard errors."""
    mixture = Mixture.of_gaussians(np.ones(1), np.zeros((1, 1)), np.ones((1, 1, 1)))
    draws = np.abs(mixture.sample(np.random.default_rng(0), 40_000)[:, 0])
    for radius in (1.0, 2.0, 4.0):
        gaussians = [stats.norm.sf(radius / width) for width in widths(1)[:2]]
        laws = [*gaussians, stats.t.sf(radius, 5), stats.t.sf(radius, 1)]
        truth = 2.0 * float(mixture.shares @ laws)
        error = np.sqrt(truth * (1.0 - truth) / len(draws))
        assert abs(np.mean(draws > radius) - truth) < 4.0 * error


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_two_clusters_are_found_at_any_scale(scale):
    generator = np.random.default_rng(0)
    points = two(generator, scale=scale)
    mixture = fit_mixture(points, np.ones(len(points)), generator)
    assert len(mixture.weights) == 2
    heavy = np.argmax(mixture.weights)
    # 0.75 of 2,000 points, within four binomial standard errors.
    assert mixture.weights[heavy] == pytest.approx(0.75, abs=0.04)
    assert mixture.means[heavy] == pytest.approx([0.0, 0.0], abs=0.15 * scale)
    assert mixture.means[1 - heavy] == pytest.approx([8.0 * scale, 0.0], abs=0.25 * scale)


def test_heavy_tails_show_in_the_shares():
    generator = np.random.default_rng(0)
    cauchy, normal = generator.standard_cauchy((2000, 1)), generator.normal(size=(2000, 1))
    shares = [fit_mixture(x, np.ones(2000), generator).shares for x in (cauchy, normal)]
    assert shares[0][3] > 0.5
    assert shares[1][3] < 0.1


def test_a_narrow_ridge_with_heavy_tails_is_fitted():
    """Correlations of 0.99999 are no accident of few points: they are not shrunk away."""
    generator = np.random.default_rng(0)
    factor = np.array([[1.0, 0.0, 0.0], [30.0, 1.0, 0.0], [0.5, 0.2, 0.01]])
    noise = generator.standard_normal((2300, 3)) / np.sqrt(generator.chisquare(1, (2300, 1)))
    points = 100.0 + noise @ factor.T
    mixture = fit_mixture(points[:300], np.ones(300), generator)
    truth = stats.multivariate_t([100.0] * 3, factor @ factor.T, df=1)
    lost = truth.logpdf(points[300:]) - mixture.log_density(points[300:])
    # Nine parameters of 300 points cost 9 / 600 each; heavier laws than needed cost a tenth.
    assert np.mean(lost) < 0.15


def test_weights_stand_for_copies():
    """Points of weight 3 count as three points: the fit moves to where the weight is."""
    generator = np.random.default_rng(0)
    points = two(generator)
    weights = np.where(points[:, 0] > 4.0, 3.0, 1.0)
    mixture = fit_mixture(points, weights, generator)
    right = mixture.weights[mixture.means[:, 0] > 4.0].sum()
    assert right == pytest.approx(0.5, abs=0.05)


def test_a_coordinate_that_never_changes_is_no_obstacle():
    points = np.random.default_rng(0).normal(size=(200, 2))
    points[:, 1] = 3.0
    mixture = fit_mixture(points, np.ones(200), np.random.default_rng(0))
    assert np.all(np.isfinite(mixture.log_density(points)))


def test_light_modes_that_are_known_are_kept():
    """Sixteen modes, down to one in 300: a random beginning misses some, and so few points as
    there are would give them any shape."""
    generator = np.random.default_rng(0)
    corners = np.array(np.meshgrid(*[[-4.0, 4.0]] * 4)).reshape(4, -1).T
    shares = np.prod(np.where(corners > 0.0, 0.76, 0.24), axis=1)

    def points(count):
        which = generator.choice(len(shares), count, p=shares)
        around = np.concatenate([corners[which], np.zeros((count, 4))], axis=1)
        return around + generator.normal(size=(count, 8))

    built, fresh = points(1500), points(20_000)
    known = Mixture.of_gaussians(
        np.ones(16),
        np.concatenate([corners + 0.2, np.zeros((16, 4))], axis=1),
        np.repeat(1.2 * np.eye(8)[None], 16, axis=0),
    )
    fits = [
        fit_mixture(built, np.ones(len(built)), np.random.default_rng(1), modes=modes)
        for modes in (None, known)
    ]
    exact = known._replace(
        weights=shares, means=known.means - [*[0.2] * 4, *[0.0] * 4], factors=known.factors / 1.2
    )
    lost = [float(np.mean(exact.log_density(fresh) - fit.log_density(fresh))) for fit in fits]
    assert lost[1] < 0.15
    assert lost[0] > 3.0 * lost[1]
    assert len(fits[1].weights) == 16
    # Modes that the points do not show are no reason to believe in them.
    one = generator.normal(size=(1500, 8))
    assert len(fit_mixture(one, np.ones(len(one)), generator, modes=known).weights) == 1
