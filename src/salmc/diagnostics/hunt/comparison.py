"""Draws against masses: how many go with how much, and which modes have too few or too many.

An ellipsoid is weighed by points of its Gaussian (`masses`). A peak inside that is so narrow that
none of them met it would be mass that was not counted, and draws that were: of draws likelier than
all that weighed it none is counted either, so that both are of the same part of the ellipsoid,

    E ∩ {log p ≤ h},    h the largest log p that was seen.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy import stats

from salmc.diagnostics.hunt.masses import Region, region
from salmc.diagnostics.point_sets import Cloud, Numbers, squared_distances
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

_NEIGHBOURS, _LOCAL = 150, 4
"""Ellipsoids of neighbouring draws, which say how many draws go with how much mass."""

_LEAST_DRAWS = 30
_LEAST_SHARE = 0.003
"""A mode of less is let go: few questions are changed by it."""

_ERROR = 0.3
"""Largest relative error of a mass that counts."""

_LEVEL = 1e-5
_WEIGHT_FACTOR = 1.25
"""Weights of modes may be off by so much."""


@dataclasses.dataclass(frozen=True, eq=False)
class Mode:
    """A mode, with what belongs there and what is there.

    Attributes:
        position: in the density's own coordinates.
        share: of all mass, that belongs into the region around it.
        drawn: share of the draws that are there.
        factor: A of a Gaussian N(position, A Aᵀ) that is about as wide.
    """

    position: np.ndarray
    share: float
    drawn: float
    factor: np.ndarray


def draws_for_mass(
    density: HostDensity,
    points: Cloud,
    values: Numbers,
    frame: Frame,
    modes: Sequence[Region],
    generator: np.random.Generator,
) -> tuple[float, float]:
    """log of the number of draws that go with unit mass, and its error; NaN if it cannot be told.

    Regions are built on one half of the draws and count the other, so that chance, which makes some
    places fuller than others, does not choose them.
    """
    half = len(points) // 2
    built, counted, heights = points[:half], points[half:], values[half:]
    regions = list(modes)
    units = frame.inward(built)
    size = min(_NEIGHBOURS + 10 * frame.dim, half // 2)
    for at in generator.choice(half, min(_LOCAL, half), replace=False):
        near = np.argsort(squared_distances(units[at : at + 1], units)[0])[:size]
        covariance = np.atleast_2d(np.cov(built[near] / frame.scale, rowvar=False))
        try:
            factor = np.linalg.cholesky(covariance + 1e-9 * np.eye(frame.dim))
        except np.linalg.LinAlgError:
            continue
        centre, factor = np.mean(built[near], axis=0), frame.scale[:, None] * factor
        regions.append(region(density, centre, factor, generator))
    rates, precisions = [], []
    for place in regions:
        held = _held(place, counted, heights)
        if held >= _LEAST_DRAWS and place.error < _ERROR:
            rates.append(np.log(held * len(points) / len(counted)) - place.log_mass)
            precisions.append(1.0 / (1.0 / held + place.error**2))
    if not rates:
        return float("nan"), float("inf")
    # The median by precision: of several modes with wrong weights, most draws decide.
    order = np.argsort(rates)
    cumulative = np.cumsum(np.array(precisions)[order])
    middle = order[int(np.searchsorted(cumulative, 0.5 * cumulative[-1]))]
    return float(rates[middle]), float(precisions[middle] ** -0.5)


def _held(place: Region, points: Cloud, values: Numbers) -> int:
    """Draws in a region, but for those likelier than all that weighed it."""
    return int(np.sum(place.holds(points) & (values <= place.highest)))


def compare(
    modes: Sequence[Region], points: Cloud, values: Numbers, rate: float, rate_error: float
) -> tuple[tuple[Mode, ...], tuple[Mode, ...]]:
    """Modes that draws lack, the heaviest first; and others that they visit too often or rarely.

    Args:
        modes: regions around them.
        points, values: (n, dim) draws, and log p there.
        rate, rate_error: log of the draws that go with unit mass, and its error.
    """
    count = len(points)
    missed: list[Mode] = []
    wrong: list[Mode] = []
    usable = [place for place in modes if place.error <= _ERROR]
    belong = [float(np.exp(np.minimum(rate + place.log_mass, 700.0))) for place in usable]
    held_by = [_held(place, points, values) for place in usable]
    # All draws, if each mode had as many as belong there; regions that overlap count but once.
    total = float(count)
    for i, place in enumerate(usable):
        if not any(other.holds(place.centre[None])[0] for other in usable[:i]):
            total += belong[i] - held_by[i]
    for place, expected, held in zip(usable, belong, held_by, strict=True):
        share = expected / max(total, expected)
        error = float(np.hypot(place.error, rate_error))
        low, high = expected * np.exp(-4.0 * error), expected * np.exp(4.0 * error)
        too_few = stats.poisson.cdf(held, low / _WEIGHT_FACTOR)
        too_many = stats.poisson.sf(held - 1, high * _WEIGHT_FACTOR)
        mode = Mode(place.centre, share, held / count, place.factor)
        if too_few < _LEVEL and share > _LEAST_SHARE:
            (missed if mode.drawn < 0.1 * share else wrong).append(mode)
        elif too_many < _LEVEL and held > 2 * _LEAST_DRAWS:
            wrong.append(mode)
    missed, wrong = _apart(missed, modes), _apart(wrong, modes)
    wrong.sort(key=lambda mode: -abs(np.log((mode.drawn + 1e-9) / mode.share)))
    return tuple(missed), tuple(wrong)


def _apart(found: list[Mode], regions: Sequence[Region]) -> list[Mode]:
    """The heaviest first, each but once: climbs without a gradient end all around a mode."""
    kept: list[Mode] = []
    around = {id(place.centre): place for place in regions}
    for mode in sorted(found, key=lambda mode: -mode.share):
        if not any(around[id(other.position)].holds(mode.position[None])[0] for other in kept):
            kept.append(mode)
    return kept
