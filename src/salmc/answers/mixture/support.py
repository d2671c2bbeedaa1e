"""Where a density is positive: points of it that the first draws missed, and its edges.

A density that is −inf outside of a box shows nothing at all to draws that miss the box. Points
whose coordinates are alike find many such, and walks spread from there.
"""

import jax
import numpy as np

from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.evaluator import BudgetSpentError, Evaluator
from salmc.movers.cover import find_edges
from salmc.movers.start import find_support

_WALKERS, _FEW_WALKERS = 512, 32
"""Particles that spread over a support from a point of it; of a black box fewer."""

_MANY_OUTSIDE = 0.02
"""Share of a mixture's draws where the density is zero, at which to look for edges."""

_FEWEST_EACH = 16
"""Points for each coordinate that look for edges."""


def support_of(evaluator: Evaluator, seed: int) -> np.ndarray | None:
    """Points of positive density where the first draws met none; None within a budget."""
    if evaluator.limit is not None:
        return None
    count = _WALKERS if evaluator.target.differentiable else _FEW_WALKERS
    found = find_support(evaluator.target, jax.random.key(seed), count)
    return None if found is None else np.asarray(found, np.float64)


def edges_of(found: Adaptation) -> tuple[np.ndarray, np.ndarray] | None:
    """Bounds of a box or half space, where many draws of the mixture fall outside the support."""
    values = found.archive.latest()[1]
    if np.mean(values == -np.inf) < _MANY_OUTSIDE:
        return None
    count = max(_FEWEST_EACH * found.archive.dim, found.effort.particles // 2)
    rows = found.archive.resampled(found.generator, count)
    try:
        return find_edges(found.evaluator, found.archive.points[rows])
    except BudgetSpentError:
        return None
