"""How SAL-MC trains kernels on (x, v): on pairs, as A-NICE-MC does, from its own pool."""

import dataclasses
import math
from typing import ClassVar

from salmc import checks
from salmc.learning.settings import LearningSettings

_FEW_DIMENSIONS = 4

_VELOCITY = 3.0
"""Times √dim: acceptance falls with |v'|² as a whole, of which the loss has the mean."""

_ALONE = {
    "adversarial": 1.0,
    "wasserstein": 0.0,
    "decorrelation": 0.0,
    "likelihood": 0.0,
    "regression": 0.0,
}
"""Terms of `LearningSettings` that the game on pairs has no others beside."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairSettings(LearningSettings):
    """SAL-MC whose critic sees pairs; `default_settings` has the defaults for a dimension.

    Attributes, beside those of `LearningSettings`, which say how the pool moves:
        approach: b, the most steps from noise to the first point of a pair; 0 where all pairs
            begin at the pool.
        leap: m, the most steps between the two points of a pair.
        energy: weight of E[e(x') + ½ v'·v'], with e learned from values of log p
            (`learned_energy`). It takes the place of `velocity`, which counts where it is 0 or only
            samples are known.
    """

    sees_pairs: ClassVar[bool] = True

    penalty: float = 10.0
    critic_steps: int = 5
    steps: int = 2500
    batch: int = 64
    learning_rate: float = 1e-3
    momentum: float = 0.5
    second_momentum: float = 0.9
    average: float = 0.99
    velocity: float = 0.2
    refresh: float = 1.0
    exact_refresh: bool = True
    # The kernel carries particles between modes itself.
    mixture_components: int = 0
    approach: int = 5
    leap: int = 2
    energy: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_numbers("energy", at_least=0.0)
        self.check_integers("approach", least=0)
        self.check_integers("leap", least=1)
        for name, value in _ALONE.items():
            if getattr(self, name) != value:
                expectation = f"{value} where the critic sees pairs"
                checks.fail(name, expectation, getattr(self, name))

    @property
    def makes_proposals(self) -> bool:
        return super().makes_proposals or self.energy > 0.0


def pair_settings(dim: int) -> PairSettings:
    """The defaults for a target of so many coordinates."""
    checks.integer("dim", dim, 1)
    if dim <= _FEW_DIMENSIONS:
        return PairSettings()
    # It begins as a quarter turn, which on targets near a Gaussian is hard to better: small steps,
    # and weight for acceptance, as independence is there from the beginning, in one step already.
    return PairSettings(
        approach=0,
        leap=1,
        batch=128,
        steps=2000,
        learning_rate=1e-4,
        second_momentum=0.99,
        average=0.998,
        energy=0.5,
        velocity=_VELOCITY * math.sqrt(dim),
    )
