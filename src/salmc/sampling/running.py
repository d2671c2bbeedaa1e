"""What is kept in memory of draws that go to the disk: moments in one pass, and a few of them."""

from typing import Any

import numpy as np

from salmc.sampling.draws import Draws
from salmc.sampling.executor import Block, ChainRun

KEPT_DRAWS = 2000
"""Of each chain in the thinned subsample, at most."""

KEPT_BYTES = 2**27
"""Of the thinned subsample, at most."""


class RunningMoments:
    """Mean and variance of each chain in one pass, merged block by block (Chan et al. 1979)."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, np.zeros(()), np.zeros(())

    def add(self, block: Block) -> None:
        """Merge one more block."""
        values = np.asarray(block.positions, dtype=np.float64)
        count, mean = len(values), np.mean(values, axis=0)
        squares = np.sum((values - mean) ** 2, axis=0)
        total, shift = self._count + count, mean - self._mean
        self._squares = self._squares + squares + shift**2 * (self._count * count / total)
        self._mean = self._mean + shift * (count / total)
        self._count = total

    def figures(self) -> dict[str, np.ndarray]:
        """Of each chain, and of all together."""
        within = np.mean(self._squares, axis=0) / max(self._count - 1, 1)
        mean = np.mean(self._mean, axis=0)
        between = np.mean((self._mean - mean) ** 2, axis=0)
        chains = len(self._mean)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = between * chains / (chains - 1) if chains > 1 else np.full_like(mean, np.nan)
            rhat = np.sqrt((self._count - 1) / self._count + spread / within)
        return {
            "mean": mean,
            "sd": np.sqrt(np.mean(self._squares, axis=0) / self._count + between),
            "chain_mean": self._mean,
            "chain_sd": np.sqrt(self._squares / max(self._count - 1, 1)),
            "rhat": rhat,
        }


class Thinning:
    """Every k-th draw of all chains, k as small as the limits allow."""

    def __init__(self, run: ChainRun):
        row = run.chains * run.dim * run.dtype.itemsize
        kept = max(1, min(KEPT_DRAWS, KEPT_BYTES // row))
        self._stride = max(1, -(-run.draws // kept))
        self._metropolis = run.transition.metropolis
        self._blocks: list[Block] = []
        self._steps: list[np.ndarray] = []

    def add(self, block: Block, done: int) -> None:
        """Keep some of a block that comes after `done` steps."""
        steps = np.arange(done + 1, done + 1 + len(block))
        # An interrupted run has at least its first draw.
        chosen = (steps - 1) % self._stride == 0
        self._steps.append(steps[chosen])
        self._blocks.append(block.only(chosen))

    def draws(self, **fields: Any) -> Draws:
        """The subsample; `accepted` tells of the thinned steps alone."""
        kept = Block.join(self._blocks)
        fields["settings"] = {**fields["settings"], "every": self._stride}
        return Draws(
            positions=kept.positions.swapaxes(0, 1),
            log_density=kept.log_density.T,
            accepted=kept.accepted.T if self._metropolis else None,
            steps=np.concatenate(self._steps),
            **fields,
        )
