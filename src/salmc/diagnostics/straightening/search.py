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
from salmc.straight import NEVER, Straight

_POINTS = 4000
_MOST_MAPS = 8
_SHOWN, _BEYOND_CHANCE = 0.1, 4.0
"""Correlation of a coordinate with the log spread of another, at which they may be a funnel; and in
standard errors, of few points."""

_LEAST_GAIN = 0.1
"""Of log density for each point, from one map more: less is not worth other coordinates."""

_FEWEST_EACH = 20
"""Points for each coordinate, below which nothing is looked for."""

_CLUSTERS = -1.3
"""Excess kurtosis of a coordinate with nothing in its middle; −1.2 is that of a uniform, −2 of two
points. Separate modes are no funnel, and no bend."""

_NEXT_TO_NONE = 0.05
"""Weight of a square, in standard units, below which a coordinate does not follow it."""


class Units(NamedTuple):
    """Points in standard units u, x = middle + width u."""

    units: Cloud
    middle: Float[np.ndarray, " dim"]
    width: Float[np.ndarray, " dim"]

    @classmethod
    def of(cls, points: Cloud, each: int = _FEWEST_EACH) -> "Units | None":
        """Of at least so many points for each coordinate, or None."""
        middle, width = np.mean(points, axis=0), np.std(points, axis=0)
        few = len(points) < each * points.shape[1] or points.shape[1] < 2
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
    from salmc.diagnostics.straightening.shapes import best_funnel

    return best_funnel(cloud, shown)


def _bend(cloud: Units) -> tuple[float, Straight | None]:
    """The square of one coordinate that explains most of others, and what it gains.

    One coordinate follows it, or all that do at once: of two that also follow each other neither
    is straighter for having its own bend undone, only both together are.
    """
    built, held = cloud.units[::2], cloud.units[1::2]
    usable = ~are_empty(cloud.units)
    before = likelihood(built, held)
    single = _single_correlations(built) * usable
    j, k = (int(i) for i in np.unravel_index(np.argmax(single), single.shape))
    alone: tuple[float, Straight | None] = (-np.inf, None)
    together = alone
    if _gain_of(single[j, k]) >= _LEAST_GAIN:
        alone = _bent(cloud, np.arange(len(usable)) == j, k, before)
    joint = _joint_correlations(built) * usable
    k = int(np.argmax(joint))
    if _gain_of(joint[k]) >= _LEAST_GAIN:
        together = _bent(cloud, np.arange(len(usable)) != k, k, before)
    # Singly as long as that gains: of bends that depend on each other the last is undone first.
    return max(alone[0], together[0]), alone[1] if alone[0] >= _LEAST_GAIN else together[1]


def _gain_of(correlation: float) -> float:
    return float(-0.5 * np.log(max(1.0 - correlation**2, 1e-30)))


def _single_correlations(units: Cloud) -> Float[np.ndarray, "dim dim"]:
    """|r| of each u_j (row) with each u_k² (column), when all other coordinates are taken off both.

    With P the precision of u, what is left of u_j has the variance 1/P_jj; with B the coefficients
    of u_k² on all of u, and e_k what they leave, u_k² without the part of the others is
    e_k + B_jk (what is left of u_j): both are had from one solution for all pairs. On the points
    that built it the square gains −½ log(1 − r²).
    """
    precision, coefficients, left, _ = _on_squares(units)
    shared = coefficients**2 / np.diag(precision)[:, None]
    found = np.sqrt(shared / (shared + left + 1e-30))
    np.fill_diagonal(found, 0.0)
    return found


def _joint_correlations(units: Cloud) -> Float[np.ndarray, " dim"]:
    """R of each u_k² on all other coordinates, when u_k is taken off: what all of them gain."""
    _, _, left, alone = _on_squares(units)
    return np.sqrt(np.maximum(0.0, 1.0 - left / (alone + 1e-30)))


def _on_squares(units: Cloud) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The precision of u, coefficients of each u_k² on all of u, the variance that these leave of
    it, and the one that u_k alone leaves."""
    dim = units.shape[1]
    centred, squares = units - np.mean(units, axis=0), units**2
    squares = squares - np.mean(squares, axis=0)
    covariance = centred.T @ centred / len(units) + 1e-9 * np.eye(dim)
    precision = np.linalg.inv(covariance)
    coefficients = precision @ (centred.T @ squares) / len(units)
    left = np.mean((squares - centred @ coefficients) ** 2, axis=0)
    slope = np.mean(centred * squares, axis=0) / np.diag(covariance)
    return precision, coefficients, left, np.mean((squares - slope * centred) ** 2, axis=0)


def _bent(cloud: Units, rows: np.ndarray, k: int, before: float) -> tuple[float, Straight]:
    """The bend of some coordinates by the square of another, and what it gains."""
    built, held = cloud.units[::2], cloud.units[1::2]
    known = np.stack([np.ones(len(built)), built[:, k], built[:, k] ** 2], axis=1)
    _, linear, weights = np.linalg.lstsq(known, built, rcond=None)[0]
    most = int(np.argmax(np.where(rows, np.abs(weights), -1.0)))
    follow = rows & (np.abs(weights) >= min(_NEXT_TO_NONE, abs(weights[most])))
    weights = np.where(follow, weights, 0.0)
    # With its linear part, or what is left would hide the bends of others.
    origin = float(-0.5 * linear[most] / weights[most])
    built, held, whole = (
        units - weights * (units[:, k, None] - origin) ** 2 for units in (built, held, cloud.units)
    )
    gain = likelihood(built, held) - before
    gain = gain if np.isfinite(gain) else -np.inf  # nothing follows the square
    width, dim = cloud.width, len(cloud.middle)
    middle = cloud.middle + origin * width
    bends = np.zeros((dim, dim))
    bends[:, k] = weights * width / width[k] ** 2
    widths = np.where(weights != 0.0, width * np.std(whole, axis=0), 1.0)
    nothing, matrix = np.zeros(dim), np.zeros((dim, dim))
    own = (np.zeros(()), nothing, matrix, nothing, bends, middle, widths)
    further = (matrix, np.full(dim, NEVER), nothing)
    parts = (jnp.asarray(a, dtype=float)[None] for a in (*own, *further))
    return gain, Straight(jnp.array([k]), *parts)


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
