"""Which funnels a pool has, and the coordinates in which they are straight (`salmc.straight`).

A Gaussian is fitted to the pool in x and in candidates for y. By the change of variables its log
density at x, per point, is

    −½ log det Cov(y) − mean Σ a (s − m) + constant,

so that of all powers a, centres c and scales s those with the largest value suit the pool best:
maximum likelihood, on one half of the pool, and what is gained is what is gained on the other half.
No gradient and no evaluation of the density is needed.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud
from salmc.straight import Straight

_POINTS, _FEWEST_EACH = 4000, 20
_MOST_FUNNELS, _CANDIDATES, _MOST_CENTRES = 8, 3, 4
_SHOWN = 0.1
"""Correlation of a coordinate with the log spread of another, at which they may be a funnel."""

_LEAST_GAIN = 0.25
"""Of log density for each point, from one funnel more: less is not worth other coordinates."""

_LEAST_CENTRE = 0.05
_EMPTY = -0.5
"""Excess kurtosis below which the middle is empty; −1.2 is that of a uniform, −2 of two points."""

_GRID = np.array([0.15, 0.3, 0.5, 0.75, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0])
"""Powers in standard units of s, of either sign."""

_NATURAL, _AS_GOOD = np.array([1.0, 0.5]), 0.02
"""Powers of a log standard deviation and a log variance; and how much better, in log variance, what
was fitted must be than what models are written with: these, and centres that are one coordinate."""


_LARGEST = 60.0
"""Of exponents."""


class _Cloud(NamedTuple):
    """Points in standard units u, x = middle + width u."""

    units: Cloud
    middle: Float[np.ndarray, " dim"]
    width: Float[np.ndarray, " dim"]

    @classmethod
    def of(cls, points: Cloud) -> "_Cloud | None":
        middle, width = np.mean(points, axis=0), np.std(points, axis=0)
        few = len(points) < _FEWEST_EACH * points.shape[1] or points.shape[1] < 2
        if few or not np.all((width > 0.0) & np.isfinite(width)):
            return None
        return cls((points - middle) / width, middle, width)


class _Shape(NamedTuple):
    """A funnel in standard units: s, its effects, and the powers and centres of them."""

    scale: int
    members: np.ndarray
    rest: np.ndarray
    powers: Float[np.ndarray, " m"]
    weights: Float[np.ndarray, "r_and_one m"]

    def straighten(self, units: Cloud) -> Cloud:
        growth = _growth(units[:, [self.scale]], -self.powers)
        centres = _with_one(units[:, self.rest]) @ self.weights
        moved = units.copy()
        moved[:, self.members] = centres + growth * (units[:, self.members] - centres)
        return moved


def find_straight(points: Cloud) -> Straight | None:
    """The map that makes the funnels of a cloud straight; None where it shows none.

    Args:
        points: (n, dim), nearly independent, in random order.
    """
    found: list[Straight] = []
    points = np.asarray(points, np.float64)[:_POINTS]
    while len(found) < _MOST_FUNNELS:
        cloud = _Cloud.of(points)
        shape = None if cloud is None else _best_shape(cloud)
        if cloud is None or shape is None:
            break
        found.append(_in_own_units(shape, cloud))
        points = cloud.middle + cloud.width * shape.straighten(cloud.units)
    return Straight.of(found) if found else None


def shows_funnel(points: Cloud) -> bool:
    """Whether the spread of some coordinate goes with another: quick, and not strict."""
    cloud = _Cloud.of(np.asarray(points, np.float64)[:_POINTS])
    return cloud is not None and bool(np.max(np.abs(_bound_spreads(cloud.units))) > _SHOWN)


def _bound_spreads(units: Cloud) -> Float[np.ndarray, "dim dim"]:
    """Correlations of each coordinate with the log spread of each other one.

    The spread is around what all the others foretell by least squares, or around the median:
    whichever shows more. All residuals at once are −(u P)_j / P_jj with the precision P.
    """
    dim = units.shape[1]
    precision = np.linalg.inv(np.cov(units, rowvar=False) + 1e-9 * np.eye(dim))
    found = np.zeros((dim, dim))
    for spread in (units @ precision, units - np.median(units, axis=0)):
        logs = np.log(np.abs(spread) + 1e-30)
        both = np.nan_to_num(np.corrcoef(units, logs, rowvar=False)[:dim, dim:])
        found = np.where(np.abs(both) > np.abs(found), both, found)
    np.fill_diagonal(found, 0.0)
    return found


def _best_shape(cloud: _Cloud) -> _Shape | None:
    """The funnel that gains most on held-out points; None where none gains enough."""
    bound = _bound_spreads(cloud.units)
    shown = np.where(np.abs(bound) > _SHOWN, bound**2, 0.0)
    built, held = cloud._replace(units=cloud.units[::2]), cloud.units[1::2]
    best, most = None, _LEAST_GAIN
    plain = _likelihood(built.units, held)
    for scale in np.argsort(-np.sum(shown, axis=1))[:_CANDIDATES].tolist():
        members = np.flatnonzero(shown[scale])
        if not len(members):
            break
        shape = _fitted(built, scale, members)
        if not _is_filled(shape, built.units):
            continue
        gain = _likelihood(shape.straighten(built.units), shape.straighten(held)) - plain
        gain -= float(np.mean(held[:, scale]) * np.sum(shape.powers))
        if gain > most:
            best, most = shape, gain
    return best


def _is_filled(shape: _Shape, units: Cloud) -> bool:
    """Whether effects lie about their centres: the arms of a banana open as well, and are empty."""
    effects = shape.straighten(units)[:, shape.members]
    away = effects - _with_one(units[:, shape.rest]) @ shape.weights
    away = away - np.mean(away, axis=0)
    kurtosis = np.mean(away**4, axis=0) / np.mean(away**2, axis=0) ** 2 - 3.0
    return bool(np.all(kurtosis > _EMPTY))


def _likelihood(built: Cloud, held: Cloud) -> float:
    """Mean log density of held-out points by a Gaussian that was fitted to the others."""
    middle, covariance = np.mean(built, axis=0), np.cov(built, rowvar=False)
    covariance = covariance + 1e-12 * np.trace(covariance) * np.eye(len(middle))
    squares = np.sum((held - middle) * np.linalg.solve(covariance, (held - middle).T).T, axis=1)
    return float(-0.5 * (np.linalg.slogdet(covariance)[1] + np.mean(squares)))


def _fitted(cloud: _Cloud, scale: int, members: np.ndarray) -> _Shape:
    """Powers and centres of effects; those that rather serve as centres of the others do so."""

    def shape(members: np.ndarray) -> tuple[float, _Shape]:
        rest = np.setdiff1d(np.arange(len(cloud.middle)), [scale, *members.tolist()])
        found = _Shape(scale, members, rest, *_powers(cloud, scale, members, rest))
        spread = np.cov(found.straighten(cloud.units), rowvar=False)
        return float(np.linalg.slogdet(spread)[1]), found

    least, best = shape(members)
    for _ in range(min(_MOST_CENTRES, len(members) - 1)):
        tried = [shape(np.setdiff1d(best.members, [member])) for member in best.members]
        lower, found = min(tried, key=lambda pair: pair[0])
        if lower > least - 2.0 * _LEAST_CENTRE:
            break
        least, best = lower, found
    return best


def _powers(
    cloud: _Cloud, scale: int, members: np.ndarray, rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The power of each effect, and the weights of its centre: the least variance of y.

    For a power a, centres by least squares weighted with e^{−2as}, or as models are written.
    """
    units, width = cloud.units, cloud.width
    known, effects = _with_one(units[:, rest]), units[:, members]
    plain = _plain_centres(cloud, members, rest)
    # In other units than a logarithm's these may be any number, and mean nothing.
    natural = _NATURAL * width[scale] * (width[scale] <= _GRID[-1])
    grid = np.concatenate([[0.0], natural, -natural, _GRID, -_GRID])
    best = np.full(len(members), np.inf)
    powers, weights = np.zeros(len(members)), np.zeros((known.shape[1], len(members)))
    for number, power in enumerate(grid):
        root = _growth(units[:, [scale]], -power)
        fitted = np.linalg.lstsq(root * known, root * effects, rcond=None)[0]
        for centres, written in ((fitted, 0.0), *((one, _AS_GOOD) for one in plain)):
            spread = np.log(np.var(root * (effects - known @ centres), axis=0))
            spread -= written + (_AS_GOOD if number <= 2 * len(_NATURAL) else 0.0)
            better = spread < best
            best = np.where(better, spread, best)
            powers = np.where(better, power, powers)
            weights = np.where(better, centres, weights)
    return powers, weights


def _plain_centres(cloud: _Cloud, members: np.ndarray, rest: np.ndarray) -> list[np.ndarray]:
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
    return found


def _in_own_units(shape: _Shape, cloud: _Cloud) -> Straight:
    middle, width, dim = cloud.middle, cloud.width, len(cloud.middle)
    powers, shift, weights = np.zeros(dim), np.zeros(dim), np.zeros((dim, dim))
    powers[shape.members] = shape.powers / width[shape.scale]
    scaled = width[shape.members, None] * shape.weights[:-1].T / width[shape.rest]
    weights[np.ix_(shape.members, shape.rest)] = scaled
    own = middle[shape.members] + width[shape.members] * shape.weights[-1]
    shift[shape.members] = own - scaled @ middle[shape.rest]
    away = shape.straighten(cloud.units)[:, shape.members]
    away = away - _with_one(cloud.units[:, shape.rest]) @ shape.weights
    widths = np.ones(dim)
    widths[shape.members] = width[shape.members] * np.std(away, axis=0)
    arrays = ([middle[shape.scale]], [powers], [weights], [shift], [widths])
    return Straight(jnp.array([shape.scale]), *(jnp.asarray(a, dtype=float) for a in arrays))


def _growth(scale: np.ndarray, power: np.ndarray | float) -> np.ndarray:
    """e^{as}, which must not overflow where a tail is heavy."""
    return np.exp(np.clip(scale * power, -_LARGEST, _LARGEST))


def _with_one(points: Cloud) -> Cloud:
    return np.concatenate([points, np.ones((len(points), 1))], axis=1)
