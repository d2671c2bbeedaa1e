"""Climbs from many starts at once: BFGS where there is a gradient, evolution strategies elsewhere.

All in the draws' own frame, where a unit is a unit in every direction, and in NumPy: one call of
the density serves all climbers, and nothing is compiled for it.
"""

import numpy as np

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

_ROUNDS, _HALVINGS = 80, 6
_ENOUGH = 1e-3
"""A climber whose log p grows by less than this in a round has arrived."""

_SUFFICIENT = 1e-4
_EVOLUTION_ROUNDS = 400
_GROW, _SHRINK = 1.5, 0.9
"""Balanced where a fifth of the steps succeed (Rechenberg 1973)."""


def climb(
    density: HostDensity, frame: Frame, starts: Cloud, seed: int = 0
) -> tuple[Cloud, Numbers]:
    """Where climbs from some starts end, and log p there; starts of zero density are left out."""
    values = density.values(starts)
    alive = np.isfinite(values)
    y, values = frame.inward(starts[alive]), values[alive]
    if not len(y):
        return starts[alive], values
    if density.target.differentiable:
        y, values = _by_gradient(density, frame, y, values)
    # Also after a gradient: an edge, or a kink, stops BFGS and not this.
    rounds = _EVOLUTION_ROUNDS // (12 if density.target.differentiable else 1)
    rounds = density.share_of(rounds * int(np.sqrt(frame.dim)), 20)
    y, values = _by_evolution(density, frame, y, values, rounds, np.random.default_rng(seed))
    return frame.outward(y), values


def slopes(density: HostDensity, frame: Frame, y: Cloud) -> Cloud:
    """Gradients in the frame; 0 where they overflow far out, or are not defined."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = (density.gradients(frame.outward(y)) * frame.scale) @ frame.factor
    return np.where(np.all(np.isfinite(found), axis=1, keepdims=True), found, 0.0)


def _by_gradient(
    density: HostDensity, frame: Frame, y: Cloud, values: Numbers
) -> tuple[Cloud, Numbers]:
    """BFGS with a backtracking line search, each climber with its own matrix."""
    n, dim = y.shape
    eye = np.eye(dim)
    slope = slopes(density, frame, y)
    inverse = np.repeat(eye[None], n, axis=0)
    inverse /= (1e-12 + np.linalg.norm(slope, axis=1) / np.sqrt(dim))[:, None, None]
    climbing = np.ones(n, bool)
    for _ in range(_ROUNDS):
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
        new, new_values = _line_search(density, frame, y[at], values[at], step, gain)
        moved = new_values > values[at]
        new_slope = slopes(density, frame, new)
        change, turn = new - y[at], slope[at] - new_slope
        inverse[at] = _updated(inverse[at], change, turn, moved)
        climbing[at] = moved & (new_values - values[at] > _ENOUGH)
        y[at], values[at], slope[at] = new, new_values, new_slope
    return y, values


def _line_search(
    density: HostDensity, frame: Frame, y: Cloud, values: Numbers, step: Cloud, gain: Numbers
) -> tuple[Cloud, Numbers]:
    new, new_values, length = y.copy(), values.copy(), np.ones(len(y))
    seeking = np.ones(len(y), bool)
    for _ in range(_HALVINGS):
        at = np.flatnonzero(seeking)
        if not len(at):
            break
        tried = y[at] + length[at, None] * step[at]
        found = density.values(frame.outward(tried))
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


def _by_evolution(
    density: HostDensity,
    frame: Frame,
    y: Cloud,
    values: Numbers,
    rounds: int,
    generator: np.random.Generator,
) -> tuple[Cloud, Numbers]:
    """(1+1) evolution strategies, all coordinates or one at a time."""
    n, dim = y.shape
    size = np.full(n, 0.5)
    for number in range(rounds):
        noise = generator.normal(size=(n, dim))
        if number % 3 == 2:
            noise *= np.eye(dim)[generator.integers(dim, size=n)] * np.sqrt(dim)
        tried = y + size[:, None] / np.sqrt(dim) * noise
        found = density.values(frame.outward(tried))
        better = found > values
        y[better], values[better] = tried[better], found[better]
        size *= np.where(better, _GROW, _SHRINK)
    return y, values
