"""How A-NICE-MC trains: the authors' penalty, numbers of steps and Adam, and what a CPU needs."""

import dataclasses

from salmc import checks
from salmc.learning.settings import PoolSettings

_FEW_DIMENSIONS = 4

_VELOCITY = 0.56
"""For each coordinate; see `settings._VELOCITY`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NICESettings(PoolSettings):
    """How A-NICE-MC trains; `nice_settings` has the defaults for a dimension.

    The authors train with batches of 32 at a constant rate of 5e-4 for up to 10⁵ steps. Larger
    batches, a higher rate that decays, and averaged weights need far fewer.

    Attributes, beside those that all methods have:
        approach: b, the most steps from noise to the first point of a pair.
        leap: m, the most steps between the two points of a pair.
        velocity: weight of −log N(v') for each coordinate of v'.
        refill_every: steps of training between refills of the buffer (the pool).
        refill_steps: Metropolis-Hastings steps of the half of the buffer that is renewed.
    """

    penalty: float = 10.0
    critic_steps: int = 5
    steps: int = 5000
    batch: int = 64
    learning_rate: float = 1e-3
    momentum: float = 0.5
    second_momentum: float = 0.9
    average: float = 0.99
    approach: int = 8
    leap: int = 2
    velocity: float = 0.2
    refill_every: int = 500
    refill_steps: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_numbers("velocity", at_least=0.0)
        self.check_integers("approach", "leap", "refill_every", "refill_steps", least=1)

    def traced(self) -> "NICESettings":
        return super().traced().replace(refill_every=1)


def nice_settings(dim: int) -> NICESettings:
    """The defaults of A-NICE-MC for a target of so many coordinates."""
    checks.integer("dim", dim, 1)
    if dim <= _FEW_DIMENSIONS:
        return NICESettings()
    return NICESettings(approach=16, velocity=_VELOCITY * dim, steps=6000)
