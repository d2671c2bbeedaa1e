"""Ranking of clouds by values of the log density alone, on six modes."""

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.diagnostics import compare_clouds, fit_density, gradient_free_ksd_squared
from salmc.errors import ArgumentError


@pytest.fixture
def clouds(six_centres):
    generator = np.random.default_rng(0)

    def make(modes=6, sd=0.5, n=300):
        chosen = six_centres[generator.integers(modes, size=n)]
        return chosen + sd * generator.normal(size=(n, 2))

    exploded = make()
    exploded[:75] = 30.0 * generator.normal(size=(75, 2))
    return {
        "exact": make(),
        "missing": make(modes=4),
        "one mode": make(modes=1),
        "narrow": make(sd=0.25),
        "collapsed": make(modes=1, sd=0.05),
        "one point": make(modes=1, sd=0.0),
        "six points": make(sd=1e-3),
        "shifted": make() + 0.5,
        "exploded": exploded,
        "start": 1.6 * generator.normal(size=(300, 2)),
    }


@pytest.fixture
def log_densities(mixture, six_centres):
    target = mixture(six_centres)
    return lambda x: np.asarray(target.log_densities(jnp.asarray(x)))


def test_exact_draws_score_best_and_collapse_worse_than_missing_modes(clouds, log_densities):
    """Margins of 3 and more: scores differ by factors of 4 to 500, noise by tens of percent."""
    values = [log_densities(cloud) for cloud in clouds.values()]
    scores = dict(
        zip(clouds, (s.score for s in compare_clouds([*clouds.values()], values)), strict=True)
    )
    assert all(scores[name] > 2 * scores["exact"] for name in clouds if name != "exact")
    assert 3 * scores["exact"] < scores["missing"] < scores["one mode"] < scores["collapsed"]
    assert scores["collapsed"] <= 1.5 * scores["one point"]


def test_a_collapsed_cloud_scores_worse_with_a_common_reference(clouds, log_densities):
    union = np.concatenate([*clouds.values()])
    reference = fit_density(union, log_densities(union))

    def value(name):
        cloud = clouds[name]
        return gradient_free_ksd_squared(
            cloud, log_densities(cloud), reference=reference, bootstrap=0
        ).value

    for bad in ("collapsed", "one point", "six points", "narrow", "shifted", "exploded", "start"):
        assert value(bad) > 2 * value("exact"), bad


def test_if_all_collapsed_the_starting_points_show_it(clouds, log_densities):
    """Exact draws are among the further points only; the less narrow cloud must win."""
    some = [clouds["one point"], clouds["collapsed"], clouds["missing"]]
    also = (clouds["start"], log_densities(clouds["start"]))
    scores = compare_clouds(some, [log_densities(c) for c in some], also=also)
    assert np.argmin([s.score for s in scores]) == 2


def test_fitted_density_is_normalised_and_its_score_is_its_gradient(clouds):
    q = fit_density(clouds["exact"])
    grid = np.linspace(-9.0, 9.0, 181)
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    values, scores = q.log_density_and_score(points)
    assert np.sum(np.exp(values)) * 0.1**2 == pytest.approx(1.0, abs=1e-3)
    step = np.array([1e-5, 0.0])
    there, back = (q.log_density_and_score(points[::97] + s)[0] for s in (step, -step))
    np.testing.assert_allclose((there - back) / 2e-5, scores[::97, 0], rtol=1e-3, atol=1e-3)


def test_weighted_fit_finds_the_target_from_a_biased_union(clouds, log_densities, six_centres):
    """Two modes are oversampled fivefold; weighted by p, each holds 1/6 within 0.06."""
    union = np.concatenate([clouds["exact"], *(clouds["exact"][_near(clouds, six_centres)],) * 4])
    union = union + 0.05 * np.random.default_rng(1).normal(size=union.shape)
    draws = fit_density(union, log_densities(union)).sample(4000)
    labels = np.argmin(np.sum((draws[:, None] - six_centres) ** 2, axis=-1), axis=1)
    np.testing.assert_allclose(np.bincount(labels, minlength=6) / 4000, 1 / 6, atol=0.06)


def _near(clouds, centres):
    labels = np.argmin(np.sum((clouds["exact"][:, None] - centres) ** 2, axis=-1), axis=1)
    return labels < 2


def test_one_array_of_values_for_each_cloud(clouds):
    with pytest.raises(ArgumentError, match="one array for each cloud"):
        compare_clouds([clouds["exact"]], [])
