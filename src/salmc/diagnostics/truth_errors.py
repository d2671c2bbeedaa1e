"""Errors against the truth where it is known: of the first two moments, and of mode weights."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.point_sets import AnyArray, LabelsLike, PointsLike, as_points


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


class ModeWeights(NamedTuple):
    """Share of the sample in each mode, beside the true share."""

    weights: Float[np.ndarray, " modes"]
    truth: Float[np.ndarray, " modes"]

    @property
    def largest_error(self) -> float:
        """Largest |share − true share| over the modes."""
        return float(np.max(np.abs(self.weights - self.truth)))

    @property
    def missing(self) -> int:
        """Number of modes with weight that hold no point."""
        return int(np.sum((self.weights == 0) & (self.truth > 0)))


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


def mode_weights(labels: LabelsLike, truth: Float[AnyArray, " modes"]) -> ModeWeights:
    """Count labels 0 … modes − 1, such as `target.component(points)` gives."""
    labels, truth = np.asarray(labels), np.asarray(truth, dtype=np.float64)
    if labels.size == 0 or labels.min() < 0 or labels.max() >= len(truth):
        checks.fail("labels", f"numbers of modes, 0 to {len(truth) - 1}", labels)
    return ModeWeights(np.bincount(labels, minlength=len(truth)) / labels.size, truth)
