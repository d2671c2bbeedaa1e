"""Brinks: do draws stop where the density does not?

A pool that never reached the neck of a funnel gives draws that are right everywhere they go and
end too early. Few of them are near the brink, so that tests of all of them hardly see it. So: let
a be so low that few draws are below it in one coordinate. A draw x ~ p and its copies along that
coordinate (see `orbits`) make "x is below a" a coin of known probability,

    π(x) = Σ_k w_k [copy k is below a],

and draws near a have many copies beyond. The number of draws below a must not fall short of Σ π.
The brink comes from one half of the draws, and the other half is tested, so that no chance chooses
it.

Draws along a thin, bent ridge leave it by a step along any coordinate. So copies go also along the
ridge: in the direction in which draws of the first half around the outermost one spread most.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import LITTLE, HostDensity

_BEYOND = 2
"""Draws that lie beyond the brink in the half that sets it."""

_COPIES, _STEPS = 12, (0.5, 0.15)
"""Steps in the width of the coordinate given all others, as far as a Gaussian tells it; the smaller
for where it is narrower than that."""

_AROUND, _ALONG = 40, 0.5
"""Draws around the outermost one, which show a ridge; and steps along it, in their width."""

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
    only: Sequence[int] | None = None,
) -> list[Brink]:
    """Both ends of every coordinate, or of some; p-values not yet corrected for their number."""
    generator = np.random.default_rng(seed)
    half = len(points) // 2
    if half < 40 or density.effort < LITTLE:
        return []
    dim = frame.dim
    chosen = np.arange(dim) if only is None else np.asarray(only, int)
    most = density.share_of(_MOST_COORDINATES, 2)
    if len(chosen) > most:
        chosen = np.sort(generator.choice(chosen, most, replace=False))
    halves = (points[:half], points[half : 2 * half])
    found = []
    for i in chosen.tolist():
        for sign in (1.0, -1.0):
            for step in _STEPS:
                length = step * frame.conditional[i] * np.eye(dim)[i]
                found.append(
                    _brink(density, halves, i, sign, names[i], lambda *_, at=length: at, generator)
                )
            found.append(_brink(density, halves, i, sign, names[i], _along_ridge, generator))
    return found


def _brink(
    density: HostDensity,
    halves: tuple[Cloud, Cloud],
    i: int,
    sign: float,
    name: str,
    direction: Callable[[Cloud, int], np.ndarray],
    generator: np.random.Generator,
) -> Brink:
    """Each half sets the brink, and the step between copies, once."""
    expected, beyond, ends = 0.0, 0, []
    for setting, tested in (halves, halves[::-1]):
        column = sign * setting[:, i]
        brink = float(np.sort(column)[_BEYOND])
        step = direction(setting, int(np.argmin(column)))
        nearest = np.argsort(np.abs(sign * tested[:, i] - brink))[:_NEAREST]
        belong, are = _expected(density, tested[nearest], i, sign, brink, step, generator)
        expected, beyond = expected + belong, beyond + are
        ends.append(sign * brink)
    p_value = float(stats.poisson.cdf(beyond, expected))
    return Brink(name, sign > 0, float(np.mean(ends)), beyond, expected, p_value)


def _along_ridge(points: Cloud, outermost: int) -> np.ndarray:
    """A step along the widest direction of the draws around the outermost one.

    Around that one alone: a bent ridge may come to the same brink with both of its ends.
    """
    unit = np.std(points, axis=0)
    units = points / np.where(unit > 0.0, unit, 1.0)
    near = np.argsort(np.sum((units - units[outermost]) ** 2, axis=1))[:_AROUND]
    widths, axes = np.linalg.eigh(np.atleast_2d(np.cov(units[near], rowvar=False)))
    return _ALONG * unit * axes[:, -1] * np.sqrt(max(widths[-1], 0.0))


def _expected(
    density: HostDensity,
    tested: Cloud,
    i: int,
    sign: float,
    brink: float,
    step: Float[np.ndarray, " dim"],
    generator: np.random.Generator,
) -> tuple[float, int]:
    """Σ π over the tested draws, and how many are beyond the brink."""
    n, dim = tested.shape
    place = generator.integers(_COPIES, size=(n,))
    times = np.arange(_COPIES) - place[:, None]
    moved = tested[:, None] + times[:, :, None] * step
    values = density.values(moved.reshape(-1, dim)).reshape(n, _COPIES)
    usable = np.isfinite(values[np.arange(n), place])
    values, moved = values[usable], moved[usable]
    weights = np.exp(values - np.max(values, axis=1, keepdims=True, initial=-np.inf))
    weights /= np.sum(weights, axis=1, keepdims=True)
    inside = np.sum(np.where(sign * moved[:, :, i] < brink, weights, 0.0), axis=1)
    return float(np.sum(inside)), int(np.sum(sign * tested[usable][:, i] < brink))
