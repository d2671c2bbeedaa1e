"""Gradient-free kernel Stein discrepancy (Fisher & Oates 2023): values of log p alone.

For any tractable density q with score ∇ log q,

    E_{x,y~π} [ (q/p)(x) k_q(x, y) (q/p)(y) ] = 0   at π = p,

so a sample can be judged without the gradient of p: the sample, weighted by q/p, must look like q.
Weights are kept in log space, normalised over the sample (p is known up to a constant), and
clipped to e^±3 around their median: one stray point does not decide alone, and points far off,
where q is even smaller than p, are not forgotten. Where q is close to p the clip touches nothing.

The choice of q decides what is seen. The discrepancy judges the sample where q has mass and
nowhere else. With q fitted to the sample itself, a cloud that has collapsed is compared with its
own small surroundings and scores well. So fit q to something broader, the same for all samples
that are compared: `fit_density(union of clouds and starting points, their log densities)`, which
approximates p wherever any of them went. Fisher & Oates name the limits: q must not have
heavier tails than p, and weights degenerate in high dimension (about 20 and above, unless p is
close to the fitted Gaussian). And like every Stein discrepancy it does not see the weights of
modes far apart: `compare_clouds` adds a term that does.
"""

import numpy as np

from salmc import checks
from salmc.diagnostics.density_fit import FittedDensity, fit_density
from salmc.diagnostics.point_sets import (
    PointsLike,
    StatisticWithFloor,
    Values,
    ValuesLike,
    as_points,
)
from salmc.diagnostics.stein_kernel import bootstrapped

LOG_WEIGHT_CLIP = 3.0
"""Around the median of the log weights; the clip that also keeps AG-SVGD steady."""


def gradient_free_ksd_squared(
    x: PointsLike,
    log_density_values: ValuesLike,
    *,
    reference: FittedDensity | None = None,
    length: float | None = None,
    bootstrap: int = 300,
    quantile: float = 0.95,
    seed: int = 0,
) -> StatisticWithFloor:
    """KSD² without the gradient of p: Σ_ij w_i w_j k_q(x_i, x_j), w ∝ q/p.

    Args:
        x: (n, dim), the sample.
        log_density_values: (n,), log p at the points up to a constant; NaN and −inf are zero
            density, which makes a point's weight the largest allowed.
        reference: q, and the unit of each coordinate. Values can be compared only between samples
            judged by the same one. Fitted to the sample itself where not given, which is blind to
            collapse.
        length: c of the kernel in units of the reference's spread; its `length` where not given.
        bootstrap: number of sign flips for the floor; 0 leaves it out (NaN).
        quantile: of the null distribution that is called the floor.
        seed: of the bootstrap.

    Returns:
        The value, never negative (pairs of a point with itself are kept, so that even a cloud
        in one place has a large value), and its floor. Infinite if p is zero at all points.
    """
    points = as_points("x", x)
    log_p = np.asarray(log_density_values, dtype=np.float64)
    if log_p.shape != (len(points),):
        checks.fail("log_density_values", f"of shape ({len(points)},)", log_p.shape)
    if not np.any(np.isfinite(log_p)):
        return StatisticWithFloor(float("inf"), float("nan"))
    if reference is None:
        reference = fit_density(points, seed=seed)
    log_q, scores = reference.log_density_and_score(points)
    return bootstrapped(
        (points - np.mean(points, axis=0)) / reference.scale,
        scores * reference.scale,
        reference.length if length is None else checks.real("length", length, above=0.0),
        weights=_weights(log_q, log_p),
        diagonal=True,
        bootstrap=bootstrap,
        quantile=quantile,
        seed=seed,
    )


def _weights(log_q: Values, log_p: Values) -> Values:
    """q/p normalised over the sample and clipped."""
    usable = np.isfinite(log_p)
    ratio = np.where(usable, log_q - np.where(usable, log_p, 0.0), np.inf)
    middle = np.median(ratio[usable])
    ratio = np.clip(ratio, middle - LOG_WEIGHT_CLIP, middle + LOG_WEIGHT_CLIP)
    weights = np.exp(ratio - np.max(ratio))
    return weights / np.sum(weights)
