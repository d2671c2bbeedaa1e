"""Stage 4: learning, from a target or from samples to a trained kernel.

pool         particles near the target: a search, then a mover
moves        exact moves that keep the pool honest
critic, losses, transport, objective
             what the kernel is trained on, term by term
step         one step: the body of the paper's Algorithm 1
loop         many steps: chunks, rollback, early stop
sal_mc       self-adversarial learning, from an unnormalised density
al_mc        adversarial learning, from given samples
a_nice_mc    the rival: a volume-preserving kernel, learned adversarially on pairs
"""

from salmc.learning.a_nice_mc import a_nice_mc
from salmc.learning.al_mc import al_mc
from salmc.learning.learned import Learned
from salmc.learning.nice_settings import NICESettings, nice_settings
from salmc.learning.pool import fill_pool
from salmc.learning.sal_mc import sal_mc
from salmc.learning.settings import LearningSettings, default_settings

__all__ = [
    "Learned",
    "LearningSettings",
    "NICESettings",
    "a_nice_mc",
    "al_mc",
    "default_settings",
    "fill_pool",
    "nice_settings",
    "sal_mc",
]
