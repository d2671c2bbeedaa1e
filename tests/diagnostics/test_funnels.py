"""Copies along funnels: a group of maps of known volume, exact ranks, missing necks."""

import jax.numpy as jnp
import numpy as np
from scipy import stats

from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.funnels import follow, funnels
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.orbits import orbit_tests
from salmc.movers.funnels import through_funnels
from salmc.target import Target

DIM = 6


def log_density(x):
    """s ~ N(0, 2²), m ~ N(0, 1), θ_j ~ N(m, e^{2s}); x = (s, m, θ)."""
    spread = jnp.sum((x[2:] - x[1]) ** 2) * jnp.exp(-2.0 * x[0])
    return -0.125 * x[0] ** 2 - 0.5 * x[1] ** 2 - 0.5 * spread - (DIM - 2) * x[0]


def draws(seed, count=6000):
    generator = np.random.default_rng(seed)
    scale, mean = 2.0 * generator.normal(size=count), generator.normal(size=count)
    effects = mean[:, None] + np.exp(scale)[:, None] * generator.normal(size=(count, DIM - 2))
    return np.column_stack([scale, mean, effects])


def p_values(points):
    density = HostDensity(Target(log_density, DIM), points[0])
    names = [f"x{i}" for i in range(DIM)]
    tests = orbit_tests(density, points, Frame.of(points), names)
    return [test.p_value for test in tests if test.name.startswith("funnel")]


def test_the_scale_and_what_it_governs_are_found():
    first = next(funnels(draws(0)))
    assert first.scale == 0
    assert set(first.members) == {2, 3, 4, 5}
    np.testing.assert_allclose(first.weights[0], 1.0, atol=0.05)  # centred at m
    assert abs(first.power - 1.0) < 0.1


def test_no_funnel_where_there_is_none():
    assert not list(funnels(np.random.default_rng(0).normal(size=(4000, 5))))
    assert not list(funnels(np.random.default_rng(0).normal(size=(4000, 1))))
    assert not list(funnels(draws(0, 100)))


def test_copies_are_a_group_of_known_volume():
    points = draws(1, 2000)
    found = [one for one in funnels(points) if one.scale == 0]
    assert {one.weights is None for one in found} == {True, False}  # of both kinds
    for funnel in found:
        some, one = points[np.abs(points[:, 0]) < 1.0][:3], np.array([[1]])
        twice, log_volume = funnel.copies(some, np.full((3, 1), 2))
        once = funnel.copies(some, np.repeat(one, 3, axis=0))[0][:, 0]
        np.testing.assert_allclose(funnel.copies(once, np.repeat(one, 3, axis=0))[0], twice)

        def step(x, funnel=funnel):
            return funnel.copies(x[None], np.array([[1]]))[0][0, 0]

        x, small = some[0], 1e-6
        columns = [(step(x + small * e) - step(x - small * e)) / (2 * small) for e in np.eye(DIM)]
        volume = np.linalg.slogdet(np.array(columns))[1]
        np.testing.assert_allclose(volume, log_volume, atol=1e-5)


def test_exact_draws_pass_and_a_thin_neck_does_not():
    points = draws(2)
    found = p_values(points)
    assert len(found) >= 3
    assert min(found) * len(found) > 1e-3
    kept = np.random.default_rng(3).random(len(points)) < (points[:, 0] + 5.0) / 4.0
    thinned = p_values(points[kept])
    assert min(thinned) < 1e-8


def test_following_funnels_leaves_draws_as_they_are():
    """Exact draws stay exact: of 6,000, quantiles within four standard errors."""
    points = draws(3)
    density = HostDensity(Target(log_density, DIM), points[0])
    found = list(funnels(points))
    moved, values = follow(
        found, points, density.values(points), density.values, np.random.default_rng(0)
    )
    assert np.mean(moved[:, 0] != points[:, 0]) > 0.9
    np.testing.assert_allclose(values, density.values(moved), rtol=1e-4, atol=1e-2)
    for share in (0.02, 0.25, 0.75, 0.98):
        below = np.mean(moved[:, 0] < 2.0 * stats.norm.ppf(share))
        assert abs(below - share) < 4.0 * np.sqrt(share * (1.0 - share) / len(points))


def test_a_cloud_without_its_neck_comes_to_it():
    points = draws(4)
    points = points[points[:, 0] > -0.5]
    density = HostDensity(Target(log_density, DIM), points[0])
    moved, _ = through_funnels(
        points,
        density.values(points),
        density.values,
        lambda *cloud: cloud,
        np.random.default_rng(0),
    )
    truth = 2.0 * stats.norm.ppf([0.02, 0.1, 0.5, 0.9])
    np.testing.assert_allclose(np.quantile(moved[:, 0], [0.02, 0.1, 0.5, 0.9]), truth, atol=0.4)
