"""The hunt: try to prove the draws wrong by finding mass that they lack.

Starts from far around and from copies of the draws, and particles tempered from afar, climb to
their modes; climbs from draws find the modes that are known. Each mode is weighed, and the number
of draws around it compared with what belongs there (`masses`). What is found and what was tried is
told in numbers: a needle that nothing came across remains a limit, and the reader sees of what.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from salmc.diagnostics.hunt.climbs import climb
from salmc.diagnostics.hunt.comparison import Mode, compare, draws_for_mass
from salmc.diagnostics.hunt.landings import landings
from salmc.diagnostics.hunt.masses import Region, mode_factor, region
from salmc.diagnostics.hunt.starts import copies, furthest, wide_places
from salmc.diagnostics.hunt.tempering import WIDEST, tempered_particles
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

_FROM_DRAWS, _MOST_COPIES = 24, 96
_MOST_MODES = 24
_SAME = 0.5
"""Ends of climbs nearer to a mode than this, in its own units over √dim, are the same."""

_ARRIVED, _FURTHER = 0.5, 8
"""By how much log p inside a region may exceed that of its centre; and how often, where it does,
the region moves to the highest place in it."""

_MOST_DIM = 200

_COMPARED, _MADE_UP = 32, 3.0
"""Draws beside which errors of single precision at modes are seen; and by how much log p may be too
high there."""


@dataclasses.dataclass(frozen=True, eq=False)
class Hunt:
    """What was tried, and what was found.

    Attributes:
        missed: modes that no draw, or far too few, went to; the heaviest first.
        wrong_weights: modes that draws visit too often or too rarely.
        modes: how many modes could be weighed.
        climbs, places, particles: starts of climbs, random places, tempered particles.
        width: the region searched, in widths of the draws.
        weighed: whether masses could be compared; or there was no need, as all climbs, those from
            draws too, came to one and the same mode.
        made_up: modes that single precision sees, and double precision does not.
        evaluations: of the density.
        regions: around all modes.
    """

    missed: tuple[Mode, ...] = ()
    wrong_weights: tuple[Mode, ...] = ()
    modes: int = 0
    climbs: int = 0
    places: int = 0
    particles: int = 0
    width: float = WIDEST
    weighed: bool = False
    made_up: int = 0
    evaluations: int = 0
    regions: tuple[Region, ...] = ()


def hunt(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    seen: Cloud | None = None,
    seed: int = 0,
    values: Numbers | None = None,
) -> Hunt:
    """Search for mass that draws lack.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), nearly independent draws in random order.
        frame: of the sample.
        names: of the coordinates; names such as mu[0] tell which may be exchanged together.
        seen: (m, dim), what training had found: those furthest from all draws are starts too.
        seed: of all random choices.
        values: (n,), log p at the points, where it is known.
    """
    before = density.evaluations
    generator = np.random.default_rng(seed)
    if frame.dim > _MOST_DIM:
        return Hunt()
    known = points[: density.share_of(_FROM_DRAWS, 8)]
    wide, places = wide_places(density, points, frame, generator)
    particles = tempered_particles(density, frame, generator)
    others = np.concatenate(
        [
            _some(wide, density.share_of(len(wide), 12), generator),
            landings(density, points, frame, generator),
            copies(points, frame, names, generator, density.share_of(_MOST_COPIES, 12)),
            _some(furthest(particles, points, frame), density.share_of(48, 8), generator),
            points[:0]
            if seen is None
            else _some(furthest(seen, points, frame), density.share_of(48, 8), generator),
        ]
    )
    ends, heights = climb(density, frame, np.concatenate([known, others]), seed)
    told = Hunt(climbs=len(ends), places=places, particles=len(particles))
    regions, lost = _modes(density, ends, heights, frame, generator)
    values = density.values(points) if values is None else values
    rate, error = draws_for_mass(density, points, values, frame, regions, generator)
    # A neck in which numbers end is a place where climbs meet, too, and tells nothing.
    one_mode = len(regions) == 1 and not lost and regions[0].summit is not None
    weighed = bool(np.isfinite(rate)) or one_mode
    found = dataclasses.replace(told, modes=len(regions), weighed=weighed, regions=tuple(regions))
    if np.isfinite(rate):
        missed, wrong = compare(regions, points, values, rate, error)
        found = dataclasses.replace(found, missed=missed, wrong_weights=wrong)
        found = _not_made_up(density, found, points)
    return dataclasses.replace(found, evaluations=density.evaluations - before)


def _some(points: Cloud, count: int, generator: np.random.Generator) -> Cloud:
    if len(points) <= count:
        return points
    return points[generator.choice(len(points), count, replace=False)]


def _modes(
    density: HostDensity,
    ends: Cloud,
    values: np.ndarray,
    frame: Frame,
    generator: np.random.Generator,
) -> tuple[list[Region], int]:
    """Regions around different ends of climbs, with their masses; and how many ends have none."""
    found: list[Region] = []
    lost, order = 0, np.argsort(-values)
    for number, at in enumerate(order):
        if len(found) >= density.share_of(_MOST_MODES, 4):
            return found, lost + len(order) - number
        place, known = _around(density, ends[at], values[at], found, frame, generator)
        lost += place is None and not known
        if place is not None:
            found.append(place)
    return found, lost


def _around(
    density: HostDensity,
    end: np.ndarray,
    value: float,
    known: list[Region],
    frame: Frame,
    generator: np.random.Generator,
) -> tuple[Region | None, bool]:
    """The region around the mode that a climb came near to, if there is a new one; and whether it
    is one that was known.

    A climb may end before it arrives: without a gradient it is slow, and heavy tails, where the
    slope is all but level, bring it to a halt. What is drawn to weigh the region shows it.
    """
    for _ in range(_FURTHER):
        if any(np.sqrt(np.mean(place.units(end[None]) ** 2)) < _SAME for place in known):
            return None, True
        factor = mode_factor(density, end, frame.scale)
        if factor is None or not np.all(np.isfinite(factor)):
            return None, False
        further, height = _newton(density, end, value, factor)
        if height > value + _ARRIVED:
            end, value = further, height
            continue
        place = region(density, end, factor, generator)
        if place.summit is None or place.highest < value + _ARRIVED:
            return place, False
        end, value = place.summit, place.highest
    return None, False


def _newton(
    density: HostDensity, end: np.ndarray, value: float, factor: np.ndarray
) -> tuple[np.ndarray, float]:
    """The best of Newton's step, halves of it, and none at all: in many dimensions climbs end
    slowly, and the highest of some draws around is no higher."""
    if not density.target.differentiable:
        return end, value
    slope = density.gradients(end[None])[0]
    if not np.all(np.isfinite(slope)):
        return end, value
    tried = end + np.array([1.0, 0.5, 0.25])[:, None] * (factor @ (factor.T @ slope))
    found = density.values(tried)
    best = int(np.argmax(np.where(np.isnan(found), -np.inf, found)))
    return (tried[best], float(found[best])) if found[best] > value else (end, value)


def _not_made_up(density: HostDensity, told: Hunt, points: Cloud) -> Hunt:
    """Without modes that only single precision sees: differences of large numbers, most often."""
    if not told.missed:
        return told
    places = np.concatenate([points[:_COMPARED], [mode.position for mode in told.missed]])
    exact = density.in_double(places)
    if exact is None:
        return told
    with np.errstate(invalid="ignore"):
        error = density.values(places) - exact
    at_draws, at_modes = error[: len(places) - len(told.missed)], error[-len(told.missed) :]
    usual = np.median(at_draws[np.isfinite(at_draws)]) if np.any(np.isfinite(at_draws)) else 0.0
    kept = [
        mode
        for mode, higher in zip(told.missed, at_modes - usual, strict=True)
        if higher < _MADE_UP
    ]
    return dataclasses.replace(told, missed=tuple(kept), made_up=len(told.missed) - len(kept))
