"""Coordinates in which the funnels and bends of a pool are straight (`salmc.straight`).

A Gaussian is fitted to the pool in x and in candidates for y. By the change of variables its log
density at x, per point, is

    −½ log det Cov(y) − mean Σ a (s − m) + constant,

so that of all maps those with the largest value suit the pool best: maximum likelihood, on one half
of the pool, and what is gained is what is gained on the other half. No gradient and no evaluation
of the density is needed.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud
from salmc.straight import Straight

_POINTS = 4000
_MOST_MAPS = 8
_FEWEST_EACH = 20
"""Points for each coordinate, below which nothing is looked for."""

_SHOWN, _BEYOND_CHANCE = 0.1, 4.0
"""Correlation of a coordinate with the log spread of another, at which they may be a funnel; and in
standard errors, of few points."""

_LEAST_GAIN = 0.1
"""Of log density for each point, from one map more: less is not worth other coordinates."""

_CLUSTERS = -1.3
"""Excess kurtosis of a coordinate with nothing in its middle; −1.2 is that of a uniform, −2 of two
points. Separate modes are no funnel, and no bend."""


class Units(NamedTuple):
    """Points in standard units u, x = middle + width u."""

    units: Cloud
    middle: Float[np.ndarray, " dim"]
    width: Float[np.ndarray, " dim"]

    @classmethod
    def of(cls, points: Cloud) -> "Units | None":
        middle, width = np.mean(points, axis=0), np.std(points, axis=0)
        few = len(points) < _FEWEST_EACH * points.shape[1] or points.shape[1] < 2
        if few or not np.all((width > 0.0) & np.isfinite(width)):
            return None
        return cls((points - middle) / width, middle, width)


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
        best, one = max((_funnel(cloud), _bend(cloud)), key=lambda pair: pair[0])
        if one is None or best < _LEAST_GAIN:
            break
        found.append(one)
        points = np.asarray(one.inward(jnp.asarray(points, dtype=float)), np.float64)
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
    from salmc.diagnostics.funnel_shapes import best_funnel

    return best_funnel(cloud, shown)


def _bend(cloud: Units) -> tuple[float, Straight | None]:
    """The square of one coordinate that explains most of another, and what it gains.

    What is left of u_j when all others are taken off it, and of each u_k², are correlated with
    correlation r: on the points that built it the square gains −½ log(1 − r²).
    """
    built, held = cloud.units[::2], cloud.units[1::2]
    squares = built**2
    found = _explained(built, squares)
    found[:, are_empty(cloud.units)] = 0.0
    j, k = (int(i) for i in np.unravel_index(np.argmax(found), found.shape))
    most = float(found[j, k])
    if -0.5 * np.log(max(1.0 - most**2, 1e-30)) < _LEAST_GAIN:
        return -np.inf, None
    known = np.stack([np.ones(len(built)), built[:, k], squares[:, k]], axis=1)
    _, linear, weight = np.linalg.lstsq(known, built[:, j], rcond=None)[0].tolist()
    # With its linear part, or what is left would hide the bends of others.
    origin = -0.5 * linear / weight
    straight = [points.copy() for points in (built, held)]
    for points in straight:
        points[:, j] -= weight * (points[:, k] - origin) ** 2
    gain = likelihood(*straight) - likelihood(built, held)
    return gain, _bent(cloud, j, k, weight, origin)


def _explained(units: Cloud, squares: Cloud) -> Float[np.ndarray, "dim dim"]:
    """|r| of u_j and u_k², (j, k), when all coordinates but j are taken off both; 0 for j = k.

    From one regression of all u_k² on all coordinates, with coefficients B, residuals R and P the
    inverse of the Gram matrix: taking u_j out of it gives B_jk² / P_jj back to the residual, and
    that part of it is along u_j.
    """
    known = np.column_stack([units, np.ones(len(units))])
    inverse = np.linalg.pinv(known)
    weights = inverse @ squares
    left = np.sum((squares - known @ weights) ** 2, axis=0)
    along = weights[:-1] ** 2 / (np.sum(inverse[:-1] ** 2, axis=1)[:, None] + 1e-300)
    found = np.sqrt(along / (along + left + 1e-300))
    np.fill_diagonal(found, 0.0)
    return found


def _bent(cloud: Units, j: int, k: int, weight: float, origin: float) -> Straight:
    """u_j = y_j + weight (u_k − origin)², in own units."""
    width, dim = cloud.width, len(cloud.middle)
    middle = cloud.middle + origin * width
    bends, widths = np.zeros((dim, dim)), np.ones(dim)
    bends[j, k] = weight * width[j] / width[k] ** 2
    widths[j] = width[j] * np.std(cloud.units[:, j] - weight * (cloud.units[:, k] - origin) ** 2)
    nothing, matrix = np.zeros(dim), np.zeros((dim, dim))
    arrays = ([0.0], [nothing], [matrix], [nothing], [bends], [middle], [widths])
    return Straight(jnp.array([k]), *(jnp.asarray(a, dtype=float) for a in arrays))


def are_empty(columns: Cloud, kurtosis: float = _CLUSTERS) -> np.ndarray:
    """Which columns have next to nothing in their middle."""
    away = columns - np.mean(columns, axis=0)
    squares = np.mean(away**2, axis=0)
    return np.mean(away**4, axis=0) < (3.0 + kurtosis) * squares**2


def likelihood(built: Cloud, held: Cloud) -> float:
    """Mean log density of held-out points by a Gaussian that was fitted to the others."""
    middle, covariance = np.mean(built, axis=0), np.cov(built, rowvar=False)
    covariance = covariance + 1e-12 * np.trace(covariance) * np.eye(len(middle))
    squares = np.sum((held - middle) * np.linalg.solve(covariance, (held - middle).T).T, axis=1)
    return float(-0.5 * (np.linalg.slogdet(covariance)[1] + np.mean(squares)))
