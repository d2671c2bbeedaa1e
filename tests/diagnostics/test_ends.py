"""Ends of draws that come too early, and draws beyond them."""

import numpy as np
import pytest
from test_trial import NAMES, NumpyDensity, normal

from salmc.diagnostics.trial.brinks import brinks
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.orbits import orbit_tests


def test_a_brink_is_seen():
    points = np.random.default_rng(2).normal(size=(8000, 2))
    points = points[points[:, 1] > -1.8]
    ends = brinks(NumpyDensity(normal), points, Frame.of(points), NAMES)
    worst_end = min(ends, key=lambda end: end.p_value)
    assert (worst_end.name, worst_end.low) == ("x1", True)
    assert worst_end.p_value < 1e-6
    assert worst_end.at == pytest.approx(-1.8, abs=0.05)


def test_an_end_that_lacks_the_last_hundredth_is_seen_across_it():
    """Of a skew coordinate, where copies on a line had told of 16 draws that are missing."""
    points = np.random.default_rng(1).gumbel(size=(12_000, 2))
    points = points[points[:, 0] < 4.6][:6000]

    def gumbel(x):
        with np.errstate(over="ignore"):
            return np.sum(-x - np.exp(-x), axis=1)

    ends = brinks(NumpyDensity(gumbel), points, Frame.of(points), NAMES)
    worst_end = min(ends, key=lambda end: end.p_value)
    assert (worst_end.name, worst_end.low) == ("x0", False)
    assert len(ends) * worst_end.p_value < 1e-4
    assert worst_end.expected > 25.0


def test_a_few_outliers_are_seen():
    """One in five hundred, six times as far out as others."""
    points = np.random.default_rng(2).normal(size=(8000, 2))
    points[:16] *= 6.0
    density = NumpyDensity(normal)
    density._effort = 1.0
    tests = orbit_tests(density, points, Frame.of(points), NAMES)
    assert len(tests) * min(test.p_value for test in tests) < 1e-4
