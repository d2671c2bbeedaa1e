"""Coordinates in which the funnels and bends of a pool are straight (`salmc.straight`).

A Gaussian is fitted to the pool in x and in candidates for y. By the change of variables its log
density at x, per point, is

    −½ log det Cov(y) − mean Σ a (s − m) + constant,

so that of all maps those with the largest value suit the pool best: maximum likelihood, on one half
of the pool, and what is gained is what is gained on the other half. No gradient and no evaluation
of the density is needed.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.bends import best_bend
from salmc.diagnostics.funnel_shapes import best_funnel
from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.standard_units import Units, are_empty
from salmc.straight import Straight

_POINTS = 4000
_MOST_MAPS = 8
_SHOWN, _BEYOND_CHANCE = 0.1, 4.0
"""Correlation of a coordinate with the log spread of another, at which they may be a funnel; and in
standard errors, of few points."""

_LEAST_GAIN = 0.1
"""Of log density for each point, from one map more: less is not worth other coordinates."""


def find_straight(points: Cloud) -> Straight | None:
    """The map that makes the funnels and bends of a cloud straight; None where it shows none.

    Args:
        points: (n, dim), nearly independent, in random order.
    """
    found: list[Straight] = []
    points = np.asarray(points, np.float64)[:_POINTS]
    while len(found) < _MOST_MAPS:
        cloud = Units.of(points)
        if cloud is None:
            break
        best, one = max((_funnel(cloud), best_bend(cloud, _LEAST_GAIN)), key=lambda pair: pair[0])
        if one is None or best < _LEAST_GAIN:
            break
        found.append(one)
        points = one.inward(points)
    return Straight.of(found) if found else None


def shows_funnel(points: Cloud) -> bool:
    """Whether the spread of some coordinate goes with another: quick, and not strict."""
    cloud = Units.of(np.asarray(points, np.float64)[:_POINTS])
    return cloud is not None and bool(np.any(_shown(cloud)))


def _shown(cloud: Units) -> Float[np.ndarray, "dim dim"]:
    """Squares of correlations that are more than chance, and count."""
    bound = _bound_spreads(cloud.units)
    least = max(_SHOWN, _BEYOND_CHANCE / np.sqrt(len(cloud.units)))
    shown = np.where(np.abs(bound) > least, bound**2, 0.0)
    shown[are_empty(cloud.units)] = 0.0
    return shown


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


def _funnel(cloud: Units) -> tuple[float, Straight | None]:
    """The funnel that gains most, and what it gains."""
    shown = _shown(cloud)
    if not np.any(shown):
        return -np.inf, None
    return best_funnel(cloud, shown)
