"""A-NICE-MC: a volume-preserving kernel trained adversarially on pairs, bootstrapped from itself.

    fill the buffer                                   `pool.fill_pool`
    for t = 1, 2, …                                   `engine.train`
        every 500 steps: half of the buffer is        `NiceMethod.move_pool`
            replaced by the kernel's exact chain
        5 times: train the critic on pairs            `pair_critic`
        train the kernel                              `NiceMethod.step`

The authors fill the first buffer by HMC; here a mover does, as it does for SAL-MC, and the pool's
mean and covariance whiten the coordinates. So both methods begin with the same knowledge, and none
looks at exact draws. From then on the buffer is renewed by the kernel's own Metropolis chain alone.

The game has no fixed point that it settles at: the weights kept are those (averaged) at which the
exact chain moved furthest on the buffer (`validation`, "stay").

`velocity` is not the authors' 1: the critic is held to slope 1, so that its part of the loss grows
with the scale of x. That is 1 here, and in the authors' coordinates 3.6 on Mog6 and some tenths in
their regressions. So it is 0.2 in few dimensions; in many 0.56 for each coordinate of x: 14 on
German, where the authors' 1 would be 10.

Reference: Song, Zhao and Ermon, "A-NICE-MC: adversarial training for MCMC", NeurIPS 2017.
"""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.learning.learner import Learner, find_kernel
from salmc.learning.method import TrainingState, first_state
from salmc.learning.nice_settings import NICESettings, nice_settings
from salmc.learning.nice_training import NiceMethod
from salmc.learning.pair_critic import PairCritic
from salmc.learning.particles import Particles, Values
from salmc.learning.pool import find_mover
from salmc.movers.base import AbstractMover
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget, Points


def a_nice_mc(
    target: AbstractTarget,
    kernel: str | AbstractKernel = "nice",
    *,
    mover: str | AbstractMover = "smc",
    settings: NICESettings | None = None,
    critic: PairCritic | None = None,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> Sampler:
    """Train a NICE kernel on a target by A-NICE-MC.

    Args:
        target: an unnormalised log density. Only its values are used, unless the mover needs
            gradients; never its exact draws or known moments.
        kernel: "nice", or a volume-preserving kernel with its first weights.
        mover: what fills the first buffer, by name or made for this target.
        settings: how to train; by default what suits the dimension.
        critic: in place of the default one.
        seed: the same seed gives the same kernel.
        progress: True for a bar, False for silence, or a reporter.
        checkpoint: a file in which the state is saved now and then.
        resume: go on from `checkpoint` if it is there, to the same kernel bit for bit.

    Raises:
        ArgumentError: if settings, kernel, mover and target do not fit together.
        TargetError: if the density cannot be used.
        OutputError: if the checkpoint cannot be written, or is another run's.

    Example:
        >>> import salmc
        >>> from salmc.learning import a_nice_mc, nice_settings
        >>> target = salmc.Target(lambda x: -0.5 * (x**2).sum(), dim=2)
        >>> settings = nice_settings(2).replace(steps=10)
        >>> a_nice_mc(target, settings=settings, progress=False).kernel.velocity_dim
        2
    """
    if not isinstance(target, AbstractTarget):
        checks.fail("target", "a target", target)
    target = target.unbounded
    learner = Learner("a-nice-mc", seed, checkpoint=checkpoint, resume=resume, progress=progress)
    made = find_kernel(kernel, target.dim, learner.key(0))
    if not (made.exact and made.volume_preserving):
        checks.fail("kernel", "a NICE kernel for a-nice-mc", f"the kernel {made.name}")
    chosen = nice_settings(target.dim) if settings is None else settings
    if not isinstance(chosen, NICESettings):
        checks.fail("settings", "NICESettings for a-nice-mc", chosen)
    filler = find_mover(target, mover)
    judge = PairCritic(learner.key(1), target.dim) if critic is None else critic

    def method(whitening: Whitening, target: AbstractTarget) -> NiceMethod:
        return NiceMethod(made, judge, chosen, target, whitening)

    details: dict[str, Any] = {"target": target.name, "mover": filler.name}
    return learner.from_density(method, _begin, filler, details)


def _begin(
    method: NiceMethod, key: PRNGKeyArray, points: Points, log_density: Values
) -> TrainingState:
    del key
    # Pairs begin at the buffer and at fresh noise: no chain goes on from step to step.
    nowhere = jnp.zeros((0, method.kernel.dim))
    return first_state(method, nowhere, Particles(points, log_density, jnp.zeros((1, 1))))
