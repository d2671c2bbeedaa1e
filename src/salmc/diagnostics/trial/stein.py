"""Stein tests: means that vanish under p, each over its own standard error.

For a smooth φ and a density p that vanishes at infinity, E_p[s_i(x) φ(x) + ∂_i φ(x)] = 0 with the
score s = ∇ log p. With y the draws in their own frame, φ is 1, y_j for all j and tanh y_i: shift,
spread, correlation, shape. Others are chosen by some draws and tested on others: spread and shift
in the direction in which they are most off (`learned_functions`), and the witness of the kernel
Stein discrepancy,

    f(x) = mean_j k_p(x, y_j),    E_p f(x) = 0 for x ~ p whatever the y_j are.

Dividing by the error that the other half itself shows makes this normal, whatever the kernel's
tails are (Kim & Ramdas 2024), which a bootstrap of the whole double sum is not. A function whose
sum is decided by a few draws is left out: it has no error to speak of.
"""

from typing import NamedTuple

import numpy as np
from scipy import stats

from salmc.diagnostics.point_sets import Cloud, Numbers, row_blocks, squared_distances
from salmc.diagnostics.stein_kernel import natural_length
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.learned_functions import learned_values

_LARGEST_SHARE = 0.03
"""Of a sum of squares that one draw may have."""

_ALL_PAIRS = 40
"""Up to so many coordinates all products y_i s_j are tested, above it those with i = j."""

_MANY = 0.5
"""Coordinates over √n, from which on each half of the draws is seen in the frame of the other."""

_WITNESS_POINTS = 1000


class SteinTests(NamedTuple):
    """The most surprising of all functions."""

    p_value: float
    """For all of them together."""
    function: str
    """"shift", "spread", "correlation", "shape" or "kernel"."""
    coordinate: int
    """Of the draws' frame, in which it showed; −1 where all together did."""
    size: float
    """In standard errors."""
    tested: int
    """Functions whose error could be told."""


def stein_tests(points: Cloud, scores: Cloud, frame: Frame) -> SteinTests:
    """Test nearly independent points against the scores there, in random order."""
    y, s = _in_frame(points, scores, frame)
    dim, alike = y.shape[1], (y, s)
    if dim > _MANY * np.sqrt(len(points)):
        # A frame of the same draws follows what is chance in them, by dim/n in each coordinate.
        alike = _in_frame(points, scores, frame._replace(factor=np.eye(dim)))
        half = len(points) // 2
        parts_of = slice(0, half), slice(half, None)
        y, s = (
            np.concatenate(both)
            for both in zip(
                *(
                    _in_frame(points[one], scores[one], Frame.of(points[other]))
                    for one, other in (parts_of, parts_of[::-1])
                ),
                strict=True,
            )
        )
    bounded = np.tanh(y)
    parts = {
        "shift": s,
        "spread": y * s + 1.0,
        "shape": bounded * s + 1.0 - bounded**2,
        "overall spread": np.sum(y * s + 1.0, axis=1, keepdims=True),
    }
    if 1 < dim <= _ALL_PAIRS:
        rows, columns = np.where(~np.eye(dim, dtype=bool))
        parts["correlation"] = y[:, rows] * s[:, columns]
    chosen = learned_values(points, scores)
    fixed, learned = _worst(parts, dim), _worst(chosen, dim)
    size, tested = witness_size(*alike), fixed.tested + learned.tested
    if size is not None:
        tested += 1
        p_value = float(stats.norm.sf(size))
        if p_value < learned.p_value:
            learned = SteinTests(p_value, "kernel", -1, size, 0)
    # Half of the level for each: what draws choose is a few looks, all that is fixed hundreds.
    looks = sum(values.shape[1] for values in parts.values())
    corrected = [
        test._replace(p_value=min(1.0, 2.0 * count * test.p_value), tested=tested)
        for test, count in ((fixed, looks), (learned, len(chosen) + 1))
    ]
    return min(corrected, key=lambda test: test.p_value)


def _in_frame(points: Cloud, scores: Cloud, frame: Frame) -> tuple[Cloud, Cloud]:
    return frame.inward(points), (scores * frame.scale) @ frame.factor


def _worst(parts: dict[str, Cloud], dim: int) -> SteinTests:
    """The most surprising column of all, its p-value not yet corrected for their number."""
    worst, tested = SteinTests(1.0, "shift", -1, 0.0, 0), 0
    for name, values in parts.items():
        sizes, usable = studentised(values)
        tested += int(np.sum(usable))
        if not np.any(usable):
            continue
        at = int(np.argmax(np.where(usable, np.abs(sizes), -1.0)))
        p_value = 2.0 * float(stats.t.sf(abs(sizes[at]), len(values) - 1))
        if p_value < worst.p_value:
            coordinate = -1 if values.shape[1] != dim else at
            worst = SteinTests(p_value, name, coordinate, float(sizes[at]), 0)
    return worst._replace(tested=tested)


def studentised(values: Cloud) -> tuple[Numbers, np.ndarray]:
    """Means over their standard errors, and whether the errors can be told."""
    squares = values**2
    total = np.sum(squares, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = (total > 0.0) & (np.max(squares, axis=0) <= _LARGEST_SHARE * total)
        error = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
        return np.where(usable, np.mean(values, axis=0) / error, 0.0), usable


def witness_size(y: Cloud, s: Cloud) -> float | None:
    """The witness's mean over its error, averaged over both ways to halve; None if untold."""
    half = min(len(y) // 2, _WITNESS_POINTS)
    if half < 20:
        return None
    length = natural_length(s)
    first, second = slice(0, half), slice(half, 2 * half)
    sizes = []
    for one, other in ((first, second), (second, first)):
        size, usable = studentised(_witness(y[one], s[one], y[other], s[other], length)[:, None])
        if not usable[0]:
            return None
        sizes.append(float(size[0]))
    # The mean of two normal numbers, however correlated, is no wider than one of them.
    return 0.5 * sum(sizes)


def _witness(x: Cloud, sx: Cloud, y: Cloud, sy: Cloud, c: float) -> Numbers:
    """mean_j k_p(x_i, y_j), with the kernel of `stein_kernel`."""
    dim, found = x.shape[1], np.empty(len(x))
    own_y = np.sum(sy * y, axis=1)
    for rows in row_blocks(len(x), len(y)):
        distances = squared_distances(x[rows], y)
        u2 = 1.0 / (c**2 + distances)
        drift = np.sum(sx[rows] * x[rows], axis=1)[:, None] + own_y[None, :]
        drift -= sx[rows] @ y.T + x[rows] @ sy.T
        kernel = np.sqrt(u2) * (sx[rows] @ sy.T + u2 * (drift + dim - 3.0 * distances * u2))
        found[rows] = np.mean(kernel, axis=1)
    return found
