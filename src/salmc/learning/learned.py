"""What learning gives: a trained kernel and all that a sampler needs, and how it came about."""

import dataclasses
from typing import Any

import numpy as np

from salmc.kernels.base import AbstractKernel
from salmc.kernels.whitening import Whitening
from salmc.learning.settings import TrainingSettings
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget


@dataclasses.dataclass(frozen=True, eq=False)
class Learned:
    """A trained kernel.

    Attributes:
        kernel: with averaged and, where it has a calibration, calibrated weights.
        whitening: to the coordinates that the kernel lives in.
        pool: (n, dim), in the target's coordinates.
        log_density: log p at the pool; zeros without a target.
        start: where the mover began, or the given samples: what the warm-up saw.
        target: None where only samples were known.
        method: "sal-mc", "al-mc" or "a-nice-mc".
        settings: of the learning.
        details: further arguments, as JSON values.
        history: figures by name, one entry for each chunk; `figure` is what `figure_kind` says.
        seconds: by part.
        warnings: what went wrong, in words.
    """

    kernel: AbstractKernel
    whitening: Whitening
    pool: np.ndarray
    log_density: np.ndarray
    start: np.ndarray
    target: AbstractTarget | None
    method: str
    settings: TrainingSettings
    details: dict[str, Any]
    history: dict[str, list[float]]
    seconds: dict[str, float]
    warnings: tuple[str, ...]

    def sampler(self) -> Sampler:
        """Ready to draw."""
        return Sampler(
            kernel=self.kernel,
            target=self.target,
            whitening=self.whitening,
            pool=self.pool,
            method=self.method,
            settings={**self.details, **self.settings.as_dictionary()},
            history=self.history,
            seconds=self.seconds,
            warnings=self.warnings,
        )
