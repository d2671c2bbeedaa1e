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
Masses by importance sampling (`hunt.masses`) have errors of their own, and see no more than a mode
that is off by half.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import optimize, special, stats

from salmc.diagnostics.hunt.masses import Region
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.host import HostDensity

_INSIDE = 0.95
"""Share of a mode that an ellipsoid holds, where the mode is a Gaussian."""

_POINTS = 4000
_LEAST_VARIANCE = 10.0
"""Of the number of draws, from which on it is as good as normal."""


class Exchange(NamedTuple):
    """Draws around one mode beside those around another."""

    position: Float[np.ndarray, " dim"]
    beside: Float[np.ndarray, " dim"]
    """The other mode."""
    times: float
    """How many times as many draws are there as belong there, beside those around the other."""
    p_value: float


def exchanges(
    density: HostDensity, points: Cloud, regions: Sequence[Region], seed: int = 0
) -> list[Exchange]:
    """Each mode beside the heaviest; p-values not yet corrected for their number."""
    if len(regions) < 2:
        return []
    generator = np.random.default_rng(seed)
    # By the density alone: the mode with most draws would have more than it should.
    known = [place.log_mass if np.isfinite(place.error) else -np.inf for place in regions]
    first = int(np.argmax(known))
    found = []
    for i, other in enumerate(regions):
        if i != first:
            size = min(density.share_of(_POINTS, 60), len(points))
            some = points[generator.choice(len(points), size, replace=False)]
            exchange = _exchange(density, some, regions[first], other)
            found += [] if exchange is None else [exchange]
    return found


def _exchange(density: HostDensity, points: Cloud, first: Region, other: Region) -> Exchange | None:
    forward = _least_map(first.factor, other.factor)
    if forward is None:
        return None
    radius = float(stats.chi2.ppf(_INSIDE, points.shape[1]))

    def is_around(place: Region, x: Cloud) -> np.ndarray:
        return np.sum(place.units(x) ** 2, axis=1) <= radius

    here, there = is_around(first, points), is_around(other, points)
    inside = here != there
    points, there = points[inside], there[inside]
    images = np.where(
        there[:, None],
        first.centre + np.linalg.solve(forward, (points - other.centre).T).T,
        other.centre + (points - first.centre) @ forward.T,
    )
    # Ellipsoids that overlap: a pair counts if each of the two is in one of them alone.
    apart = is_around(first, images) != is_around(other, images)
    points, images, there = points[apart], images[apart], there[apart]
    if len(points) < _LEAST_VARIANCE:
        return None
    own, at_image = density.values(points), density.values(images)
    volume = float(np.linalg.slogdet(forward)[1])
    gain = np.where(there, own - at_image, at_image - own) + volume
    return _counted(gain, there, first, other)


def _counted(gain: Numbers, there: np.ndarray, first: Region, other: Region) -> Exchange | None:
    """The number of draws around the other mode, against log odds of being there."""
    belong = special.expit(gain)
    variance = float(np.sum(belong * (1.0 - belong)))
    if not variance >= _LEAST_VARIANCE:
        return None
    count, expected = int(np.sum(there)), float(np.sum(belong))
    p_value = 2.0 * float(stats.norm.sf(abs(count - expected) / np.sqrt(variance)))

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
