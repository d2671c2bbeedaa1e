"""Masses around places: right where numbers are dense enough, and not told where they are not."""

import numpy as np
import pytest

from salmc.diagnostics.hunt.masses import region
from salmc.diagnostics.trial.host import HostDensity
from salmc.target import Target

WIDTH = 1e-7


class Rounded(HostDensity):
    """A Gaussian at some place, 1e-7 wide, of points as single precision has them."""

    def __init__(self, centre):
        super().__init__(Target.from_numpy(lambda x: x[:, 0], 2), centre, effort=1.0)
        self.centre = centre

    def values(self, points):
        points = points.astype(np.float32).astype(np.float64)
        return -0.5 * np.sum(((points - self.centre) / WIDTH) ** 2, axis=1)


@pytest.mark.parametrize(("place", "told"), [(0.0, True), (3.0, False)])
def test_a_place_narrower_than_numbers_are_apart_is_not_weighed(place, told):
    """Near 3 numbers are 2.4e-7 apart. Of the mass 0.9 are inside, within 4 of its errors."""
    centre = np.full(2, place)
    factor = 1.2 * WIDTH * np.array([[1.0, 0.0], [0.3, 0.95]])
    found = region(Rounded(centre), centre, factor, np.random.default_rng(0))
    assert np.isfinite(found.error) == told
    if told:
        mass = np.exp(found.log_mass) / (2 * np.pi * WIDTH**2)
        assert 0.9 - 4 * found.error < mass < 1.0
