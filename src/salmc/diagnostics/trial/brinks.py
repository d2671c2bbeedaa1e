"""Brinks: do draws stop where the density does not?

A pool that never reached the neck of a funnel gives draws that are right everywhere they go and
end too early. Few of them are near the brink, so that tests of all of them hardly see it. So: let
a be so low that few draws are below it in one coordinate. A draw x ~ p and its copies along that
coordinate (see `orbits`) make "x is below a" a coin of known probability,

    π(x) = Σ_k w_k [copy k is below a],

and draws near a have many copies beyond. The number of draws below a must not fall short of Σ π.
The brink comes from one half of the draws, and the other half is tested, so that no chance chooses
it.

Sharper is to exchange the two sides: a step v across the brink takes the draws from v_i before it
to the brink to as many beyond, and these back. Of each such draw the density says by itself on
which side it is, and no copy is spent on places that are beyond neither.

Draws along a thin, bent ridge leave it by a step along any coordinate. So copies go also along the
ridge: in the direction in which draws of the first half around the outermost one spread most.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special, stats

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import LITTLE, HostDensity

BEYOND = 2
"""Draws that lie beyond the brink in the half that sets it."""

_COPIES, _STEPS = 12, (0.5, 0.15)
"""Steps in the width of the coordinate given all others, as far as a Gaussian tells it; the smaller
for where it is narrower than that."""

_AROUND, _ALONG = 40, 0.5
"""Draws around the outermost one, which show a ridge; and steps along it, in their width."""

_NEAREST = 150
"""Draws nearest to the brink, which have copies beyond it; others would add nothing."""

_MOST_COORDINATES = 40

_BANDS = (15, 60)
"""Draws of the half that sets a brink, in as wide a band before it as a step across leads."""

Way = Callable[[Cloud, int], np.ndarray]
"""From the half that sets a brink, and its outermost draw: the step between copies."""


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
    both: bool = False
    """Whether draws beyond both ends are counted together."""


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
        steps = [step * frame.conditional[i] * np.eye(dim)[i] for step in _STEPS]
        ways = [*map(_always, steps), _along_ridge]
        ends = [
            [_end(halves, i, sign, way, generator), _end(halves[::-1], i, sign, way, generator)]
            for sign in (1.0, -1.0)
            for way in ways
        ]
        found += _judged(density, ends, i, names[i])
        found += _across(density, halves, frame, i, names[i])
    return found


def _across(
    density: HostDensity, halves: tuple[Cloud, Cloud], frame: Frame, i: int, name: str
) -> list[Brink]:
    """Draws on both sides of a brink, against what the density says of each and its image."""
    # Others follow the coordinate as far as they go with it on a straight line.
    covariance = frame.factor @ frame.factor.T
    along = frame.scale * covariance[i] / (frame.scale[i] * covariance[i, i])
    found = []
    for sign in (1.0, -1.0):
        for band in _BANDS:
            own, images, beyond, brink = [], [], [], 0.0
            for setting, tested in (halves, halves[::-1]):
                column = np.sort(sign * setting[:, i])
                brink = column[BEYOND]
                step = column[min(BEYOND + band, len(column) - 1)] - brink
                inside = sign * tested[:, i] - brink
                near = (inside >= -step) & (inside < step)
                own.append(tested[near])
                beyond.append(inside[near] < 0.0)
                way = sign * np.where(beyond[-1], step, -step)
                images.append(tested[near] + way[:, None] * along)
            values = density.values(np.concatenate([*own, *images])).reshape(2, -1)
            known, out = np.isfinite(values[0]), np.concatenate(beyond)
            stays = special.expit(values[0, known] - values[1, known])
            expected = float(np.sum(np.where(out[known], stays, 1.0 - stays)))
            count = int(np.sum(out[known]))
            p_value = float(stats.poisson.cdf(count, expected))
            found.append(Brink(name, sign > 0, sign * float(brink), count, expected, p_value))
    return found


class _End(NamedTuple):
    """Draws of one half near an end that the other half has set, and their copies."""

    sign: float
    brink: float
    moved: Float[np.ndarray, "n copies dim"]
    place: Int[np.ndarray, " n"]
    """Of the draw itself among its copies."""

    def counted(self, values: Float[np.ndarray, "n copies"], i: int) -> tuple[float, int]:
        """Σ π over the draws, and how many are beyond the brink; from log p of all copies."""
        rows = np.arange(len(self.place))
        usable = np.isfinite(values[rows, self.place])
        values, beyond = values[usable], self.sign * self.moved[usable][:, :, i] < self.brink
        weights = np.exp(values - np.max(values, axis=1, keepdims=True, initial=-np.inf))
        weights /= np.sum(weights, axis=1, keepdims=True)
        own = beyond[np.arange(len(beyond)), self.place[usable]]
        return float(np.sum(np.where(beyond, weights, 0.0))), int(np.sum(own))


def _end(
    halves: Sequence[Cloud], i: int, sign: float, way: Way, generator: np.random.Generator
) -> _End:
    """The first half sets the brink, and the step between copies of draws of the second."""
    setting, tested = halves
    column = sign * setting[:, i]
    brink = float(np.sort(column)[BEYOND])
    step = way(setting, int(np.argmin(column)))
    inside = sign * tested[:, i] - brink
    nearest = np.argsort(np.abs(inside))[:_NEAREST]
    # From further inside no copy comes to the brink: such a draw adds nothing.
    nearest = nearest[inside[nearest] <= (_COPIES - 1) * np.abs(step[i])]
    place = generator.integers(_COPIES, size=len(nearest))
    times = np.arange(_COPIES) - place[:, None]
    return _End(sign, brink, tested[nearest][:, None] + times[:, :, None] * step, place)


def _judged(density: HostDensity, ends: list[list[_End]], i: int, name: str) -> list[Brink]:
    """Both halves of each end together; all copies in one call, as calls cost more than points."""
    copies = [end.moved.reshape(-1, density.dim) for both in ends for end in both]
    values = density.values(np.concatenate(copies))
    parts = iter(np.split(values, np.cumsum([len(part) for part in copies])[:-1]))
    found = []
    for both in ends:
        counts = [end.counted(next(parts).reshape(-1, _COPIES), i) for end in both]
        expected, beyond = sum(belong for belong, _ in counts), sum(are for _, are in counts)
        p_value = float(stats.poisson.cdf(beyond, expected))
        at = both[0].sign * float(np.mean([end.brink for end in both]))
        found.append(Brink(name, both[0].sign > 0, at, beyond, expected, p_value))
    return found


def _always(step: np.ndarray) -> Way:
    """The same step whatever the draws are."""
    return lambda points, outermost: step


def _along_ridge(points: Cloud, outermost: int) -> np.ndarray:
    """A step along the widest direction of the draws around the outermost one.

    Around that one alone: a bent ridge may come to the same brink with both of its ends.
    """
    unit = np.std(points, axis=0)
    units = points / np.where(unit > 0.0, unit, 1.0)
    near = np.argsort(np.sum((units - units[outermost]) ** 2, axis=1))[:_AROUND]
    away = units[near] - np.mean(units[near], axis=0)
    _, widths, axes = np.linalg.svd(away / np.sqrt(len(near) - 1.0), full_matrices=False)
    return _ALONG * unit * axes[0] * widths[0]
