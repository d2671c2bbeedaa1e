"""Climbs to the modes of a density that gives values alone, as black boxes do.

Slopes are differences of log p over short steps, d more values for each; BFGS learns from them how
a mode is shaped. A few climbs in one batch after another cost about as much as two rounds of the
mixture, and find modes that hardly any draw comes near.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.answers.mixture.evaluator import Evaluator
from salmc.diagnostics.hunt.ascent import Ends, ascend
from salmc.movers.climb import ARRIVED, NEAR, NEGLIGIBLE, Modes

_FIRST, _MORE, _MOST = 24, 12, 72
"""Climbs at once, and again as long as any of them finds one more mode, up to so many."""

_ROUNDS = 40
_STEP = 1e-2
"""Of differences, in widths of the starts, or of what a first climb learned."""

_SHARE = 0.2
"""Of what is left of a budget, that climbs may take."""

_PROBE, _LEAST_BEND = 0.3, 2e-3
"""How far from a top log p is asked once more, in widths that a climb learned; and the least bend
in a direction, below which it learned too little of it. Further off a bent ridge falls on both
sides, too."""

_EACH_CLIMB = 15
"""Slopes that a climb takes, about."""

_NEWTON, _AT_TOP = 4, 0.01
"""Newton's steps, while the top seems to be so much higher in log p."""


class Top(NamedTuple):
    """A mode, a triangular factor of what log p is like around it, and the log of its mass."""

    position: np.ndarray
    factor: np.ndarray
    log_mass: float


def climbs_affordable(evaluator: Evaluator) -> int:
    """How many climbs a budget allows."""
    most = _SHARE * evaluator.left / (_EACH_CLIMB * (evaluator.target.dim + 2))
    return int(min(most, _MOST))


def find_valued_modes(evaluator: Evaluator, starts: Float[np.ndarray, "n dim"]) -> Modes:
    """The modes that climbs from some starts end at, with a Gaussian about as wide as each.

    Args:
        evaluator: log p.
        starts: where to climb from, in this order.
    """
    dim = starts.shape[1]
    unit = np.std(starts, axis=0)
    unit = np.where(unit > 0.0, unit, 1.0)
    found: list[Top] = []
    # Half of them are peaks, the likeliest first: each batch has some of both kinds.
    half = len(starts) // 2
    turns = np.argsort(np.r_[np.arange(half), np.arange(len(starts) - half)], kind="stable")
    starts, done, batch = starts[turns[: climbs_affordable(evaluator)]], 0, _FIRST
    while done < len(starts):
        ends = _climb(evaluator, starts[done : done + batch], np.diag(unit))
        done, batch, before = done + batch, _MORE, len(found)
        for number in np.argsort(-ends.values):
            _add(found, evaluator, ends, int(number))
        if len(found) <= max(before, 1):
            break
    found.sort(key=lambda top: -top.log_mass)
    kept = [top for top in found if top.log_mass > found[0].log_mass + NEGLIGIBLE]
    return Modes(
        np.array([top.position for top in kept]).reshape(-1, dim),
        np.array([top.factor for top in kept]).reshape(-1, dim, dim),
        np.array([top.log_mass for top in kept]),
        0,
        len(kept),
    )


def _climb(
    evaluator: Evaluator, starts: np.ndarray, axes: np.ndarray, *, curved: bool = False
) -> Ends:
    """Climbs in coordinates along some axes, and what they learned in the target's own."""
    middle = np.median(starts, axis=0)

    def places(y: np.ndarray) -> np.ndarray:
        return evaluator.rounded(middle + y @ axes.T)

    def slopes_of(y: np.ndarray, values: np.ndarray) -> np.ndarray:
        count, dim = y.shape
        further = evaluator(places((y[:, None] + _STEP * np.eye(dim)).reshape(-1, dim)))
        with np.errstate(invalid="ignore"):
            slope = (further.reshape(count, dim) - values[:, None]) / _STEP
        return np.where(np.isfinite(slope), slope, 0.0)

    def values_of(y: np.ndarray) -> np.ndarray:
        return evaluator(places(y))

    y = np.linalg.solve(axes, (starts - middle).T).T
    values = values_of(y)
    alive = values > -np.inf
    ends = ascend(values_of, slopes_of, y[alive], values[alive], _ROUNDS, curved=curved)
    slopes = np.linalg.solve(axes.T, ends.slopes.T).T
    return Ends(middle + ends.points @ axes.T, ends.values, slopes, axes @ ends.inverses @ axes.T)


def _add(found: list[Top], evaluator: Evaluator, ends: Ends, number: int) -> None:
    """One more mode, if a climb arrived at one that is not known.

    Steps of differences may be longer than a mode is wide, so that climbs end beside its top: it
    goes on from there in units of what it learned.
    """
    end, axes = ends.points[number], _factor(ends.inverses[number])
    if axes is None or _is_known(found, end):
        return
    further = _climb(evaluator, end[None], axes, curved=True)
    if not len(further.points):
        return
    top = _top(evaluator, further.points[0], float(further.values[0]), further.inverses[0])
    if top is None or _is_known(found, top.position):
        return
    log_volume = np.sum(np.log(np.diag(top.factor))) + 0.5 * len(end) * np.log(2 * np.pi)
    found.append(top._replace(log_mass=float(log_volume + top.log_mass)))


def _top(evaluator: Evaluator, end: np.ndarray, value: float, inverse: np.ndarray) -> Top | None:
    """Newton's steps from the end of a climb, with Laplace's factor by second differences; and log
    p there. None where they lead to no top.

    A climb along a ridge ends where it gains little, and knows least of the ridge's own direction.
    """
    factor = _factor(inverse)
    for _ in range(_NEWTON):
        if factor is None:
            return None
        slope, bends = _derivatives(evaluator, end, value, factor)
        inner = _inverse(bends)
        if inner is None:
            return None
        further = factor @ (inner @ slope)
        # Half the square of Newton's step: how much higher a Gaussian's top would be.
        higher = 0.5 * float(slope @ inner @ slope)
        factor = _factor(factor @ inner @ factor.T)
        if factor is None or higher < _AT_TOP:
            break
        place = evaluator.rounded((end + further)[None])
        reached = float(evaluator(place)[0])
        if not reached > value:
            break
        end, value = place[0], reached
    return Top(end, factor, value) if factor is not None and higher < ARRIVED else None


def _derivatives(
    evaluator: Evaluator, end: np.ndarray, value: float, factor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The slope of log p and how it bends, −∇², along the columns of a factor."""
    dim, steps = len(end), _PROBE * factor.T
    first, second = np.triu_indices(dim, 1)
    corners = steps[first] + steps[second]
    values = evaluator(evaluator.rounded(end + np.concatenate([steps, -steps, corners]))) - value
    ahead, behind = values[:dim], values[dim : 2 * dim]
    bends = np.diag(ahead + behind)
    bends[first, second] = values[2 * dim :] - ahead[first] - ahead[second]
    bends[second, first] = bends[first, second]
    return 0.5 * (ahead - behind) / _PROBE, -bends / _PROBE**2


def _inverse(bends: np.ndarray) -> np.ndarray | None:
    """Of a matrix that is positive enough in all directions."""
    if not np.all(np.isfinite(bends)):
        return None
    values, axes = np.linalg.eigh(bends)
    return None if values[0] < _LEAST_BEND else (axes / values) @ axes.T


def _factor(inverse: np.ndarray) -> np.ndarray | None:
    """Triangular A with A Aᵀ that matrix; None where there is none."""
    try:
        factor = np.linalg.cholesky(inverse)
    except np.linalg.LinAlgError:
        return None
    return factor if np.all(np.isfinite(factor)) else None


def _is_known(found: list[Top], end: np.ndarray) -> bool:
    return any(
        np.linalg.norm(np.linalg.solve(top.factor, end - top.position)) < NEAR * np.sqrt(len(end))
        for top in found
    )
