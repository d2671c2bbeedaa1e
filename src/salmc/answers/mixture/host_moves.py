"""Exact moves of a small cloud on the host: nothing is compiled for them but the density."""

import dataclasses

import numpy as np

from salmc.answers.mixture.evaluator import Evaluator
from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.straightening.search import shows_funnel
from salmc.movers.funnels import through_funnels


@dataclasses.dataclass(frozen=True)
class Moves:
    """Of particles, with log p there.

    Attributes:
        evaluator: log p.
        generator: of all randomness.
        sweeps: of differential evolution, at a time.
    """

    evaluator: Evaluator
    generator: np.random.Generator
    sweeps: int

    def evolved(self, points: Cloud, values: Numbers) -> tuple[Cloud, Numbers]:
        """After sweeps of differential evolution: halves move in turn."""
        points, values, half = points.copy(), values.copy(), len(points) // 2
        for _ in range(self.sweeps):
            for mine, others in (
                (slice(0, half), slice(half, None)),
                (slice(half, None), slice(0, half)),
            ):
                points[mine], values[mine] = self._evolve(
                    points[mine], values[mine], points[others]
                )
        return points, values

    def through_funnels(self, points: Cloud, values: Numbers, turns: int) -> tuple[Cloud, Numbers]:
        """After at most so many turns along funnels, where the cloud shows any."""
        if turns == 0 or not shows_funnel(points):
            return points, values
        return through_funnels(points, values, self.evaluator, self.evolved, self.generator, turns)

    def _evolve(self, points: Cloud, values: Numbers, others: Cloud) -> tuple[Cloud, Numbers]:
        """One Metropolis step of each point by differences of others, as in `movers.evolution`."""
        count, dim = points.shape
        first, second = self.generator.integers(len(others), size=(2, count))
        scale = np.exp(self.generator.uniform(np.log(0.1), np.log(1.2), count))
        factor = np.where(
            self.generator.uniform(size=count) < 0.1, 1.0, scale * 2.38 / np.sqrt(2.0 * dim)
        )
        noise = 1e-3 * np.std(others, axis=0) * self.generator.standard_normal(points.shape)
        new = points + factor[:, None] * (others[first] - others[second]) + noise
        new = self.evaluator.rounded(new)
        new_values = self.evaluator(new)
        with np.errstate(invalid="ignore"):
            taken = np.log1p(-self.generator.uniform(size=count)) < new_values - values
        return np.where(taken[:, None], new, points), np.where(taken, new_values, values)
