"""Tempering begins where all of the target is covered, and finds what a narrow start would lose."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.movers.cover import Location, find_cover, find_edges, widened
from salmc.movers.start import find_support
from salmc.targets import Affine, Gaussian, Mog2

KEY = jax.random.key(0)


def reach(location, points):
    """Mahalanobis distance of points to a Gaussian, over the root of the dimension."""
    units = np.linalg.solve(np.asarray(location.cholesky), np.asarray(points - location.mean).T)
    return np.linalg.norm(units, axis=0) / np.sqrt(len(units))


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (-1e3, 1.0), (3e6, 1e6), (0.0, 1e-6)])
def test_both_modes_lie_well_within(shift, scale):
    location = find_cover(Affine(Mog2(), shift, scale), KEY)
    modes = jnp.array([[5.0, 0.0], [-5.0, 0.0]]) * scale + shift
    # Nearer is not needed: particles that press against it widen it further.
    assert np.all(reach(location, modes) < 5.0)


def test_a_funnels_mouth_does_not_pull_it_away():
    def funnel(x):
        return -0.5 * (x[0] / 3) ** 2 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - 4.5 * x[0]

    location = find_cover(salmc.Target(funnel, 10), KEY)
    assert np.max(np.abs(location.mean)) < 1.0
    assert np.max(np.linalg.norm(np.asarray(location.cholesky), axis=1)) < 10.0


def test_it_is_widened_where_points_press_against_it_and_only_there():
    location = Location(jnp.zeros(2), jnp.eye(2))
    points = np.random.default_rng(0).normal(size=(2000, 2)) * np.array([3.0, 0.5])
    wider = widened(location, points)
    deviation = np.linalg.norm(np.asarray(wider.cholesky), axis=1)
    assert deviation[0] > 5.0
    assert 0.9 < deviation[1] < 1.5
    assert widened(location, 0.5 * points / np.array([3.0, 0.5])) is None


def test_few_outliers_do_not_widen_it():
    points = np.random.default_rng(0).normal(size=(2000, 2)) * 0.5
    points[:20] *= 1e4
    assert widened(Location(jnp.zeros(2), jnp.eye(2)), points) is None


def test_edges_of_a_box_and_of_a_half_space_are_found():
    generator = np.random.default_rng(0)
    box = generator.uniform(3.0, 4.0, (4096, 5))
    low, high = find_edges(lambda p: np.where(np.all((p > 3) & (p < 4), 1), 0.0, -np.inf), box)
    np.testing.assert_allclose(low, 3.0, atol=1e-5)
    np.testing.assert_allclose(high, 4.0, atol=1e-5)
    assert np.all(low <= 3.0)
    assert np.all(high >= 4.0)
    half = generator.normal(size=(4096, 2))
    half[:, 0] = np.abs(half[:, 0])
    low, high = find_edges(lambda p: np.where(p[:, 0] > 0, 0.0, -np.inf), half)
    assert abs(low[0]) < 1e-5
    assert low[1] == -np.inf
    assert np.all(high == np.inf)


def test_a_disc_is_no_box_and_a_smooth_density_has_no_edges():
    """Bounds that cut off a part of the support would be a bias for ever."""
    generator = np.random.default_rng(0)
    angle, radius = generator.uniform(0, 2 * np.pi, 4096), np.sqrt(generator.uniform(0, 1, 4096))
    disc = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    assert find_edges(lambda p: np.where(np.sum(p**2, 1) < 1, 0.0, -np.inf), disc) is None
    assert find_edges(lambda p: -0.5 * np.sum(p**2, 1), generator.normal(size=(4096, 3))) is None


def test_a_box_far_from_the_first_look_is_found():
    target = salmc.Target(
        lambda x: jnp.where(jnp.all((x > 30.0) & (x < 40.0)), 0.0, -jnp.inf), dim=8
    )
    points = np.asarray(find_support(target, KEY, 512))
    assert np.all((points > 30.0) & (points < 40.0))
    assert np.all(np.abs(points.mean(axis=0) - 35.0) < 1.0)
    nowhere = salmc.Target(lambda x: jnp.sum(x) * 0 - jnp.inf, dim=3)
    assert find_support(nowhere, KEY, 16) is None


def test_the_known_start_is_where_it_begins():
    where = np.random.default_rng(0).normal(size=(50, 2)) + 1e4
    target = salmc.Target(lambda x: -0.5 * jnp.sum((x - 1e4) ** 2), dim=2, start=where)
    location = find_cover(target, KEY)
    assert np.max(np.abs(location.mean - 1e4)) < 1.0
    assert Gaussian.with_condition_number(3, 10.0).start is None
