"""How much a mixture that adapts may spend, by what the density costs."""

from typing import NamedTuple

from salmc.sizes import MANY_DATA, MANY_DIMENSIONS
from salmc.target import AbstractTarget

_FEW_DIMENSIONS = 4
"""Up to which many draws find narrow modes."""


class Effort(NamedTuple):
    """How much is spent.

    Attributes:
        each: draws in a round.
        rounds: at most so many in a row.
        repairs: at most so many looks by local moves, after each of which the rounds go on.
        particles, sweeps: of these looks.
        turns: through funnels, in each of them.
        climbs: from peaks of the draws, and from any of them, at most so many each.
        hunts: for modes that a settled mixture lacks, while they find any; at most so many.
        wide: draws of the proposal that covers, beside those of the rounds: narrow modes.
        followers: particles that show how a target bends.
    """

    each: int = 1024
    rounds: int = 40
    repairs: int = 3
    particles: int = 512
    sweeps: int = 40
    turns: int = 4
    climbs: int = 48
    hunts: int = 3
    wide: int = 0
    followers: int = 2048


FRUGAL = Effort(
    each=400,
    rounds=25,
    repairs=2,
    particles=200,
    sweeps=10,
    turns=0,
    climbs=36,
    hunts=2,
    followers=400,
)
"""For densities that are dear, as black boxes are."""


_AMPLE = 500_000
"""Evaluations, below which a budget is for a density that is dear, whoever wrote it."""


def effort_for(target: AbstractTarget, limit: int | None = None) -> Effort:
    """By what the density costs, as far as it is known: the same on every machine.

    Args:
        target: what is searched.
        limit: of evaluations, if there is one.
    """
    dear = not target.differentiable or target.size > MANY_DATA
    if dear or (limit is not None and limit < _AMPLE):
        return FRUGAL
    if target.dim > MANY_DIMENSIONS:
        # Only what Laplace's Gaussians nearly describe can be had by draws alone.
        return Effort(each=max(1024, 16 * target.dim), rounds=6, repairs=1, climbs=24, hunts=2)
    return Effort(wide=2**16 if target.dim <= _FEW_DIMENSIONS else 2**12)
