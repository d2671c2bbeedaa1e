"""Weights of modes, where the target has labelled ones."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.arrays import AnyArray, LabelsLike


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


def mode_weights(labels: LabelsLike, truth: Float[AnyArray, " modes"]) -> ModeWeights:
    """Count labels 0 … modes − 1, such as `target.component(points)` gives."""
    labels, truth = np.asarray(labels), np.asarray(truth, dtype=np.float64)
    if labels.size == 0 or labels.min() < 0 or labels.max() >= len(truth):
        checks.fail("labels", f"numbers of modes, 0 to {len(truth) - 1}", labels)
    return ModeWeights(np.bincount(labels, minlength=len(truth)) / labels.size, truth)
