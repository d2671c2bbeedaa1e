"""Kernel Stein discrepancy: how far a sample is from p, by the gradient of log p alone.

    KSD² = E_{x,y~π} k_p(x, y)

with the Stein kernel of the inverse multiquadric (see `stein_kernel`). It needs neither the
normalising constant nor exact draws. It is local: weights of well separated modes hardly move it,
and a mode that holds no point at all does not show (Wenliang & Kanagawa 2020).

Points are measured in units of the sample's standard deviation, one for each coordinate, and
scores in its inverse, so that the value does not depend on the units of the target. To compare
several samples of one target, give all of them the same `scale` and `length`.
"""

from typing import Literal

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.point_sets import (
    AnyArray,
    PointsLike,
    StatisticWithFloor,
    as_points,
    safe_scale,
)
from salmc.diagnostics.stein_kernel import bootstrapped, natural_length


def ksd_squared(
    x: PointsLike,
    scores: PointsLike,
    *,
    statistic: Literal["u", "v"] = "u",
    scale: Float[AnyArray, " dim"] | None = None,
    length: float | None = None,
    bootstrap: int = 300,
    quantile: float = 0.95,
    seed: int = 0,
) -> StatisticWithFloor:
    """KSD² of a sample, and its floor by the wild bootstrap; see `stein_kernel.bootstrapped`.

    Args:
        x: (n, dim), the sample.
        scores: (n, dim), ∇ log p at each point.
        statistic: "u" leaves out pairs of a point with itself: unbiased, and negative for clouds
            more even than a random sample. "v" keeps them: never negative.
        scale: unit of each coordinate; the sample's standard deviation where not given.
        length: c of the kernel in these units; where not given, `natural_length` of the scores.
        bootstrap: number of resamples for the floor; 0 leaves it out (NaN).
        quantile: of the null distribution that is called the floor.
        seed: of the bootstrap.

    Returns:
        The value, and what independent exact draws would score. Correlated draws score more: thin
        them first.
    """
    checks.choice("statistic", statistic, ("u", "v"))
    points, gradients = as_points("x", x), as_points("scores", scores)
    if points.shape != gradients.shape:
        checks.fail("scores", f"of shape {points.shape}, as `x`", gradients.shape)
    unit = safe_scale(points) if scale is None else np.asarray(scale, dtype=np.float64)
    points, gradients = (points - np.mean(points, axis=0)) / unit, gradients * unit
    c = natural_length(gradients) if length is None else checks.real("length", length, above=0.0)
    pairs = len(points) * (len(points) - (statistic == "u"))
    return bootstrapped(
        points,
        gradients,
        c,
        weights=np.full(len(points), pairs**-0.5),
        diagonal=statistic == "v",
        bootstrap=bootstrap,
        quantile=quantile,
        seed=seed,
    )
