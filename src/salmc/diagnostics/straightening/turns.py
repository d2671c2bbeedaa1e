"""Funnels that turn: effects that data hold where their scale is wide, and that several scales
govern.

Given its scales, a normal effect with normal data has the spread e^G and the mean
B c(r) + (1 − B) d of `salmc.straight`. Which scales there are shows in a regression of
log |θ − c(r)| on all other coordinates; where the funnel turns, in the variance of y:

    minimise  log Var(y) + 2 mean G

over a few directions g, turns t at quantiles of g, and centres by weighted least squares.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud, with_one
from salmc.diagnostics.straightening.funnel import LARGEST, Funnel, turned
from salmc.diagnostics.straightening.search import Units
from salmc.straight import NEVER

_QUANTILES = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
_BEYOND_CHANCE, _LEAST_SLOPE = 5.0, 0.1
"""In standard errors of a slope, and in logarithms for a standard unit: smaller ones are none."""

_LOG_SPREAD = 1.11
"""Standard deviation of log |z|, z ~ N(0, 1): π/√8."""

_STEEPER = (1.0, 1.6)
"""Slopes are flat where funnels have turned: what was fitted, and as steep as may be before."""

_NATURAL = np.array([0.5, 1.0])
"""Slopes that models are written with, in own units."""

_WORTH = 0.02
"""In log variance, that a turn must gain."""

_FINALISTS = 4
"""Of directions and turns, for which centres are fitted anew."""


def with_turns(cloud: Units, funnel: Funnel) -> Funnel:
    """The funnel with what its effects gain by turns and further scales."""
    known = np.concatenate([[funnel.scale], funnel.rest])
    slopes = _slopes(cloud.units, funnel, known)
    powers, further = funnel.powers.copy(), funnel.further.copy()
    weights, turns, anchors = funnel.weights.copy(), funnel.turns.copy(), funnel.anchors.copy()
    # What each effect costs as it is, in log variance; of all at once.
    costs = np.log(np.var(funnel.away(cloud.units), axis=0))
    costs += 2.0 * np.mean(funnel.growth(cloud.units)[0], axis=0)
    for i in range(len(funnel.members)):
        first = np.zeros(len(known))
        first[0] = funnel.powers[i]
        tried = _directions(cloud, known, first, slopes[:, i])
        found = _best(cloud, funnel, i, float(costs[i]) - _WORTH, known, tried)
        if found is None:
            continue
        direction, turns[i], weights[:, i], anchors[i] = found
        powers[i], further[:, i] = direction[0], direction[1:]
    return funnel._replace(
        powers=powers, further=further, weights=weights, turns=turns, anchors=anchors
    )


def _slopes(units: Cloud, funnel: Funnel, known: np.ndarray) -> Float[np.ndarray, "known m"]:
    """Of log |θ − c(r)| on scale and rest, those that are more than chance."""
    centres = with_one(units[:, funnel.rest]) @ funnel.weights
    logs = np.log(np.abs(units[:, funnel.members] - centres) + 1e-30)
    logs = logs - np.mean(logs, axis=0)
    given = units[:, known] - np.mean(units[:, known], axis=0)
    inverse = np.linalg.inv(given.T @ given + 1e-9 * len(units) * np.eye(len(known)))
    slopes = inverse @ (given.T @ logs)
    error = _LOG_SPREAD * np.sqrt(np.diag(inverse))[:, None]
    least = np.maximum(_LEAST_SLOPE, _BEYOND_CHANCE * error)
    return np.where(np.abs(slopes) > least, slopes, 0.0)


def _directions(
    cloud: Units, known: np.ndarray, first: np.ndarray, fitted: np.ndarray
) -> list[np.ndarray]:
    """What g may be: by the scale alone, by all that showed, and as models are written."""
    bases = [first]
    if np.any(fitted[1:]) and fitted[0] != 0.0:
        bases.append(fitted)
    found = []
    for base in bases:
        found += [steeper * base for steeper in _STEEPER]
        own = base / cloud.width[known]
        nearest = _NATURAL[np.argmin(np.abs(np.abs(own)[:, None] - _NATURAL), axis=1)]
        for natural in (nearest, np.ones(len(own))):
            found.append(np.sign(base) * natural * cloud.width[known])
    return [one for one in found if one[0] != 0.0]


def _best(
    cloud: Units,
    funnel: Funnel,
    i: int,
    least: float,
    known: np.ndarray,
    directions: list[np.ndarray],
) -> tuple[np.ndarray, float, np.ndarray, float] | None:
    """Direction, turn, centre and anchor of an effect; None where it costs no less than `least`."""
    effect = cloud.units[:, funnel.members[i]]
    rest = with_one(cloud.units[:, funnel.rest])
    given = rest @ funnel.weights[:, i]
    best = None
    grown = [_grown(cloud, known, direction) for direction in directions]
    tried = [
        (_cost(growth, turn, given[:, None], effect)[0], number, turn)
        for number, growth in enumerate(grown)
        for turn in _turns(growth)
    ]
    for _, number, turn in sorted(tried)[:_FINALISTS]:
        direction = directions[number]
        for centre in (given[:, None], rest):
            cost, solved = _cost(grown[number], turn, centre, effect)
            if cost < least:
                weights = funnel.weights[:, i] if centre.shape[1] == 1 else solved[: rest.shape[1]]
                anchor = solved[-1] if turn != NEVER else 0.0
                least, best = cost, (direction, float(turn), weights, float(anchor))
    return best


def _grown(cloud: Units, known: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return np.clip(cloud.units[:, known] @ direction, -LARGEST, LARGEST)


def _turns(growth: np.ndarray) -> list[float]:
    return [NEVER, *np.quantile(growth, _QUANTILES).tolist()]


def _cost(
    growth: np.ndarray, turn: float, centre: np.ndarray, effect: np.ndarray
) -> tuple[float, np.ndarray]:
    """log Var(y) + 2 mean G, and the coefficients of the centre; of one column they are given."""
    growth, kept = turned(growth, turn)
    root = np.exp(-growth)
    columns = kept[:, None] * centre
    if turn != NEVER:
        columns = np.column_stack([columns, 1.0 - kept])
    solved = _solved(root, columns, effect, fixed=centre.shape[1] == 1)
    left = root * (effect - columns @ solved)
    return float(np.log(np.var(left)) + 2.0 * np.mean(growth)), solved


def _solved(
    root: np.ndarray, columns: np.ndarray, effect: np.ndarray, *, fixed: bool
) -> np.ndarray:
    """Weighted least squares; with the first coefficient 1 where the centre is given."""
    start = 1 if fixed else 0
    solved = np.ones(columns.shape[1])
    if columns.shape[1] > start:
        open_columns = root[:, None] * columns[:, start:]
        wanted = root * (effect - columns[:, 0] if fixed else effect)
        gram = open_columns.T @ open_columns
        gram += 1e-9 * (np.trace(gram) / len(gram) + 1e-300) * np.eye(len(gram))
        solved[start:] = np.linalg.solve(gram, open_columns.T @ wanted)
    return solved
