"""Maximum mean discrepancy between a sample and exact draws (Gretton et al. 2012).

    MMD² = E κ(x, x') + E κ(y, y') − 2 E κ(x, y),   κ(x, y) = exp(−|x − y|²/h),

unbiased: a point is never paired with itself, so that values below zero occur. h is the median
squared distance between the exact draws y. The floor is what exact draws of the same number score.
"""

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.point_sets import (
    AnyArray,
    PointsLike,
    as_points,
    median_squared_distance,
    row_blocks,
    squared_distances,
    subset,
)

_FLOOR_POINTS = 2000
"""Exact draws used for the floor. Its size follows from 1/n + 1/m, so more points add little."""


def median_bandwidth(reference: PointsLike) -> float:
    """h: the median squared distance between exact draws."""
    h = median_squared_distance(as_points("reference", reference))
    if not h > 0:
        checks.fail("reference", "points of which most differ", "more than half coincide")
    return h


def mmd_squared(
    x: PointsLike, y: Float[AnyArray, "m dim"], bandwidth: float | None = None
) -> float:
    """Unbiased MMD² between a sample x and exact draws y, made in blocks.

    Args:
        x: (n, dim), the sample.
        y: (m, dim), exact draws.
        bandwidth: h; the median squared distance between the y where not given.
    """
    sample, exact = as_points("x", x), as_points("y", y)
    if bandwidth is None:
        h = median_bandwidth(exact)
    else:
        h = checks.real("bandwidth", bandwidth, above=0.0)
    centre = np.mean(exact, axis=0)
    sample, exact = sample - centre, exact - centre
    n, m = len(sample), len(exact)
    # The diagonal is exactly the number of points, as κ(x, x) = 1.
    within_sample = (_kernel_sum(sample, sample, h) - n) / (n * (n - 1))
    within_exact = (_kernel_sum(exact, exact, h) - m) / (m * (m - 1))
    return float(within_sample + within_exact - 2.0 * _kernel_sum(sample, exact, h) / (n * m))


def mmd_floor(
    reference: PointsLike,
    n: int,
    m: int,
    bandwidth: float | None = None,
    *,
    quantile: float = 0.95,
    splits: int = 300,
    seed: int = 0,
) -> float:
    """The quantile of `mmd_squared` between n and m exact, independent draws.

    Exact draws are split in halves at random many times. Under the null the statistic is
    distributed as (1/n + 1/m) times a law that depends on the target alone, which carries the
    value from the halves' size to (n, m).

    Args:
        reference: exact draws, at least four.
        n, m: sizes of the two samples that were compared.
        bandwidth: h as in `mmd_squared`.
        quantile: of the null distribution.
        splits: how many random halves.
        seed: of the splits.
    """
    checks.real("quantile", quantile, above=0.0, at_most=1.0)
    points = as_points("reference", reference, at_least=4)
    h = median_bandwidth(points) if bandwidth is None else bandwidth
    generator = np.random.default_rng(seed)
    half = min(len(points), _FLOOR_POINTS) // 2
    points = points[subset(len(points), 2 * half, generator)]
    points = points - np.mean(points, axis=0)
    kernel = np.exp(-squared_distances(points, points) / h)
    np.fill_diagonal(kernel, 0.0)
    signs = np.tile(np.repeat([1.0, -1.0], half)[:, None], (1, splits))
    signs = generator.permuted(signs, axis=0)
    # Σ_{i≠j} K_ij s_i s_j = same − cross, and same + cross = Σ_{i≠j} K_ij.
    difference = np.sum(signs * (kernel @ signs), axis=0)
    total = np.sum(kernel)
    same, cross = (total + difference) / 2, (total - difference) / 2
    statistics = same / (half * (half - 1)) - cross / half**2
    return float(np.quantile(statistics, quantile) * (1 / n + 1 / m) / (2 / half))


def _kernel_sum(x: np.ndarray, y: np.ndarray, h: float) -> float:
    """Σ_ij κ(x_i, y_j)."""
    total = 0.0
    for rows in row_blocks(len(x), len(y)):
        exponents = squared_distances(x[rows], y)
        exponents *= -1.0 / h
        total += float(np.sum(np.exp(exponents, out=exponents)))
    return total
