"""What is kept in memory of draws that go to the disk: moments in one pass, and a few of them."""

import dataclasses
from typing import Any

import numpy as np

from salmc.sampling.draws import Draws
from salmc.sampling.executor import Block, ChainRun

KEPT_DRAWS = 2000
"""Of each chain in the thinned subsample, at most."""

KEPT_BYTES = 2**27
"""Of the thinned subsample, at most."""


@dataclasses.dataclass(frozen=True, eq=False)
class RunningMoments:
    """Mean and variance of each chain in one pass, merged block by block (Chan et al. 1979).

    Attributes:
        count: draws of each chain.
        mean: (chain, dim).
        squares: (chain, dim), sums of squared deviations from the mean.
    """

    count: int = 0
    mean: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(()))
    squares: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(()))

    def plus(self, block: Block) -> "RunningMoments":
        """With one more block."""
        values = np.asarray(block.positions, dtype=np.float64)
        count, mean = len(values), np.mean(values, axis=0)
        squares = np.sum((values - mean) ** 2, axis=0)
        total, shift = self.count + count, mean - self.mean
        return RunningMoments(
            total,
            self.mean + shift * (count / total),
            self.squares + squares + shift**2 * (self.count * count / total),
        )

    def figures(self) -> dict[str, np.ndarray]:
        """Of each chain, and of all together."""
        within = np.mean(self.squares, axis=0) / max(self.count - 1, 1)
        mean = np.mean(self.mean, axis=0)
        between = np.mean((self.mean - mean) ** 2, axis=0)
        chains = len(self.mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = between * chains / (chains - 1) if chains > 1 else np.full_like(mean, np.nan)
            rhat = np.sqrt((self.count - 1) / self.count + spread / within)
        return {
            "mean": mean,
            "sd": np.sqrt(np.mean(self.squares, axis=0) / self.count + between),
            "chain_mean": self.mean,
            "chain_sd": np.sqrt(self.squares / max(self.count - 1, 1)),
            "rhat": rhat,
        }


class Thinning:
    """Every k-th draw of all chains, k as small as the limits allow."""

    def __init__(self, run: ChainRun):
        row = run.chains * run.dim * run.dtype.itemsize
        kept = max(1, min(KEPT_DRAWS, KEPT_BYTES // row))
        self._stride = max(1, -(-run.draws // kept))
        self._metropolis = run.transition.metropolis
        self._kept: list[tuple[np.ndarray, Block]] = []

    def add(self, block: Block, done: int) -> None:
        """Keep some of a block that comes after `done` steps."""
        steps = np.arange(done + 1, done + 1 + len(block))
        # An interrupted run has at least its first draw.
        chosen = (steps - 1) % self._stride == 0
        if np.any(chosen):
            self._kept.append((steps[chosen], block.only(chosen)))

    def between(self, first: int, last: int) -> tuple[np.ndarray, Block] | None:
        """The draws that are kept of steps after `first`, up to `last`; None if there are none."""
        found = [(steps, kept) for steps, kept in self._kept if first < steps[0] <= last]
        if not found:
            return None
        return np.concatenate([steps for steps, _ in found]), Block.join([b for _, b in found])

    def restore(self, steps: np.ndarray, kept: Block) -> None:
        """Keep what was kept before an interruption."""
        self._kept.append((steps, kept))

    def draws(self, done: int, **fields: Any) -> Draws:
        """The subsample of `done` steps; `accepted` tells of the thinned steps alone."""
        found = self.between(0, done)
        assert found is not None  # the first draw is always kept
        steps, kept = found
        fields["settings"] = {**fields["settings"], "every": self._stride}
        return Draws(
            positions=kept.positions.swapaxes(0, 1),
            log_density=kept.log_density.T,
            accepted=kept.accepted.T if self._metropolis else None,
            steps=steps,
            **fields,
        )
