"""The Stein kernel of the inverse multiquadric, and sums over it, as matrix products in blocks.

With k(x, y) = u = (c² + r²)^{−1/2}, r = |x − y|, and a score s = ∇ log p,

    k_p(x, y) = s(x)·s(y) u + [s(x)·(x − y) − s(y)·(x − y)] u³ + dim u³ − 3 r² u⁵.

Its expectation over x, y ~ π vanishes if π = p. This kernel's tails decay slowly enough to see a
sample that drifts off, which the RBF kernel does not in high dimension (Gorham & Mackey 2017).
"""

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.point_sets import (
    Points,
    StatisticWithFloor,
    Values,
    row_blocks,
    squared_distances,
)


def stein_kernel_diagonal(scores: Points, c: float) -> Values:
    """k_p(x_i, x_i) = |s_i|²/c + dim/c³."""
    return np.sum(scores**2, axis=1) / c + scores.shape[1] / c**3


def quadratic_forms(
    points: Points, scores: Points, c: float, weights: Float[np.ndarray, "n b"]
) -> Float[np.ndarray, " b"]:
    """Σ_ij a_i k_p(x_i, x_j) a_j for each column a of `weights`; memory stays bounded.

    The points must be centred near 0.
    """
    dim = points.shape[1]
    score_dot_point = np.sum(scores * points, axis=1)
    forms = np.zeros(weights.shape[1])
    for rows in row_blocks(len(points), len(points)):
        distances = squared_distances(points[rows], points)
        u2 = 1.0 / (c**2 + distances)
        u = np.sqrt(u2)
        drift = score_dot_point[rows][:, None] + score_dot_point[None, :]
        drift -= scores[rows] @ points.T + points[rows] @ scores.T
        kernel = u * (scores[rows] @ scores.T + u2 * (drift + dim - 3.0 * distances * u2))
        forms += np.sum(weights[rows] * (kernel @ weights), axis=0)
    return forms


def natural_length(scores: Points) -> float:
    """c = √(dim / median |s|²), at most 1: the width of the target's own features.

    For a Gaussian in units of its standard deviation this is 1; for narrow modes far apart it is
    the modes' width, at which errors of their shape show. Lengths far from it lose power.
    """
    typical = float(np.median(np.sum(scores**2, axis=1)))
    return min(1.0, float(np.sqrt(scores.shape[1] / typical))) if typical > 0 else 1.0


def bootstrapped(
    points: Points,
    scores: Points,
    c: float,
    *,
    weights: Values,
    diagonal: bool,
    bootstrap: int,
    quantile: float,
    seed: int,
) -> StatisticWithFloor:
    """Σ_ij w_i w_j k_p(x_i, x_j), and its floor by the wild bootstrap (Chwialkowski et al. 2016).

    The floor is the quantile of Σ_ij ε_i w_i ε_j w_j k_p(x_i, x_j) over random signs ε = ±1: what
    independent exact draws would score. Without `bootstrap`, the number of sign flips, there is no
    floor (NaN); `diagonal` tells whether pairs of a point with itself count.
    """
    checks.integer("bootstrap", bootstrap, 0)
    count = len(points)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(count, bootstrap))
    columns = np.concatenate([np.ones((count, 1)), signs], axis=1) * weights[:, None]
    forms = quadratic_forms(points, scores, c, columns)
    if not diagonal:
        # ε_i² = 1: the diagonal is the same in every column.
        forms = forms - np.sum(weights**2 * stein_kernel_diagonal(scores, c))
    floor = float(np.quantile(forms[1:], quantile)) if bootstrap else float("nan")
    return StatisticWithFloor(float(forms[0]), floor)
