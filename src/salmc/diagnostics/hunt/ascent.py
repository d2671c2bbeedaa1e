"""BFGS from many starts at once, in NumPy: one call of the density serves all climbers.

Nothing is compiled for it, and where the slopes come from is left to whoever climbs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud, Numbers

_ROUNDS, _HALVINGS = 80, 6
_ENOUGH = 1e-3
"""A climber whose log p grows by less than this in a round has arrived."""

_SUFFICIENT = 1e-4

Values = Callable[[Cloud], Numbers]
Slopes = Callable[[Cloud, Numbers], Cloud]
"""The gradient at some points, given log p there."""


class Ends(NamedTuple):
    """Where climbs ended: log p, its slope, and what the climb tells of −(∇² log p)⁻¹ there."""

    points: Cloud
    values: Numbers
    slopes: Cloud
    inverses: Float[np.ndarray, "n dim dim"]


def ascend(
    values_of: Values,
    slopes_of: Slopes,
    y: Cloud,
    values: Numbers,
    rounds: int = _ROUNDS,
    *,
    curved: bool = False,
    enough: float = _ENOUGH,
) -> Ends:
    """Climb with a backtracking line search, each climber with its own matrix.

    Args:
        values_of, slopes_of: log p and its gradient, in coordinates of about the same unit.
        y, values: starts, and log p there.
        rounds: at most so many.
        curved: whether that unit is known to be the width of a mode, in all directions; else
            first steps are of one unit, however steep it is.
        enough: a climber whose log p grows by no more than this in a round has arrived.
    """
    y, values = y.copy(), values.copy()
    n, dim = y.shape
    slope = slopes_of(y, values)
    inverse = np.repeat(np.eye(dim)[None], n, axis=0)
    if not curved:
        inverse /= (1e-12 + np.linalg.norm(slope, axis=1) / np.sqrt(dim))[:, None, None]
    climbing = np.ones(n, bool)
    for _ in range(rounds):
        at = np.flatnonzero(climbing)
        if not len(at):
            break
        step = np.einsum("nij,nj->ni", inverse[at], slope[at])
        # Uphill at all events, and no further than ten times as far out as it is now.
        uphill = np.sum(step * slope[at], axis=1)
        step = np.where((uphill > 0.0)[:, None], step, slope[at])
        longest = 10.0 * (np.sqrt(dim) + np.linalg.norm(y[at], axis=1))
        step *= (longest / np.maximum(longest, np.linalg.norm(step, axis=1)))[:, None]
        gain = np.sum(step * slope[at], axis=1)
        new, new_values = _line_search(values_of, y[at], values[at], step, gain)
        moved = new_values > values[at]
        new_slope = slopes_of(new, new_values)
        change, turn = new - y[at], slope[at] - new_slope
        inverse[at] = _updated(inverse[at], change, turn, moved)
        climbing[at] = moved & (new_values - values[at] > enough)
        y[at], values[at], slope[at] = new, new_values, new_slope
    return Ends(y, values, slope, inverse)


def _line_search(
    values_of: Values, y: Cloud, values: Numbers, step: Cloud, gain: Numbers
) -> tuple[Cloud, Numbers]:
    new, new_values, length = y.copy(), values.copy(), np.ones(len(y))
    seeking = np.ones(len(y), bool)
    for _ in range(_HALVINGS):
        at = np.flatnonzero(seeking)
        if not len(at):
            break
        tried = y[at] + length[at, None] * step[at]
        found = values_of(tried)
        good = found > values[at] + _SUFFICIENT * length[at] * gain[at]
        new[at[good]], new_values[at[good]] = tried[good], found[good]
        seeking[at[good]] = False
        length[at] *= 0.25
    return new, new_values


def _updated(inverse: np.ndarray, change: Cloud, turn: Cloud, moved: np.ndarray) -> np.ndarray:
    """The BFGS update of inverse Hessians, where the curvature allows it."""
    along = np.sum(change * turn, axis=1)
    usable = moved & (along > 1e-10 * np.sum(change**2, axis=1))
    rho = np.where(usable, 1.0 / np.where(usable, along, 1.0), 0.0)[:, None]
    turned = np.einsum("nij,nj->ni", inverse, turn)
    bent = 1.0 + rho * np.sum(turn * turned, axis=1, keepdims=True)
    # s uᵀ + u sᵀ is the whole update: of many climbers the matrices are what takes time.
    half = change[:, :, None] * (rho * (0.5 * bent * change - turned))[:, None, :]
    new = inverse + half
    new += np.swapaxes(half, 1, 2)
    return new
