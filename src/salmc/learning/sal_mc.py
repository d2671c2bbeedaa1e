"""SAL-MC: self-adversarially learned sampling, from an unnormalised density alone.

    Input: x̃₀ ~ N(0, I)                 `pool.fill_pool`, then whitened coordinates
    1. training                         `engine.train`, of steps that are Algorithm 1's:
                                        `self_adversarial.SelfAdversarial.step`
    Output: transition operator G       `Sampler.kernel`
    2. sampling                         `Sampler.sample`

The self-learning module may be any mover. By default a pool is filled once by tempered SMC, and
exact Metropolis steps keep it fresh while the kernel learns; a tractable kernel takes such steps
itself, and so repairs the pool that it learns from.
"""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening, numpy_generator
from salmc.learning.critic import Critic
from salmc.learning.learner import Learner, find_kernel, learning_settings
from salmc.learning.method import TrainingState, first_state
from salmc.learning.particles import Particles, Values, quantiles
from salmc.learning.pool import Pool, find_mover
from salmc.learning.self_adversarial import SelfAdversarial
from salmc.learning.settings import LearningSettings
from salmc.movers.base import AbstractMover
from salmc.programs import on_device
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget, Points


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
    effective: int | None = None,
    pool: Pool | None = None,
) -> Sampler:
    """Train a kernel on a target.

    Args:
        target: an unnormalised log density. Only its values are used, unless the mover needs
            gradients; never its exact draws or known moments.
        kernel: a name, or a kernel with its first weights.
        mover: what fills the pool, by name or made for this target.
        settings: how to train; by default what suits the kernel.
        critic: a module (n, dim) ↦ (n,) in place of the default critic; of pairs (n, 2 dim) where
            the settings say that it sees them, as they do for kernels on (x, v).
        seed: the same seed gives the same kernel.
        progress: True for a bar, False for silence, or a reporter.
        checkpoint: a file in which the state is saved now and then.
        resume: go on from `checkpoint` if it is there. The kernel is then the same, bit for bit,
            as without the interruption.
        effective: draws that will be wanted: training ends when no more of it pays for them.
        pool: particles to begin with, `settings.pool_size` of them, in the coordinates of
            `target.unbounded`; by default the mover finds them.

    Raises:
        ArgumentError: if settings, kernel, mover and target do not fit together.
        TargetError: if the density cannot be used.
        OutputError: if the checkpoint cannot be written, or is another run's.

    Example:
        >>> import jax, salmc
        >>> from salmc.learning import default_settings, sal_mc
        >>> settings = default_settings("flow", 2).replace(steps=20)
        >>> kernel = salmc.kernels.FlowKernel(jax.random.key(0), 2, layers=2, width=16, knots=6)
        >>> target = salmc.Target(lambda x: -0.5 * (x**2).sum(), dim=2)
        >>> sal_mc(target, kernel, settings=settings, progress=False).kernel.dim
        2
    """
    if not isinstance(target, AbstractTarget):
        checks.fail("target", "a target", target)
    target = target.unbounded
    learner = Learner("sal-mc", seed, checkpoint, resume, progress, effective)
    made = find_kernel(kernel, target.dim, learner.key(0))
    chosen = learning_settings(settings, made, has_target=True)
    if chosen.sees_pairs and isinstance(kernel, str):
        # The pool will be whitened, of which a quarter turn makes independent proposals.
        made = made.turned()
    filler = find_mover(target, mover)
    judge = find_critic(critic, chosen, target.dim, learner.key(1))
    judge = with_energy(judge, chosen, target.dim, learner.key(6))
    moves_all = chosen.pool_move == "mover"
    steps = filler if moves_all and isinstance(filler, AbstractMover) else None
    if moves_all and steps is None:
        checks.fail("mover", 'one that takes steps, for `pool_move` "mover"', filler.name)

    def method(whitening: Whitening, target: AbstractTarget) -> SelfAdversarial:
        return method_of(chosen)(made, judge, chosen, target, whitening, steps)

    details: dict[str, Any] = {"target": target.name, "mover": filler.name}
    return learner.from_density(method, begin, filler, details, settle=not moves_all, pool=pool)


def method_of(settings: LearningSettings) -> type[SelfAdversarial]:
    """The method that trains by these settings."""
    if not settings.sees_pairs:
        return SelfAdversarial
    from salmc.learning.self_paired import SelfPaired

    return SelfPaired


def find_critic(
    critic: eqx.Module | None, settings: LearningSettings, dim: int, key: PRNGKeyArray
) -> eqx.Module | None:
    """The critic given, or the default one of these settings; None where there is no game."""
    if critic is not None or settings.adversarial == 0.0:
        return critic
    if not settings.sees_pairs:
        return Critic(key, dim)
    from salmc.learning.pair_critic import PairCritic

    return PairCritic(key, dim)


def with_energy(critic: eqx.Module | None, settings: Any, dim: int, key: PRNGKeyArray) -> Any:
    """The critic, beside which an energy is learned where the settings say so."""
    if not settings.sees_pairs or settings.energy == 0.0:
        return critic
    from salmc.learning.learned_energy import CriticAndEnergy, Energy

    return CriticAndEnergy(critic, Energy(key, dim))


def begin(
    method: SelfAdversarial, key: PRNGKeyArray, points: Points, log_density: Values
) -> TrainingState:
    """The state before the first step, of a pool that is whitened."""
    dim = method.kernel.dim
    mover = None
    if method.mover is not None:
        mover = eqx.filter_jit(method.mover.init)(key, method.whitening.colour(points))
    size = dim + 1 if method.is_calibrated else 1
    pool = Particles(points, log_density, jnp.zeros((size, size)), mover)
    if method.moves_in_latent_space:
        pool = dataclasses.replace(pool, quantiles=quantiles(points))
    # x̃₀ ~ N(0, I), the first line of Algorithm 1: in whitened coordinates the pool's Gaussian.
    # NumPy on purpose: the same in JAX would compile a program for these numbers alone.
    inputs = numpy_generator(key).standard_normal((method.settings.batch, dim))
    state = first_state(method, on_device(inputs), pool)
    if not (method.kernel.placed and method.kernel.places):
        return state
    from salmc.learning.places import placed

    return placed(method, state, key)
