"""Balance: what Stein's identity is where only values of log p are known, exact for finite moves.

Barker's chain that goes from x to x ± h d, each by half a chance and a share a± of the time,

    a± = p(x ± h d) / (p(x) + p(x ± h d)),

leaves p as it is, whatever p, step and direction are. So for every function f

    E_p[a₊ (f(x + h d) − f(x)) + a₋ (f(x − h d) − f(x))] = 0,

with edges, jumps, and without a gradient. As a± = ½ + Δ±/4 + … with the difference Δ of log p, this
times 2/h² is the Langevin Stein operator s f′ + f″ for small h; g = 2 (a₊ − a₋)/h stands for the
score s, and never exceeds 2/h where scores have no variance. Moves go along the axes of the draws'
own frame, in which all functions are: f = y is a shift, y² spread, y_i y_j correlation, ln cosh
and tanh shape, and log p itself how high the draws are. From two values for each draw and axis
come all of them, and also functions of directions v in which draws are off by most, which the first
draws choose and later ones are tested in (`learned_functions`). Other moves stretch one coordinate,
y to e^±k y, with p times the volume e^±k in place of p: f = ln |y| sees tails that a shift does
not reach.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.stein import SteinTests

_STEPS = {0.7: 800_000, 0.15: 150_000}
"""Lengths of moves, in widths, and evaluations for them; the smaller where p is narrower than its
draws tell, as on bent ridges."""

_FEWEST = 200
"""Draws below which no function has an error to speak of."""

_MOST_AXES, _ALL_PAIRS, _ENTRIES = 100, 40, 10_000_000
"""Axes; axes up to which all pairs are tested; and pairs times draws."""

_TAIL, _GROWTH, _STRETCHED = 2.0, 1.0, 300_000
"""Widths from which on a function is of tails alone; k of a stretch; and evaluations for them."""

_MANY = 0.5
"""Coordinates over √n, from which on the frame comes from one half of the draws alone."""

Function = Callable[[np.ndarray], np.ndarray]
Inside = Callable[[Cloud], np.ndarray]

_HELD = 4.0
_ROUNDING, _NOT_FAR = 0.02, 0.99
"""Of a step, that numbers may round away, and at how large a share of the draws."""

_LEAST_MOVED, _FEWEST_OUT = 0.02, 10.0
"""Share of moves that are made; and whole moves of far draws. Where hardly any is made, the rare
draws that balance them are not among so few, and all that is seen has one sign."""

_LARGEST_SHARE, _FEW_DECIDE = 0.03, 30.0
"""Of a sum of squares that one draw may have; where there are few draws, this over their number."""

_MOST_SKEW = 0.08
"""Of a mean, that one term of an expansion can mend."""

_FIRST, _BLOCKS, _FOR_EACH = 0.3, 4, 10
"""Share of the draws that choose directions first, tested parts, and draws for each coordinate."""


def balance_tests(
    density: HostDensity, points: Cloud, seed: int = 0, inside: Inside | None = None
) -> SteinTests | None:
    """The most surprising function, its p-value for all of them; None where too few can be asked.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), nearly independent, in random order.
        seed: of the axes that are chosen where there are many.
        inside: which places belong to a part of space, if all points are from there and are to be
            held against the density in that part.
    """
    dim = points.shape[1]
    # A frame of the same draws follows what is chance in them, by dim/n in each coordinate.
    first = len(points) // 2 if dim > _MANY * np.sqrt(len(points)) else 0
    frame, tested = Frame.of(points[:first] if first else points), points[first:]
    axes = np.sort(np.random.default_rng(seed).permutation(dim)[:_MOST_AXES])
    rounding = _rounding(density, points, frame)
    moves = []
    for step, evaluations in _STEPS.items():
        some = tested[: density.share_of(evaluations) // (2 * len(axes))]
        if len(some) >= _FEWEST and rounding < _ROUNDING * step:
            moves.append(_moves(density, some, frame, axes, step, inside))
    half = min(len(tested), density.share_of(_STRETCHED) // (2 * len(axes))) // 2
    stretched = []
    if 2 * half >= _FEWEST and rounding < _ROUNDING:
        # A middle of the same draws may be the outermost of a narrow mode, and none is beyond it.
        both = tested[:half], tested[half : 2 * half]
        parts = [
            _stretched(density, one, Frame.of(other), axes, inside)
            for one, other in (both, both[::-1])
        ]
        stretched = [{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}]
    fixed = [*map(_fixed, moves), *stretched]
    found = []
    # Half of the level for each: what draws choose is a few looks, all that is fixed hundreds.
    for parts in (fixed, [*map(_learned, moves)]):
        looks = sum(values.shape[1] for part in parts for values in part.values())
        for part in filter(None, parts):
            worst = _worst(part, len(axes))
            found.append(worst._replace(p_value=min(1.0, 2.0 * looks * worst.p_value)))
    if not found:
        return None
    worst, tests = min(found, key=lambda test: test.p_value), sum(test.tested for test in found)
    at = worst.coordinate
    return worst._replace(tested=tests, coordinate=int(axes[at]) if at >= 0 else -1)


class _Moves(NamedTuple):
    """Shares of moves up and down along each axis, (draw, axis), and the draws in their frame."""

    step: float
    y: Cloud
    up: Cloud
    down: Cloud
    gained: Numbers
    """Of log p, by all moves of a draw together."""

    @property
    def slope(self) -> Cloud:
        """What stands for the score."""
        return 2.0 * (self.up - self.down) / self.step

    def part(self, rows: slice) -> "_Moves":
        """Of some draws."""
        return _Moves(self.step, *(values[rows] for values in self[1:]))

    def of_each(self, function: Function) -> Cloud:
        """What moves along an axis make of a function of the coordinate along it."""
        here = function(self.y)
        gains = self.up * (function(self.y + self.step) - here)
        gains += self.down * (function(self.y - self.step) - here)
        return gains * 2.0 / self.step**2

    def of_sum(self, function: Function, direction: Numbers) -> Numbers:
        """What all moves together make of a function of direction · y."""
        along, away = (self.y @ direction)[:, None], self.step * direction
        here = function(along)
        gains = self.up * (function(along + away) - here)
        gains += self.down * (function(along - away) - here)
        return np.sum(gains, axis=1) * 2.0 / self.step**2


def _moves(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    axes: np.ndarray,
    step: float,
    inside: Inside | None,
) -> _Moves:
    values = density.values(points)
    points, values = points[np.isfinite(values)], values[np.isfinite(values)]
    up, down = np.empty((2, len(points), len(axes)))
    gained = np.zeros(len(points))
    for column, axis in enumerate(axes.tolist()):
        way = step * frame.directions(np.eye(frame.dim)[axis : axis + 1])
        places = np.concatenate([points + way, points - way])
        gains = _values(density, places, inside).reshape(2, -1) - values
        shares = special.expit(gains)
        if np.mean(shares) < _LEAST_MOVED:
            shares, gains = np.zeros_like(shares), np.zeros_like(gains)
        up[:, column], down[:, column] = shares
        # No move goes where there is no density.
        gained += np.sum(shares * np.where(gains > -np.inf, gains, 0.0), axis=0)
    return _Moves(step, frame.inward(points)[:, axes], up, down, gained * 2.0 / step**2)


def _fixed(moves: _Moves) -> dict[str, Cloud]:
    spread = moves.y * moves.slope + moves.up + moves.down
    parts = {
        "shift": moves.slope,
        "spread": spread,
        "shape": moves.of_each(_log_cosh),
        "lopsidedness": moves.of_each(np.tanh),
        "overall spread": np.sum(spread, axis=1, keepdims=True),
        "height": moves.gained[:, None],
    }
    dim = moves.y.shape[1]
    if 1 < dim <= _ALL_PAIRS:
        rows, columns = np.where(~np.eye(dim, dtype=bool))
        some = moves.part(slice(_ENTRIES // len(rows)))
        held = np.clip(some.y, -_HELD, _HELD)
        parts["correlation"] = held[:, rows] * some.slope[:, columns]
    return parts


def _learned(moves: _Moves) -> dict[str, Cloud]:
    """Functions of directions that the draws before have chosen."""
    n, dim = moves.y.shape
    first = int(_FIRST * n)
    if dim < 2 or first < _FOR_EACH * dim:
        return {}
    held, slope = np.clip(moves.y, -_HELD, _HELD), moves.slope
    found: dict[str, list[Numbers]] = {"spread": [], "wide spread": [], "shift": []}
    edges = np.linspace(first, n, _BLOCKS + 1).astype(int)
    for start, end in itertools.pairwise(edges.tolist()):
        product = held[:start].T @ slope[:start] / start
        directions = np.linalg.eigh(-0.5 * (product + product.T))[1]
        shift = np.mean(slope[:start], axis=0)
        tested = moves.part(slice(start, end))
        found["spread"].append(tested.of_sum(_log_cosh, directions[:, 0]))
        found["wide spread"].append(tested.of_sum(_log_cosh, directions[:, -1]))
        found["shift"].append(slope[start:end] @ (shift / max(np.linalg.norm(shift), 1e-300)))
    return {name: np.concatenate(values)[:, None] for name, values in found.items()}


def _log_cosh(t: np.ndarray) -> np.ndarray:
    """4 ln cosh(t/2): as t² where most draws are, and as |t| beyond."""
    return 4.0 * (np.logaddexp(0.5 * t, -0.5 * t) - np.log(2.0))


def _worst(parts: dict[str, Cloud], dim: int) -> SteinTests:
    """The most surprising column of all, its p-value not yet corrected for their number."""
    worst, tested = SteinTests(1.0, "shift", -1, 0.0, 0), 0
    for name, values in parts.items():
        sizes = _sizes(values)
        tested += int(np.sum(sizes != 0.0))
        at = int(np.argmax(np.abs(sizes)))
        p_value = 2.0 * float(stats.t.sf(abs(sizes[at]), len(values) - 1))
        if p_value < worst.p_value:
            coordinate = at if values.shape[1] == dim else -1
            worst = SteinTests(p_value, name, coordinate, float(sizes[at]), 0)
    return worst._replace(tested=tested)


def _sizes(values: Cloud) -> Numbers:
    """Means over their errors, as normal as their skewness lets them be (Hall 1992); 0 where a few
    draws decide."""
    count, mean = len(values), np.mean(values, axis=0)
    away = values - mean
    squares = away**2
    total = np.sum(squares, axis=0)
    most = max(_LARGEST_SHARE, _FEW_DECIDE / count)
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = (total > 0.0) & (np.max(squares, axis=0) <= most * total)
        sd = np.sqrt(total / (count - 1))
        skew, size = np.mean(away**3, axis=0) / sd**3, mean / sd
        cubic = size + skew * size**2 / 3.0 + skew**2 * size**3 / 27.0 + skew / (6.0 * count)
    usable &= np.abs(skew) <= _MOST_SKEW * np.sqrt(count)
    # What mends it may overdo it: the less surprising of the two.
    less = np.where(np.abs(cubic) < np.abs(size), cubic, size)
    return np.where(usable, np.sqrt(count) * less, 0.0)


def _stretched(
    density: HostDensity, points: Cloud, frame: Frame, axes: np.ndarray, inside: Inside | None
) -> dict[str, Cloud]:
    """Moves that stretch and shrink one coordinate each: y to e^±k y, and how far out it is."""
    values = density.values(points)
    points, values = points[np.isfinite(values)], values[np.isfinite(values)]
    y = frame.inward(points)[:, axes]
    spread, tails = np.zeros(y.shape), np.zeros(y.shape)
    outermost = np.log(np.maximum(np.abs(y), _TAIL))
    for column, axis in enumerate(axes.tolist()):
        way = frame.directions(np.eye(frame.dim)[axis : axis + 1])
        moves = 0.0
        for power in (_GROWTH, -_GROWTH):
            places = points + y[:, column : column + 1] * np.expm1(power) * way
            there = _values(density, places, inside)
            share = special.expit(there - values + power)
            moves += 0.5 * float(np.mean(share))
            spread[:, column] += share * power
            moved = np.abs(y[:, column]) * np.exp(power)
            tails[:, column] += share * (np.log(np.maximum(moved, _TAIL)) - outermost[:, column])
        spread[:, column] *= moves >= _LEAST_MOVED
    tails[:, np.sum(tails**2, axis=0) < _FEWEST_OUT * _GROWTH**2] = 0.0
    return {"width": spread, "outer spread": tails}


def _values(density: HostDensity, places: Cloud, inside: Inside | None) -> Numbers:
    values = density.values(places)
    return values if inside is None else np.where(inside(places), values, -np.inf)


def _rounding(density: HostDensity, points: Cloud, frame: Frame) -> float:
    """Of the places of copies, in the width of the thinnest coordinate."""
    # Few draws are so far out in heavy tails that their steps are lost.
    size = np.quantile(np.abs(points), _NOT_FAR, axis=0).astype(density.precision)
    return float(np.max(np.spacing(size) / frame.conditional))
