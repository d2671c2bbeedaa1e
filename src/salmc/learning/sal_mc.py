"""SAL-MC: self-adversarially learned sampling, from an unnormalised density alone (Algorithm 1).

    Input: x̃₀ ~ N(0, I)                         `pool.fill_pool`, then whitened coordinates
    for t = 1, 2, …                              `loop.train`, in compiled chunks of
        x_t ← AG-SVGD(x̃_{t−1})                   `step.adjust_particles`
        m times: train the discriminator         `step.train_critic`
        train the generator                      `objective.kernel_objective`
        x̃_t ← G(x̃_{t−1}, ξ), then m times more   `state.inputs`, `extra_transitions`
    Output: transition operator G                `Learned.kernel`
    2. sampling                                  `Learned.sampler().sample(…)`

The self-learning module may be any mover. By default a pool is filled once by tempered SMC, and
exact Metropolis steps keep it fresh while the kernel learns; a tractable kernel takes such steps
itself, and so repairs the pool that it learns from.
"""

from pathlib import Path
from typing import Any

import equinox as eqx

from salmc import checks
from salmc.kernels.base import AbstractKernel
from salmc.learning.critic import Critic
from salmc.learning.from_density import learn_from_density
from salmc.learning.learned import Learned
from salmc.learning.pool import find_mover
from salmc.learning.prepare import find_kernel, find_settings, keys_of
from salmc.learning.sal_scheme import SAL_SCHEME
from salmc.learning.settings import LearningSettings
from salmc.movers.base import AbstractMover
from salmc.progress import AbstractReporter
from salmc.target import AbstractTarget


def sal_mc(
    target: AbstractTarget,
    kernel: str | AbstractKernel = "flow",
    *,
    mover: str | AbstractMover = "smc",
    settings: LearningSettings | None = None,
    critic: eqx.Module | None = None,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> Learned:
    """Train a kernel on a target.

    Args:
        target: an unnormalised log density. Only its values are used, unless the mover needs
            gradients; never its exact draws or known moments.
        kernel: a name, or a kernel with its first weights.
        mover: what fills the pool, by name or made for this target.
        settings: how to train; by default what suits the kernel.
        critic: a module (n, dim) ↦ (n,) in place of the default critic.
        seed: the same seed gives the same kernel.
        progress: True for a bar, False for silence, or a reporter.
        checkpoint: a file in which the state is saved now and then.
        resume: go on from `checkpoint` if it is there. The kernel is then the same, bit for bit,
            as without the interruption.

    Raises:
        ArgumentError: if settings, kernel, mover and target do not fit together.
        TargetError: if the density cannot be used.
        OutputError: if the checkpoint cannot be written, or is another run's.

    Example:
        >>> import salmc
        >>> from salmc.learning import default_settings, sal_mc
        >>> settings = default_settings("flow", 2).replace(steps=20, pool_size=1024)
        >>> target = salmc.Target(lambda x: -0.5 * (x**2).sum(), dim=2)
        >>> sal_mc(target, "flow", settings=settings, progress=False).kernel.dim
        2
    """
    if not isinstance(target, AbstractTarget):
        checks.fail("target", "a target", target)
    checks.integer("seed", seed, 0)
    keys = keys_of(seed, 5)
    kernel = find_kernel(kernel, target.dim, keys[0])
    settings = find_settings(settings, kernel, has_target=True)
    mover = find_mover(target, mover)
    if critic is None and settings.adversarial > 0.0:
        critic = Critic(keys[1], target.dim)
    details: dict[str, Any] = {"seed": seed, "target": target.name, "mover": mover.name}
    return learn_from_density(
        target,
        kernel,
        critic,
        mover,
        settings,
        SAL_SCHEME,
        keys[2:],
        method="sal-mc",
        details=details,
        moves_all=settings.pool_move == "mover",
        progress=progress,
        checkpoint=checkpoint,
        resume=resume,
    )
