"""Exchanges of modes: are draws divided between two modes as the density divides its mass?

Around each of two modes the hunt has a Gaussian, N(m, C) and N(m′, C′). The affine map between them
that moves least,

    T(x) = m′ + A (x − m),    A = C^{−½} (C^{½} C′ C^{½})^{½} C^{−½},

takes an ellipsoid E around the one to E′ = T(E) around the other. A draw in either of them and its
image, T(x) or T⁻¹(x), are a pair; given the pair, an exact draw is the one in E′ with probability

    π = p(x′) |A| / (p(x) + p(x′) |A|),

whatever p, m and C are: an orbit test (`orbits`) with two copies. So the number of draws in E′ must
be Σ π, up to an error whose variance is Σ π (1 − π). Shapes need not be Gaussian; where they are,
all π are nearly alike, and the shares of the modes are told as well as counting can tell them.

Of several modes one may have a little too much of all the others. So the same with all of them at
once: a draw and its images in every other mode, T_j T_i⁻¹(x), are an orbit, of which the density
says how likely each is. Many modes may each be off by less than counting tells, but outer ones all
alike: so their mean distance from the heaviest is compared as well.

Masses by importance sampling (`hunt.masses`) have errors of their own, and see no more than a mode
that is off by half.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import optimize, special, stats

from salmc.diagnostics.hunt.masses import Region
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.dependence import inflation
from salmc.diagnostics.trial.host import HostDensity

_INSIDE = 0.95
"""Share of a mode that an ellipsoid holds, where the mode is a Gaussian."""

_POINTS = 4000
_MOST_TOGETHER, _IMAGES = 16, 96_000
"""Modes, the heaviest, that are asked about together; and images of draws for that."""

_LEAST_VARIANCE = 10.0
"""Of the number of draws, from which on it is as good as normal."""


class Exchange(NamedTuple):
    """Draws around one mode beside those around another."""

    position: Float[np.ndarray, " dim"]
    beside: Float[np.ndarray, " dim"] | None
    """The other mode; None for all others together."""
    times: float
    """How many times as many draws are there as belong there, beside those around the other."""
    p_value: float
    outward: bool = False
    """Whether it is of all modes, by how far they are from the heaviest; `times`, the distance."""


def exchanges(
    density: HostDensity,
    points: Cloud,
    regions: Sequence[Region],
    seed: int = 0,
    order: np.ndarray | None = None,
) -> list[Exchange]:
    """The heaviest modes beside each other, and those that this does not tell of beside the
    heaviest; p-values not yet corrected for their number.

    Args:
        density: in the coordinates of the points.
        points: (n, dim), nearly independent draws in random order.
        regions: around modes.
        seed: of all random choices.
        order: (n,), when each point was drawn; None for independent ones.
    """
    if len(regions) < 2:
        return []
    order = np.arange(len(points)) if order is None else order
    generator = np.random.default_rng(seed)
    # By the density alone: the mode with most draws would have more than it should.
    known = [place.log_mass if np.isfinite(place.error) else -np.inf for place in regions]
    heaviest = np.argsort(known)[::-1][:_MOST_TOGETHER].tolist()
    first, found = heaviest[0], _together(density, points, order, [regions[i] for i in heaviest])
    told = {id(exchange.position) for exchange in found}
    for i, other in enumerate(regions):
        if i != first and id(other.centre) not in told:
            size = min(density.share_of(_POINTS, 60), len(points))
            some = generator.choice(len(points), size, replace=False)
            exchange = _exchange(density, points[some], order[some], regions[first], other)
            found += [] if exchange is None else [exchange]
    return found


def _exchange(
    density: HostDensity, points: Cloud, order: np.ndarray, first: Region, other: Region
) -> Exchange | None:
    forward = _least_map(first.factor, other.factor)
    if forward is None:
        return None
    here, there = _is_around(first, points), _is_around(other, points)
    inside = here != there
    points, order, there = points[inside], order[inside], there[inside]
    images = np.where(
        there[:, None],
        first.centre + np.linalg.solve(forward, (points - other.centre).T).T,
        other.centre + (points - first.centre) @ forward.T,
    )
    # Ellipsoids that overlap: a pair counts if each of the two is in one of them alone.
    apart = _is_around(first, images) != _is_around(other, images)
    points, images, there, order = points[apart], images[apart], there[apart], order[apart]
    if len(points) < _LEAST_VARIANCE:
        return None
    own, at_image = density.values(points), density.values(images)
    volume = float(np.linalg.slogdet(forward)[1])
    gain = np.where(there, own - at_image, at_image - own) + volume
    return _counted(gain, there, order, first, other)


def _is_around(place: Region, points: Cloud) -> np.ndarray:
    return np.sum(place.units(points) ** 2, axis=1) <= _radius_squared(points.shape[1])


@functools.cache
def _radius_squared(dim: int) -> float:
    return float(stats.chi2.ppf(_INSIDE, dim))


def _are_one(place: Region, other: Region) -> bool:
    return bool(
        _is_around(place, other.centre[None])[0] or _is_around(other, place.centre[None])[0]
    )


def _together(
    density: HostDensity, points: Cloud, order: np.ndarray, places: list[Region]
) -> list[Exchange]:
    """Each of three modes or more beside all others; the heaviest is the first."""
    pairs: list[tuple[Region, np.ndarray]] = []
    for place in places:
        to = _least_map(places[0].factor, place.factor)
        # Climbs may have ended twice in one mode.
        if to is not None and not any(_are_one(place, other) for other, _ in pairs):
            pairs.append((place, to))
    if len(pairs) < 3:
        return []
    modes, count = [place for place, _ in pairs], len(pairs)
    points = points[: density.share_of(_IMAGES // count, 60)]
    order = order[: len(points)]
    around = np.stack([_is_around(place, points) for place in modes], axis=1)
    alone = np.sum(around, axis=1) == 1
    points, order, where = points[alone], order[alone], np.argmax(around[alone], axis=1)
    away = np.zeros_like(points)
    for i, (place, to) in enumerate(pairs):
        away[where == i] = np.linalg.solve(to, (points[where == i] - place.centre).T).T
    images = [place.centre + away @ to.T for place, to in pairs]
    # Ellipsoids that overlap: an orbit counts if each of its points is in one of them alone.
    others = [sum(_is_around(place, x).astype(int) for place in modes) == 1 for x in images]
    apart = np.all(others, axis=0)
    where, order = where[apart], order[apart]
    if len(where) < _LEAST_VARIANCE:
        return []
    values = np.stack([density.values(x[apart]) for x in images], axis=1)
    values += [float(np.linalg.slogdet(to)[1]) for _, to in pairs]
    belong = special.softmax(values, axis=1)
    expected, variance = np.sum(belong, axis=0), np.sum(belong * (1.0 - belong), axis=0)
    drawn, terms = np.bincount(where, minlength=count), np.eye(count)[where] - belong
    found = [
        Exchange(
            place.centre,
            None,
            *_surprise(
                float(drawn[i]),
                float(expected[i]),
                float(variance[i]) * inflation(terms[:, i], order),
            ),
        )
        for i, place in enumerate(modes)
        if variance[i] >= _LEAST_VARIANCE
    ]
    distance = np.linalg.norm(modes[0].units(np.array([place.centre for place in modes])), axis=1)
    away = belong @ distance
    spread = float(np.sum(belong @ distance**2 - away**2))
    # No term is larger than the largest distance: a sum so wide is as good as normal.
    if spread >= _LEAST_VARIANCE * np.max(distance) ** 2:
        spread *= inflation(distance[where] - away, order)
        sizes = float(np.sum(distance[where])), float(np.sum(away)), spread
        found.append(Exchange(modes[0].centre, None, *_surprise(*sizes), True))
    return found


def _surprise(drawn: float, expected: float, variance: float) -> tuple[float, float]:
    """How many times as much, and the p-value of so much or so little."""
    size = abs(drawn - expected) / np.sqrt(variance)
    return float(drawn / expected), 2.0 * float(stats.norm.sf(size))


def _counted(
    gain: Numbers, there: np.ndarray, order: np.ndarray, first: Region, other: Region
) -> Exchange | None:
    """The number of draws around the other mode, against log odds of being there."""
    belong = special.expit(gain)
    variance = float(np.sum(belong * (1.0 - belong)))
    if not variance >= _LEAST_VARIANCE:
        return None
    variance *= inflation(there - belong, order)
    count, expected = int(np.sum(there)), float(np.sum(belong))
    p_value = _surprise(float(count), expected, variance)[1]

    def excess(shift: float) -> float:
        return float(np.sum(special.expit(gain + shift))) - count

    low, high = -50.0, 50.0
    if excess(low) * excess(high) < 0.0:
        times = float(np.exp(optimize.brentq(excess, low, high)))
    else:
        times = 0.0 if count == 0 else np.inf
    return Exchange(other.centre, first.centre, times, p_value)


def _least_map(
    first: Float[np.ndarray, "dim dim"], other: Float[np.ndarray, "dim dim"]
) -> np.ndarray | None:
    """A with A C A = C′, symmetric and positive; None where numbers do not allow it."""
    # In units in which the first is not stretched, or else squares lose their digits.
    scale = np.sqrt(np.sum(first**2, axis=1))
    one, two = first / scale[:, None], other / scale[:, None]
    values, axes = np.linalg.eigh(one @ one.T)
    if not values[0] > 1e-12 * values[-1]:
        return None
    root, inverse = ((axes * values**power) @ axes.T for power in (0.5, -0.5))
    inner, inner_axes = np.linalg.eigh(root @ two @ two.T @ root)
    if not inner[0] > 0.0:
        return None
    middle = (inner_axes * np.sqrt(inner)) @ inner_axes.T
    return scale[:, None] * (inverse @ middle @ inverse) / scale
