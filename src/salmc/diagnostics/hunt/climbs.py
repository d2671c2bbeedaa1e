"""Climbs from many starts at once: BFGS where there is a gradient, evolution strategies elsewhere.

All in the draws' own frame, where a unit is a unit in every direction, and in NumPy: one call of
the density serves all climbers, and nothing is compiled for it.
"""

import numpy as np

from salmc.diagnostics.hunt.ascent import ascend
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

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
    ends = ascend(
        lambda y: density.values(frame.outward(y)),
        lambda y, values: slopes(density, frame, y),
        y,
        values,
    )
    return ends.points, ends.values


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
