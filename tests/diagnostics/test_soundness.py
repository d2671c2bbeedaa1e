"""Digits that single precision loses are seen where an evaluation takes long, too."""

import numpy as np

from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.soundness import soundness
from salmc.target import Target


def found(target):
    points = np.random.default_rng(0).normal(size=(500, 2))
    density = HostDensity(target, points[0], effort=0.01)
    return soundness(density, points, np.full(500, np.nan), Frame.of(points))


def test_a_density_that_takes_long_is_asked_in_double_precision():
    """Sums over millions of data lose digits: numbers that are 0.25 apart have an error of 0.07."""
    target = Target(lambda x: 4.0e6 - 0.5 * (x**2).sum(), dim=2)
    assert 0.03 < found(target).single_error < 0.3


def test_what_a_black_box_computes_in_is_its_own_affair():
    box = Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), 2)
    assert np.isnan(found(box).single_error)
