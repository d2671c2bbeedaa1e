"""Draws of some steps on their way from the device to whoever asked for them."""

import dataclasses
from typing import Any

import numpy as np

from salmc.sampling.metropolis import Steps


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Draws of some steps, in the target's own coordinates.

    Attributes:
        positions: (step, chain, dim).
        log_density: (step, chain).
        accepted: (step, chain) of bool; without a Metropolis step, whether a proposal was finite.
        invalid: how many proposals were not finite.
    """

    positions: np.ndarray
    log_density: np.ndarray
    accepted: np.ndarray
    invalid: int = 0

    def __len__(self) -> int:
        return len(self.positions)

    def only(self, steps: Any) -> "Block":
        """Some of the steps, by a slice or a mask."""
        return Block(self.positions[steps], self.log_density[steps], self.accepted[steps])

    @staticmethod
    def beside(blocks: "list[Block]") -> "Block":
        """The same steps of several groups of chains."""
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            np.concatenate([block.positions for block in blocks], axis=1),
            np.concatenate([block.log_density for block in blocks], axis=1),
            np.concatenate([block.accepted for block in blocks], axis=1),
            sum(block.invalid for block in blocks),
        )

    @staticmethod
    def join(blocks: "list[Block]") -> "Block":
        """One after the other."""
        return Block(
            np.concatenate([block.positions for block in blocks]),
            np.concatenate([block.log_density for block in blocks]),
            np.concatenate([block.accepted for block in blocks]),
        )


def fetch(steps: Steps, count: int) -> Block:
    """To the host, without the steps beyond the end of the run."""
    positions, log_density, accepted = (np.asarray(array)[:count] for array in steps[:3])
    return Block(positions, log_density, accepted, int(steps.invalid))
