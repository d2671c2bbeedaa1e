"""Where a few steps uphill lead from very many places at once.

A mode that is narrower than its neighbours attracts climbs from a small part of space only, so that
a few hundred climbs miss it. Whole climbs from tens of thousands of places would take minutes; but
three of Cauchy's steps, each to the top of the parabola that two gradients draw along a line,

    y ← y + t ĝ,   t = |g| / c,   c = −ĝ·(∇log p(y + h ĝ) − g) / h,

end nearly there where a mode is round in the frame at hand. That is the draws' own, and, as draws
of several modes have a frame that is none of theirs, that of draws around one of them. Of all that
landed, the likeliest that are far apart are worth a climb.
"""

import numpy as np

from salmc.diagnostics.hunt.climbs import slopes
from salmc.diagnostics.hunt.tempering import WideStart
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

_PLACES, _ROUNDS, _KEPT = 32_000, 3, 48
_PROBE = 0.02
"""Distance of the second gradient, over the distance from the centre."""

_APART = 0.5
"""Landings nearer to each other than this times √dim, in the frame, are taken for one."""

_NEIGHBOURS = 150

_LEAST_EFFORT = 0.2
"""Below it a density is too slow to be asked so often."""


def landings(
    density: HostDensity, points: Cloud, frame: Frame, generator: np.random.Generator
) -> Cloud:
    """The likeliest places that a few steps uphill lead to, far apart; none without a gradient."""
    if not density.target.differentiable or density.effort < _LEAST_EFFORT:
        return np.zeros((0, frame.dim))
    found = []
    for one in (frame, _local(points, frame, generator)):
        places, _ = WideStart(one).sample(density.share_of(_PLACES // 2), generator)
        values = density.values(places)
        alive = np.isfinite(values)
        y, values = one.inward(places[alive]), values[alive]
        for _ in range(_ROUNDS):
            y, values = _uphill(density, one, y, values)
        found.append(one.outward(y[_likeliest_apart(y, values)]))
    return np.concatenate(found)


def _local(points: Cloud, frame: Frame, generator: np.random.Generator) -> Frame:
    """The frame of the draws around one of them, in its own units."""
    at = points[generator.integers(len(points))]
    size = min(_NEIGHBOURS + 10 * frame.dim, len(points))
    for _ in range(2):
        squares = np.sum((frame.inward(points) - frame.inward(at[None])) ** 2, axis=1)
        frame = Frame.of(points[np.argsort(squares)[:size]])
    return frame


def _uphill(density: HostDensity, frame: Frame, y: Cloud, values: Numbers) -> tuple[Cloud, Numbers]:
    """One of Cauchy's steps from each place, where it leads up."""
    slope = slopes(density, frame, y)
    size = np.linalg.norm(slope, axis=1)
    unit = slope / np.maximum(size, 1e-300)[:, None]
    far = np.sqrt(frame.dim) + np.linalg.norm(y, axis=1)
    probe = _PROBE * far
    bend = -np.sum(unit * (slopes(density, frame, y + probe[:, None] * unit) - slope), axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        length = np.where(bend > 0.0, size * probe / bend, far)
    length = np.minimum(np.where(np.isfinite(length), length, far), 10.0 * far)
    tried = y + length[:, None] * unit
    found = density.values(frame.outward(tried))
    better = found > values
    return np.where(better[:, None], tried, y), np.where(better, found, values)


def _likeliest_apart(y: Cloud, values: Numbers) -> np.ndarray:
    """Indices of the likeliest, each far from all that are likelier."""
    order = np.argsort(-values)
    kept: list[int] = []
    near = _APART**2 * y.shape[1]
    free = np.ones(len(y), bool)
    for at in order.tolist():
        if len(kept) == _KEPT:
            break
        if free[at]:
            kept.append(at)
            free &= np.sum((y - y[at]) ** 2, axis=1) > near
    return np.array(kept, int)
