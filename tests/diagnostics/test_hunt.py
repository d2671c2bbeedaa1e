"""The hunt: climbs arrive, masses are right, modes that draws lack are named."""

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.diagnostics.hunt import hunt
from salmc.diagnostics.hunt.climbs import climb
from salmc.diagnostics.hunt.comparison import draws_for_mass
from salmc.diagnostics.hunt.masses import mode_factor, region
from salmc.diagnostics.hunt.search import _modes
from salmc.diagnostics.hunt.starts import copies
from salmc.diagnostics.hunt.tempering import tempered_particles
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.target import Target

SCALES = np.array([1.0, 1e-3, 50.0])
FRAME = Frame(np.zeros(3), SCALES, np.eye(3))


def bent(x):
    y = x / jnp.asarray(SCALES)
    return -0.5 * y[0] ** 2 - 2.0 * (y[1] - y[0] ** 2) ** 2 - 0.5 * y[2] ** 2


def two(x):
    return jnp.logaddexp(-0.5 * jnp.sum(x**2), -2.0 * jnp.sum((x - 8.0) ** 2) + jnp.log(2.0))


def host(function, dim, differentiable=True, effort=0.3):
    density = HostDensity(Target(function, dim, differentiable=differentiable), np.zeros(dim))
    density._effort = effort
    return density


@pytest.mark.parametrize("differentiable", [True, False])
def test_climbs_arrive_at_the_mode(differentiable):
    starts = FRAME.outward(3.0 * np.random.default_rng(0).normal(size=(20, 3)))
    ends, values = climb(host(bent, 3, differentiable, 1.0), FRAME, starts)
    assert np.quantile(values, 0.2) > -0.05
    assert np.all(np.isfinite(ends))


def test_the_mass_of_a_gaussian_mode():
    """Nine tenths of ∫ exp(−½ xᵀP x) = (2π)^{d/2} |P|^{−½} lie in the ellipsoid."""
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]]) * 1e-4
    precision = jnp.asarray(np.linalg.inv(covariance))
    density = host(lambda x: -0.5 * x @ precision @ x, 2)
    factor = mode_factor(density, np.zeros(2), np.ones(2))
    np.testing.assert_allclose(factor @ factor.T, covariance, rtol=0.05)
    found = region(density, np.zeros(2), factor, np.random.default_rng(0))
    truth = np.log(0.9 * 2 * np.pi) + 0.5 * np.linalg.slogdet(covariance)[1]
    assert found.log_mass == pytest.approx(truth, abs=0.1)
    assert found.error < 0.05


@pytest.mark.parametrize("differentiable", [True, False])
def test_a_mode_that_draws_lack_is_named_with_its_share(differentiable):
    """Second mode: height 2, sd ½ in two dimensions: a third of 1 + 2/4, nine tenths inside."""
    points = np.random.default_rng(1).normal(size=(3000, 2))
    density = host(two, 2, differentiable)
    found = hunt(density, points, Frame.of(points), ("x0", "x1"))
    assert found.weighed
    assert found.missed[0].share == pytest.approx(0.3, abs=0.06)
    assert found.missed[0].drawn == 0.0
    np.testing.assert_allclose(found.missed[0].position, 8.0, atol=0.3)
    both = np.random.default_rng(2).random((3000, 1)) < 1 / 3
    right = np.where(both, 8.0 + 0.5 * points, points)
    found = hunt(density, right, Frame.of(right), ("x0", "x1"))
    assert not found.missed
    assert not found.wrong_weights
    wrong = np.where(np.random.default_rng(2).random((3000, 1)) < 0.7, 8.0 + 0.5 * points, points)
    found = hunt(density, wrong, Frame.of(wrong), ("x0", "x1"))
    assert 1 <= len(found.wrong_weights) <= 2
    # The share of all mass, whichever of the modes the draws have too many of.
    truths = {0.0: 0.9 * 2 / 3, 8.0: 0.9 / 3}
    for mode in found.wrong_weights:
        truth = truths[8.0 if mode.position[0] > 4.0 else 0.0]
        assert mode.share == pytest.approx(truth, abs=0.06)


def test_tempered_particles_find_both_modes():
    points = np.random.default_rng(1).normal(size=(500, 2))

    def equal(x):
        return jnp.logaddexp(-0.5 * jnp.sum(x**2), -0.5 * jnp.sum((x - 8.0) ** 2))

    density = host(equal, 2, effort=1.0)
    particles = tempered_particles(density, Frame.of(points), np.random.default_rng(0))
    assert 0.02 < np.mean(particles[:, 0] > 4.0) < 0.98
    nowhere = host(lambda x: jnp.where(x[0] > 1e9, 0.0, -jnp.inf), 2)
    assert len(tempered_particles(nowhere, Frame.of(points), np.random.default_rng(0))) == 0


def test_many_dimensions_are_left_alone():
    points = np.random.default_rng(0).normal(size=(300, 300))
    found = hunt(host(lambda x: -0.5 * jnp.sum(x**2), 300), points, Frame.of(points), ["x"] * 300)
    assert not found.weighed
    assert found.climbs == 0


def test_a_peak_that_no_weighing_met_is_counted_on_neither_side():
    """N(0, I) inside N(0, 20² I) in six dimensions: of the points that weigh an ellipsoid as wide
    as the wide one none meets the narrow one, which has a 20⁶-th of its volume and half the draws.
    n draws go with the mass 2 (2π)³; were the narrow one's counted, twice as many would seem to.
    """
    generator = np.random.default_rng(0)

    def log_density(x):
        squares = jnp.sum(x**2)
        return jnp.logaddexp(-0.5 * squares, -squares / 800.0 - 6.0 * jnp.log(20.0))

    density, narrow = host(log_density, 6), generator.random((4000, 1)) < 0.5
    points = np.where(narrow, 1.0, 20.0) * generator.normal(size=(4000, 6))
    wide = region(density, np.full(6, 8.0), 20.0 * np.eye(6), generator)
    values, frame = density.values(points), Frame.of(points)
    rate, error = draws_for_mass(density, points, values, frame, [wide] * 9, generator)
    assert error < 0.1
    assert rate == pytest.approx(np.log(4000 / (2.0 * (2.0 * np.pi) ** 3)), abs=0.25)


def test_copies_of_many_dimensions_are_mirrored_as_a_whole():
    """Of a hundred coordinates nearly a thousand images can be had, and two of them mirror all."""
    points = np.random.default_rng(0).normal(3.0, 0.1, (200, 100))
    found = copies(points, Frame.of(points), [], np.random.default_rng(1), 12)
    about_zero = np.all(np.abs(found + 3.0) < 1.0, axis=1)
    assert np.any(about_zero)
    assert len(found) == 12


def walk(x):
    """A random walk of 80 steps, held at its first: neighbours go together by 0.9."""
    return -0.5 * x[0] ** 2 - 0.5 * jnp.sum((x[1:] - 0.9 * x[:-1]) ** 2) / 0.19


def test_a_correlated_mode_of_many_dimensions_is_weighed():
    """Widths along axes alone know nothing of how 80 coordinates go together."""
    density, dim = host(walk, 80), 80
    factor = mode_factor(density, np.zeros(dim), np.ones(dim))
    place = region(density, np.zeros(dim), factor, np.random.default_rng(0))
    # A Gaussian proposes its own mode: weights are all alike, to the accuracy of float32.
    volume = 0.5 * dim * np.log(2.0 * np.pi) + 0.5 * (dim - 1) * np.log(0.19)
    assert place.error < 0.03
    assert abs(place.log_mass - volume - np.log(0.9)) < 0.05


def test_a_climb_that_ended_before_its_mode_is_no_other_mode():
    """With half of a Gaussian's width to go in 80 coordinates, 10 in log p are wanting."""
    density, dim = host(walk, 80), 80
    covariance = 0.9 ** np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
    factor = np.linalg.cholesky(covariance)
    noise = np.random.default_rng(0).normal(size=(4, dim))
    ends = np.concatenate([np.zeros((1, dim)), 0.5 * noise @ factor.T])
    frame = Frame(np.zeros(dim), np.ones(dim), factor)
    found, lost = _modes(density, ends, density.values(ends), frame, np.random.default_rng(1))
    assert len(found) == 1
    assert lost == 0


def test_where_all_climbs_meet_there_is_nothing_to_weigh(monkeypatch):
    """Masses may be beyond telling; one mode, to which climbs from everywhere lead, is one mode."""
    cannot = (float("nan"), float("inf"))
    monkeypatch.setattr("salmc.diagnostics.hunt.search.draws_for_mass", lambda *rest: cannot)
    points = np.random.default_rng(0).normal(size=(500, 3))
    one = hunt(host(lambda x: -0.5 * jnp.sum(x**2), 3), points, Frame.of(points), ["a", "b", "c"])
    assert one.weighed
    both = hunt(host(two, 3), points, Frame.of(points), ["a", "b", "c"])
    assert both.modes == 2
    assert not both.weighed


def test_a_place_without_numbers_between_is_no_mode_that_climbs_agree_on(monkeypatch):
    cannot = (float("nan"), float("inf"))
    monkeypatch.setattr("salmc.diagnostics.hunt.search.draws_for_mass", lambda *rest: cannot)
    monkeypatch.setattr("salmc.diagnostics.hunt.masses._resolved", lambda *rest: False)
    points = np.random.default_rng(0).normal(size=(500, 3))
    one = hunt(host(lambda x: -0.5 * jnp.sum(x**2), 3), points, Frame.of(points), ["a", "b", "c"])
    assert one.modes == 1
    assert not one.weighed
