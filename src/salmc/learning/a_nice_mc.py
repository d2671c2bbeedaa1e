"""A-NICE-MC: a volume-preserving kernel trained adversarially on pairs, bootstrapped from itself.

    fill the buffer                                   `pool.fill_pool`
    for t = 1, 2, …                                   `loop.train`
        every 500 steps: half of the buffer is        `nice_step.refill`
            replaced by the kernel's exact chain
        5 times: train the critic on pairs            `pair_critic`
        train the kernel                              `nice_step.training_step`

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

from salmc import checks
from salmc.kernels.base import AbstractKernel
from salmc.kernels.nice import NICEKernel
from salmc.learning.from_density import learn_from_density
from salmc.learning.learned import Learned
from salmc.learning.nice_settings import NICESettings, nice_settings
from salmc.learning.nice_step import NICE_SCHEME
from salmc.learning.pair_critic import PairCritic
from salmc.learning.pool import find_mover
from salmc.learning.prepare import find_kernel, keys_of
from salmc.movers.base import AbstractMover
from salmc.progress import AbstractReporter
from salmc.target import AbstractTarget


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
) -> Learned:
    """Train a NICE kernel on a target by A-NICE-MC.

    Args:
        target: an unnormalised log density. Only its values are used, unless the mover needs
            gradients; never its exact draws or known moments.
        kernel: "nice", or a `NICEKernel` with its first weights.
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
        >>> settings = nice_settings(2).replace(steps=10, pool_size=512)
        >>> a_nice_mc(target, settings=settings, progress=False).kernel.velocity_dim
        2
    """
    if not isinstance(target, AbstractTarget):
        checks.fail("target", "a target", target)
    checks.integer("seed", seed, 0)
    keys = keys_of(seed, 5)
    kernel = find_kernel(kernel, target.dim, keys[0])
    if not isinstance(kernel, NICEKernel):
        checks.fail("kernel", "a NICE kernel for a-nice-mc", f"the kernel {kernel.name}")
    settings = nice_settings(target.dim) if settings is None else settings
    if not isinstance(settings, NICESettings):
        checks.fail("settings", "NICESettings for a-nice-mc", settings)
    mover = find_mover(target, mover)
    critic = PairCritic(keys[1], target.dim) if critic is None else critic
    details: dict[str, Any] = {"seed": seed, "target": target.name, "mover": mover.name}
    return learn_from_density(
        target,
        kernel,
        critic,
        mover,
        settings,
        NICE_SCHEME,
        keys[2:],
        method="a-nice-mc",
        details=details,
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
    )
