"""Learning: from a target or from samples to a trained sampler.

fit               the way in, with nothing to choose
pool              particles near the target: a search, then a mover
sal_mc            self-adversarial learning, from an unnormalised density
al_mc             adversarial learning, from given samples
a_nice_mc         the rival: a volume-preserving kernel, learned adversarially on pairs
self_adversarial  one step: Algorithm 1 of the paper, top to bottom
self_paired       the same for kernels on (x, v), with the game on pairs of `pair_game`
learned_energy    log p learned from its values, for these kernels
objective         what the kernel is trained on, term by term
engine            many steps of any method: chunks, rollback, early stop, checkpoints
review            whether the pool that was learned from can be trusted
"""

from salmc.learning.a_nice_mc import a_nice_mc
from salmc.learning.al_mc import al_mc
from salmc.learning.nice_settings import NICESettings, nice_settings
from salmc.learning.pair_settings import PairSettings
from salmc.learning.pool import fill_pool
from salmc.learning.sal_mc import sal_mc
from salmc.learning.settings import LearningSettings, default_settings

__all__ = [
    "LearningSettings",
    "NICESettings",
    "PairSettings",
    "a_nice_mc",
    "al_mc",
    "default_settings",
    "fill_pool",
    "nice_settings",
    "sal_mc",
]
