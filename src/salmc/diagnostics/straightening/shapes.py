"""The shape of a funnel in a cloud: its scale, its effects, their powers and centres.

Of all powers a and centres c those are taken that make the effects y = c + e^{−a (s − m)} (θ − c)
narrowest, which is maximum likelihood of a Gaussian (`diagnostics.straightening.search`).
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.straightening.funnel import LARGEST, Funnel
from salmc.diagnostics.straightening.search import Units, are_empty, likelihood
from salmc.diagnostics.straightening.turns import with_turns
from salmc.diagnostics.straightening.weighted_moments import WeightedMoments
from salmc.straight import Straight

_MOST_CENTRES, _LEAST_CENTRE = 4, 0.05
"""Effects that rather are centres of the others: how many, and what each must gain."""

_LIKELY_CENTRES = 6
"""Of the effects that are tried as centres: a centre goes with all the others."""

_CANDIDATES = 3
_EMPTY = -0.5
"""Excess kurtosis of effects below which there are none in the middle."""

_GRID = np.array([0.15, 0.3, 0.5, 0.75, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0])
"""Powers in standard units of s, of either sign."""

_NATURAL, _AS_GOOD = np.array([1.0, 0.5]), 0.02
"""Powers of a log standard deviation and a log variance; and how much better, in log variance, what
was fitted must be than what models are written with: these, and centres that are one coordinate."""


def best_funnel(cloud: Units, shown: Float[np.ndarray, "dim dim"]) -> tuple[float, Straight | None]:
    """The funnel that gains most on held-out points, and what it gains.

    Args:
        cloud: built on every other point.
        shown: how much each coordinate has to do with the spread of each other one.
    """
    built, held = cloud._replace(units=cloud.units[::2]), cloud.units[1::2]
    best, most = None, -np.inf
    plain = likelihood(built.units, held)
    for scale in np.argsort(-np.sum(shown, axis=1))[:_CANDIDATES].tolist():
        members = np.flatnonzero(shown[scale])
        if not len(members):
            break
        shape = _fitted(built, scale, members)
        if not _is_filled(shape, built.units):
            continue
        gain = _gained(shape, built.units, held) - plain
        if gain > most:
            best, most = shape, gain
    if best is None:
        return most, None
    tried = with_turns(built, best)
    gain = _gained(tried, built.units, held) - plain
    best, most = (tried, gain) if gain > most else (best, most)
    return most, best.in_own_units(cloud)


def _gained(shape: Funnel, built: Cloud, held: Cloud) -> float:
    """Mean log density of held-out points, by a Gaussian in straight coordinates."""
    found = likelihood(shape.straighten(built), shape.straighten(held))
    return found - float(np.sum(np.mean(shape.growth(held)[0], axis=0)))


def _fitted(cloud: Units, scale: int, members: np.ndarray) -> Funnel:
    """Powers and centres of effects; those that rather serve as centres of the others do so."""

    moments = WeightedMoments.of(cloud.units, _growth(cloud.units[:, scale], -_grid(cloud, scale)))

    def shape(members: np.ndarray) -> tuple[float, Funnel]:
        rest = np.setdiff1d(np.arange(len(cloud.middle)), [scale, *members.tolist()])
        found = Funnel.plain(scale, members, rest, *_powers(cloud, scale, members, rest, moments))
        spread = np.cov(found.straighten(cloud.units), rowvar=False)
        return float(np.linalg.slogdet(spread)[1]), found

    least, best = shape(members)
    for _ in range(min(_MOST_CENTRES, len(members) - 1)):
        among = np.abs(np.corrcoef(cloud.units[:, best.members], rowvar=False))
        likely = best.members[np.argsort(-np.sum(among, axis=0))[:_LIKELY_CENTRES]]
        tried = [shape(np.setdiff1d(best.members, [member])) for member in likely]
        lower, found = min(tried, key=lambda pair: pair[0])
        if lower > least - 2.0 * _LEAST_CENTRE:
            break
        least, best = lower, found
    return best


def _is_filled(shape: Funnel, units: Cloud) -> bool:
    """Whether effects lie about their centres: the arms of a banana open as well, and are empty."""
    return not np.any(are_empty(shape.away(units), _EMPTY))


def _grid(cloud: Units, scale: int) -> Float[np.ndarray, " powers 1"]:
    """Powers to try, natural ones first."""
    width = cloud.width[scale]
    # In other units than a logarithm's these may be any number, and mean nothing.
    natural = _NATURAL * width * (width <= _GRID[-1])
    return np.concatenate([[0.0], natural, -natural, _GRID, -_GRID])[:, None]


def _powers(
    cloud: Units,
    scale: int,
    members: np.ndarray,
    rest: np.ndarray,
    moments: WeightedMoments,
) -> tuple[np.ndarray, np.ndarray]:
    """The power of each effect, and the weights of its centre: the least variance of y.

    For a power a, centres by least squares weighted with e^{−2as}, or as models are written.
    """
    plain = _plain_centres(cloud, members, rest)
    best = np.full(len(members), np.inf)
    powers, weights = np.zeros(len(members)), np.zeros(plain.shape[1:])
    for number, power in enumerate(_grid(cloud, scale)[:, 0]):
        part = moments.of_power(number, rest, members)
        centres = np.concatenate([part.least_squares()[None], plain])
        spread = np.log(part.variances(centres)) - (
            _AS_GOOD if number <= 2 * len(_NATURAL) else 0.0
        )
        spread[1:] -= _AS_GOOD
        chosen = np.argmin(spread, axis=0)
        least = np.take_along_axis(spread, chosen[None], axis=0)[0]
        better = least < best
        best = np.where(better, least, best)
        powers = np.where(better, power, powers)
        weights = np.where(better, centres[chosen, :, np.arange(len(members))].T, weights)
    return powers, weights


def _plain_centres(
    cloud: Units, members: np.ndarray, rest: np.ndarray
) -> Float[np.ndarray, "centres known members"]:
    """Weights of centres that are 0, or one other coordinate as it is."""
    middle, width = cloud.middle, cloud.width
    found = []
    for row in range(-1, len(rest)):
        weights = np.zeros((len(rest) + 1, len(members)))
        weights[-1] = -middle[members] / width[members]
        if row >= 0:
            weights[row] = width[rest[row]] / width[members]
            weights[-1] += middle[rest[row]] / width[members]
        found.append(weights)
    return np.stack(found)


def _growth(scale: np.ndarray, power: np.ndarray | float) -> np.ndarray:
    """e^{as}, which must not overflow where a tail is heavy."""
    return np.exp(np.clip(scale * power, -LARGEST, LARGEST))
