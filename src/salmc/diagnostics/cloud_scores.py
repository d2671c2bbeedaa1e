"""Which of several clouds of particles stands best for p? Values of log p decide, nothing else.

All clouds are judged by one reference, `fit_density` of their union weighted by p, which is an
estimate of p wherever any of them went. Two terms, because each is blind to what the other sees:

* the gradient-free Stein discrepancy: shape and place within modes, and collapse;
* MMD² against draws of the reference: modes that a cloud misses and another one found.

Each is divided by what draws from the reference itself would score, so that both count alike.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.density_fit import FittedDensity, fit_density
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.mmd import median_bandwidth, mmd_floor, mmd_squared
from salmc.diagnostics.point_sets import AnyArray, as_points
from salmc.diagnostics.stein_kernel import stein_kernel_diagonal

AnyPoints = Float[AnyArray, "_ dim"]
AnyValues = Float[AnyArray, " _"]

_REFERENCE_DRAWS = 1000
"""Draws of the reference for MMD², the same for all clouds."""


class CloudScore(NamedTuple):
    """How one cloud did; smaller is better."""

    score: float
    """KSD² and MMD² in units of what the reference itself scores; about 1 for exact draws."""
    ksd_squared: float
    mmd_squared: float
    mmd_score: float
    """The part of the score that MMD² gives."""


def compare_clouds(
    clouds: Sequence[AnyPoints],
    log_density_values: Sequence[AnyValues],
    *,
    also: tuple[AnyPoints, AnyValues] | None = None,
    seed: int = 0,
) -> list[CloudScore]:
    """Score clouds of one target, such as those that several settings of a mover end in.

    Args:
        clouds: each (n, dim), finite; n may differ.
        log_density_values: log p at the points of each.
        also: further points and their log p, such as where the particles started. They are not
            scored, but widen the reference: if all clouds collapsed, only these show it.
        seed: of the reference.
    """
    if not clouds or len(clouds) != len(log_density_values):
        checks.fail("log_density_values", "one array for each cloud", len(log_density_values))
    points = [as_points("clouds", cloud) for cloud in clouds]
    values = [np.asarray(value, dtype=np.float64) for value in log_density_values]
    union, union_values = list(points), list(values)
    if also is not None:
        union.append(as_points("also", also[0]))
        union_values.append(np.asarray(also[1], dtype=np.float64))
    reference = fit_density(np.concatenate(union), np.concatenate(union_values), seed=seed)
    draws = reference.sample(_REFERENCE_DRAWS, seed)
    bandwidth = median_bandwidth(draws)
    smallest = min(len(cloud) for cloud in points)
    mmd_unit = mmd_floor(draws, smallest, smallest, bandwidth, seed=seed)
    ksd_unit = _exact_value(reference, draws) / smallest
    scores = []
    for cloud, value in zip(points, values, strict=True):
        ksd = gradient_free_ksd_squared(cloud, value, reference=reference, bootstrap=0).value
        mmd = mmd_squared(cloud, draws, bandwidth)
        mmd_score = max(mmd, 0.0) / mmd_unit
        scores.append(CloudScore(ksd / ksd_unit + mmd_score, ksd, mmd, mmd_score))
    return scores


def _exact_value(reference: FittedDensity, draws: np.ndarray) -> float:
    """n E[KSD²] of n draws from the reference: only pairs of a point with itself remain."""
    _, scores = reference.log_density_and_score(draws)
    return float(np.mean(stein_kernel_diagonal(scores * reference.scale, reference.length)))
