"""Brinks: do draws stop where the density does not?

A pool that never reached the neck of a funnel gives draws that are right everywhere they go and
end too early. Few of them are near the brink, so that tests of all of them hardly see it. So: let
a be so low that few draws are below it in one coordinate. A draw x ~ p and its copies along that
coordinate (see `orbits`) make "x is below a" a coin of known probability,

    π(x) = Σ_k w_k [copy k is below a],

and draws near a have many copies beyond. The number of draws below a must not fall short of Σ π.
The brink comes from one half of the draws, and the other half is tested, so that no chance chooses
it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import LITTLE, HostDensity

_BEYOND = 2
"""Draws that lie beyond the brink in the half that sets it."""

_COPIES, _STEPS = 12, (0.5, 0.15)
"""Steps in the width of the coordinate given all others, as far as a Gaussian tells it; the smaller
for where it is narrower than that."""

_NEAREST = 150
"""Draws nearest to the brink, which have copies beyond it; others would add nothing."""

_MOST_COORDINATES = 40


class Brink(NamedTuple):
    """One end of the draws in one coordinate."""

    name: str
    low: bool
    """Whether it is the lower end."""
    at: float
    """Where it is, in the density's own coordinates."""
    found: int
    """Draws beyond it."""
    expected: float
    """Draws that belong there, as far as one step leads."""
    p_value: float
    """Of so few."""


def brinks(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    seed: int = 0,
) -> list[Brink]:
    """Both ends of every coordinate, p-values not yet corrected for their number."""
    generator = np.random.default_rng(seed)
    half = len(points) // 2
    if half < 40 or density.effort < LITTLE:
        return []
    dim = frame.dim
    chosen = np.arange(dim)
    most = density.share_of(_MOST_COORDINATES, 2)
    if dim > most:
        chosen = np.sort(generator.choice(dim, most, replace=False))
    halves = (points[:half], points[half : 2 * half])
    found = []
    for i in chosen.tolist():
        for sign in (1.0, -1.0):
            for step in _STEPS:
                expected, beyond, ends = 0.0, 0, []
                for setting, tested in (halves, halves[::-1]):
                    brink = float(np.sort(sign * setting[:, i])[_BEYOND])
                    nearest = np.argsort(np.abs(sign * tested[:, i] - brink))[:_NEAREST]
                    length = step * frame.conditional[i]
                    belong, are = _expected(
                        density, tested[nearest], i, sign, brink, length, generator
                    )
                    expected, beyond = expected + belong, beyond + are
                    ends.append(sign * brink)
                p_value = float(stats.poisson.cdf(beyond, expected))
                at = float(np.mean(ends))
                found.append(Brink(names[i], sign > 0, at, beyond, expected, p_value))
    return found


def _expected(
    density: HostDensity,
    tested: Cloud,
    i: int,
    sign: float,
    brink: float,
    step: float,
    generator: np.random.Generator,
) -> tuple[float, int]:
    """Σ π over the tested draws, and how many are beyond the brink."""
    n, dim = tested.shape
    place = generator.integers(_COPIES, size=(n,))
    shifts = step * (np.arange(_COPIES) - place[:, None])
    moved = np.repeat(tested[:, None], _COPIES, axis=1)
    moved[:, :, i] += shifts
    values = density.values(moved.reshape(-1, dim)).reshape(n, _COPIES)
    usable = np.isfinite(values[np.arange(n), place])
    values, moved = values[usable], moved[usable]
    weights = np.exp(values - np.max(values, axis=1, keepdims=True, initial=-np.inf))
    weights /= np.sum(weights, axis=1, keepdims=True)
    inside = np.sum(np.where(sign * moved[:, :, i] < brink, weights, 0.0), axis=1)
    return float(np.sum(inside)), int(np.sum(sign * tested[usable][:, i] < brink))
