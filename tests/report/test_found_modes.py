"""Modes of draws: none that are not there, and weights with errors that hold."""

import numpy as np
import pytest

from salmc.report.chain_path import STEPS, chain_path
from salmc.report.found_modes import cluster, found_modes
from salmc.report.rank import band, departures
from salmc.sampling.draws import Draws


def ring(generator, n):
    angle, radius = generator.uniform(0, 2 * np.pi, n), 2 + 0.2 * generator.normal(size=n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def banana(generator, n):
    x = 2 * generator.normal(size=n)
    return np.stack([x, x**2 + 0.5 * generator.normal(size=n)], axis=1)


ONE = {
    "normal": lambda g, n: g.normal(size=(n, 2)),
    "normal in 25 dimensions": lambda g, n: g.normal(size=(n, 25)),
    "heavy tails": lambda g, n: g.standard_t(3, size=(n, 4)),
    "one-sided": lambda g, n: g.exponential(size=(n, 4)),
    "flat": lambda g, n: g.uniform(size=(n, 2)),
    "ring": ring,
    "ring among others": lambda g, n: np.concatenate([ring(g, n), g.normal(size=(n, 4))], axis=1),
    "banana": banana,
}


@pytest.mark.parametrize("name", ONE)
def test_one_mode_is_one(name):
    points = ONE[name](np.random.default_rng(0), 1500)
    assert cluster(points / np.std(points, axis=0)).max() == 0


@pytest.mark.parametrize(("dim", "count"), [(1, 2), (2, 6), (8, 2), (25, 2)])
def test_modes_that_are_apart_are_found(dim, count):
    """Six standard deviations apart, in one number or around a circle."""
    generator = np.random.default_rng(1)
    which = generator.integers(0, count, 1500)
    centre = np.zeros((1500, dim))
    centre[:, 0] = 6.0 * which
    if count == 6:
        centre = 6.0 * np.stack([np.cos(which * np.pi / 3), np.sin(which * np.pi / 3)], axis=1)
    points = centre + generator.normal(size=(1500, dim))
    labels = cluster(points / np.std(points, axis=0))
    assert labels.max() + 1 == count
    for mode in range(count):
        assert np.mean(labels[which == mode] == np.bincount(labels[which == mode]).argmax()) > 0.98


def switching(chains=8, draws=600, stay=0.9, seed=0):
    """Chains that change sides with probability 1 − stay: half of them in each, correlated."""
    generator = np.random.default_rng(seed)
    sides = np.cumsum(generator.random((chains, draws)) > stay, axis=1) % 2
    sides = (sides + generator.integers(0, 2, (chains, 1))) % 2
    noise = generator.normal(size=(chains, draws, 2))
    return sides, Draws(noise + 8.0 * sides[..., None] * np.array([1.0, 0.0]), None, 1.0)


def test_weights_have_errors_that_hold():
    """Over 12 runs: errors in units of the told standard error have mean square near 1, between
    the 0.1 % quantiles of χ²(12)/12, which are 0.18 and 2.74."""
    scores = []
    for seed in range(12):
        found = found_modes(switching(seed=seed)[1])
        right = max(found.modes, key=lambda mode: mode.places[0])
        scores.append((right.weight - 0.5) / right.error)
    assert 0.18 < np.mean(np.square(scores)) < 2.74
    # Independent draws would have 0.0072; the chains stay for ten draws, (1 + 0.8)/(1 − 0.8) = 9.
    assert right.error == pytest.approx(3 * 0.0072, rel=0.35)


@pytest.mark.parametrize("dim", [8, 25])
def test_numbers_that_tell_nothing_do_not_shift_weights(dim):
    """Independent draws, 0.3 in a mode that one number tells: within four standard errors."""
    generator = np.random.default_rng(2)
    positions = generator.normal(size=(8, 1000, dim))
    positions[..., 0] += 8.0 * (generator.random((8, 1000)) < 0.3)
    light = found_modes(Draws(positions, None, 1.0)).modes[-1]
    assert abs(light.weight - 0.3) < 4 * light.error
    assert light.error == pytest.approx(np.sqrt(0.21 / 8000), rel=0.2)


def test_particles_have_no_error():
    _, draws = switching(chains=300, draws=3)
    cloud = Draws(draws.positions, None, 1.0, "particles")
    assert [mode.error for mode in found_modes(cloud).modes] == [None, None]
    assert chain_path(cloud) is None


def test_the_way_that_is_drawn_is_one_of_a_chain_and_counts_its_changes():
    sides, draws = switching()
    path = chain_path(draws)
    changes = int(path["alt"].split("changes mode ")[1].split()[0])
    counts = np.abs(np.diff(sides, axis=1))
    windows = np.lib.stride_tricks.sliding_window_view(counts, STEPS - 1, axis=1).sum(axis=2)
    assert changes == windows.max()
    assert len(path["way"]) == STEPS


def test_too_few_or_broken_draws():
    assert found_modes(Draws(np.zeros((2, 5, 2)), None, 1.0)) is None
    positions = switching()[1].positions.copy()
    positions[0, 0, 0] = np.nan
    assert found_modes(Draws(positions, None, 1.0)) is None


def test_ranks_tell_a_chain_that_is_elsewhere():
    values = np.random.default_rng(0).normal(size=(8, 400))
    assert np.max(np.abs(departures(values))) < band(values)
    values[3] += 1.0
    far = np.max(np.abs(departures(values)), axis=1)
    assert np.argmax(far) == 3
    # Φ(1) − Φ(0) = 0.34 of the draws, less the eighth of all that this chain is.
    assert far[3] == pytest.approx(0.34, abs=0.06)
    assert far[3] > 2 * band(values)
