"""Which coordinates govern the spread of others, as −∂²_j log p tells it at some points.

Of an effect θ_j that is normal given all others, log f_j = −½ log(−∂²_j log p) is a function of the
others. Described as that of one to three of them, in the form of `curvature`, it is a funnel.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from salmc.diagnostics.point_sets import Cloud
from salmc.straight import NEVER

_MOSTLY = 0.95
"""Of the points, that must curve downwards in an effect, and of its variation, that a fit must
explain to need no further scale."""

_VARIES = 0.15
"""Standard deviation of log f_j below which an effect is as wide everywhere."""

_EXPLAINED = 0.7
"""Of the variation of log f_j, that a funnel must explain."""

_ADDS = 0.05
"""Of the variation, that a further scale must explain."""

_MOST_SCALES, _LEAST_CORRELATION = 3, 0.2
_NATURAL, _NEAR = np.array([0.5, 1.0, 2.0]), 0.08
"""Powers that models are written with, and how near to one of them a fit must be to be it."""

_BEYOND = 2.0
"""A turn so far beyond what points come to is none."""

STEEPEST = 12.0
"""Of log f, that anything is reckoned with."""


class Spread(NamedTuple):
    """log f of one effect: which coordinates govern it, their powers, and the turn; how much of its
    variation that explains, and the standard deviation of what is explained."""

    scales: list[int]
    powers: np.ndarray
    turn: float
    explained: float
    varies: float


def governed_spreads(units: Cloud, precisions: Cloud, width: np.ndarray) -> dict[int, Spread]:
    """The effects, and what governs the spread of each.

    Args:
        units: points, of about unit width in each coordinate.
        precisions: −∂²_j log p there.
        width: of each coordinate, in which models are written.
    """
    ranks = np.argsort(np.argsort(units, axis=0), axis=0).astype(float)
    ranks -= np.mean(ranks, axis=0)
    ranks /= np.sqrt(np.sum(ranks**2, axis=0))
    found = {}
    for j in range(units.shape[1]):
        curved = precisions[:, j] > 0.0
        if np.mean(curved) < _MOSTLY:
            continue
        logs = 0.5 * np.log(precisions[curved, j])
        if np.std(logs) < _VARIES:
            continue
        spread = _fitted(units[curved], ranks[curved], logs, j, width)
        if spread is not None:
            found[j] = spread
    return _apart(found)


def _apart(spreads: dict[int, Spread]) -> dict[int, Spread]:
    """Effects none of which governs another; of two that govern each other neither is one.

    The spread that varies most is made the same everywhere, and what would follow from one of its
    effects is left: a discrimination's scale is a funnel, and a difficulty that is wider where its
    discrimination is small is none to speak of.
    """
    found: dict[int, Spread] = {}
    governing: set[int] = set()
    for j in sorted(spreads, key=lambda j: -spreads[j].varies):
        scales = spreads[j].scales
        mutual = any(j in spreads[scale].scales for scale in scales if scale in spreads)
        if j in governing or mutual or any(scale in found for scale in scales):
            continue
        found[j] = spreads[j]
        governing |= set(scales)
    return {j: found[j] for j in sorted(found)}


def _fitted(
    units: Cloud, ranks: Cloud, logs: np.ndarray, j: int, width: np.ndarray
) -> Spread | None:
    """log f_j by one scale after the other; None where others than scales govern it."""
    scales: list[int] = []
    left, best = logs - np.mean(logs), None
    for _ in range(_MOST_SCALES):
        order = np.argsort(np.argsort(left)).astype(float)
        order -= np.mean(order)
        shown = np.abs(order @ ranks) / (np.linalg.norm(order) + 1e-300)
        shown[scales] = 0.0
        scale = int(np.argmax(shown))
        if shown[scale] < _LEAST_CORRELATION or scale == j:
            break
        scales = [*scales, scale]
        described, rest = _described(units, logs, scales, width)
        if best is not None and described.explained < best.explained + _ADDS:
            break  # what hardly tells may be governed itself
        best, left = described, rest
        if best.explained > _MOSTLY:
            break
    return best if best is not None and best.explained > _EXPLAINED else None


def _described(
    units: Cloud, logs: np.ndarray, scales: list[int], width: np.ndarray
) -> tuple[Spread, np.ndarray]:
    """The form of the module's docstring with given scales, and what it leaves."""
    given = units[:, scales]

    def form(parameters: np.ndarray) -> np.ndarray:
        base, data, *powers = parameters
        return 0.5 * np.logaddexp(2.0 * (base - given @ np.array(powers)), 2.0 * data)

    centred = given - np.mean(given, axis=0)
    flat = np.linalg.lstsq(centred, np.mean(logs) - logs, rcond=None)[0]
    best = None
    for steeper, low in ((1.0, -6.0), (2.0, 0.0)):
        start = [np.mean(logs), np.quantile(logs, 0.05) + low, *(steeper * flat)]
        tried = least_squares(lambda p: form(p) - logs, np.clip(start, -1e3, 1e3), loss="soft_l1")
        if best is None or tried.cost < best.cost:
            best = tried
    assert best is not None
    base, data, *fitted = best.x
    powers = np.clip(np.array(fitted), -STEEPEST, STEEPEST)
    own = np.abs(powers) / width[scales]
    nearest = _NATURAL[np.argmin(np.abs(np.log(own[:, None] / _NATURAL + 1e-300)), axis=1)]
    near = np.abs(own / nearest - 1.0) < _NEAR
    powers = np.where(near, np.sign(powers) * nearest * width[scales], powers)
    turn = float(base - data)
    if turn > np.max(given @ powers) + _BEYOND:
        turn = NEVER
    left = logs - form(best.x)
    explained = 1.0 - float(np.var(left) / np.var(logs))
    varies = float(np.sqrt(max(np.var(logs) - np.var(left), 0.0)))
    return Spread(scales, powers, turn, explained, varies), left
