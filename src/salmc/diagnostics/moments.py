"""Errors of the first two moments, where the true ones are known."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.arrays import AnyArray, PointsLike, as_points


class MomentErrors(NamedTuple):
    """How far a sample's mean and spread are from the truth."""

    mean_mse: float
    """Mean over coordinates of (sample mean − μ)², as in the paper's Mog10 figure."""
    variance_mse: float
    """Mean over coordinates of (sample variance − σ²)²."""
    mean_error: Float[np.ndarray, " k"]
    """(sample mean − μ)/σ of each coordinate."""
    sd_ratio: Float[np.ndarray, " k"]
    """Sample standard deviation / σ of each coordinate; 1 is right, below 1 too narrow."""


def moment_errors(
    points: PointsLike, mean: Float[AnyArray, " k"], std: Float[AnyArray, " k"]
) -> MomentErrors:
    """Compare the mean and spread of (n, k) points with the truth."""
    sample = as_points("points", points)
    true_mean, true_std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    offset = np.mean(sample, axis=0) - true_mean
    variance = np.var(sample, axis=0)
    return MomentErrors(
        mean_mse=float(np.mean(offset**2)),
        variance_mse=float(np.mean((variance - true_std**2) ** 2)),
        mean_error=offset / true_std,
        sd_ratio=np.sqrt(variance) / true_std,
    )
