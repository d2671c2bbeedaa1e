"""What training works on (`Problem`) and what it carries from step to step (`TrainingState`).

Weights are kept as one flat vector: one fused update instead of one for each array, which compiles
and runs faster. Kernel, critic, target and whitening are arguments of all compiled functions, so
that every seed, every chunk and every set of weights share one trace.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    AbstractVolumePreservingKernel,
)
from salmc.kernels.layers import numpy_generator
from salmc.kernels.whitening import Whitening
from salmc.learning.settings import LearningSettings, TrainingSettings
from salmc.movers.base import AbstractMover, AbstractState
from salmc.target import AbstractTarget, Points

Weights = Float[Array, " parameters"]


class Problem(eqx.Module):
    """What is trained on what.

    Attributes:
        kernel: the kernel with its first weights.
        critic: the critic with its first weights; None without an adversarial term.
        target: None where only samples are known.
        mover: None unless it advances the pool at each step.
        whitening: to the coordinates in which all of this happens.
    """

    kernel: AbstractKernel
    critic: Any
    target: AbstractTarget | None
    mover: AbstractMover | None
    whitening: Whitening

    def kernel_with(self, weights: Weights) -> AbstractKernel:
        """The kernel with other weights."""
        return _with_weights(self.kernel, weights)

    def critic_with(self, weights: Weights) -> Any:
        """The critic with other weights."""
        return _with_weights(self.critic, weights)

    def log_density(self, points: Points) -> Float[Array, " n"]:
        """log p at whitened points, up to a constant; 0 without a target."""
        if self.target is None:
            return jnp.zeros(len(points))
        return self.target.log_densities(self.whitening.colour(points))

    @property
    def tractable(self) -> bool:
        """Whether the proposal density is known."""
        return isinstance(self.kernel, AbstractTractableKernel)

    @property
    def preserves_volume(self) -> bool:
        """Whether the kernel moves (x, v) by a map of volume 1."""
        return isinstance(self.kernel, AbstractVolumePreservingKernel)

    def makes_proposals(self, settings: LearningSettings) -> bool:
        """Whether a step needs proposals of the kernel with log q and log p."""
        return settings.exact_refresh or settings.regression > 0.0

    def makes_outputs(self, settings: LearningSettings) -> bool:
        """Whether a step needs outputs x' = G(x̃, ξ) of the kernel's own chain."""
        terms = (settings.adversarial, settings.wasserstein, settings.decorrelation)
        return any(terms) or (settings.refresh > 0.0 and not settings.exact_refresh)

    def is_calibrated(self, settings: TrainingSettings) -> bool:
        """Whether moments of the pool are gathered for a calibration in the end."""
        wanted = isinstance(settings, LearningSettings) and settings.calibrate
        return wanted and hasattr(self.kernel, "calibration_matrix")


class TrainingState(eqx.Module):
    """All that one step hands to the next. Points are whitened.

    Attributes:
        weights, average, best: of the kernel: as they are, averaged, and averaged at the best
            figure so far.
        critic: weights of the critic.
        kernel_optimiser, critic_optimiser: of Optax.
        pool, log_density: the particles and log p there.
        inputs: x̃_{t−1}, the kernel's own last outputs.
        moments: Σ (x, 1)(x, 1)ᵀ over the pool's slices in the second half of training.
        mover: state of the mover, where it advances the pool.
        rate: the learning rate at its peak, lowered by rollbacks.
        step, steps: how many were done, and how many will be.
    """

    weights: Weights
    average: Weights
    best: Weights
    critic: Float[Array, " critic_parameters"]
    kernel_optimiser: Any
    critic_optimiser: Any
    pool: Points
    log_density: Float[Array, " n"]
    inputs: Float[Array, "batch dim"]
    moments: Float[Array, "size size"]
    mover: AbstractState | None
    rate: Float[Array, ""]
    step: Int[Array, ""]
    steps: Int[Array, ""]


def first_state(
    problem: Problem,
    settings: TrainingSettings,
    key: PRNGKeyArray,
    pool: Points,
    log_density: Float[Array, " n"],
) -> TrainingState:
    """The state before the first step; `pool` is whitened."""
    weights, critic = flat_weights(problem.kernel), flat_weights(problem.critic)
    # NumPy on purpose: the same in JAX would compile a program for these numbers alone.
    inputs = numpy_generator(key).standard_normal((settings.batch, problem.kernel.dim))
    rule, dim = optimiser(settings), problem.kernel.dim
    mover = None
    if problem.mover is not None:
        mover = eqx.filter_jit(problem.mover.init)(key, problem.whitening.colour(pool))
    size = dim + 1 if problem.is_calibrated(settings) else 1
    return TrainingState(
        weights=weights,
        average=weights,
        best=weights,
        critic=critic,
        kernel_optimiser=rule.init(weights),
        critic_optimiser=rule.init(critic),
        pool=pool,
        log_density=log_density,
        # x̃₀ ~ N(0, I), the first line of Algorithm 1: in whitened coordinates the pool's Gaussian.
        inputs=jnp.asarray(inputs, dtype=float),
        moments=jnp.zeros((size, size)),
        mover=mover,
        rate=jnp.asarray(settings.learning_rate, dtype=float),
        step=jnp.zeros((), dtype=int),
        steps=jnp.asarray(settings.steps),
    )


def flat_weights(module: Any) -> Weights:
    """All weights of a module as one vector."""
    return jnp.asarray(ravel_pytree(eqx.filter(module, eqx.is_inexact_array))[0], dtype=float)


def optimiser(settings: TrainingSettings) -> optax.GradientTransformation:
    """Adam without its rate, which `learning_rate` gives."""
    adam = optax.scale_by_adam(b1=settings.momentum, b2=settings.second_momentum)
    if settings.clip > 0.0:
        return optax.chain(optax.clip_by_global_norm(settings.clip), adam)
    return adam


def learning_rate(settings: TrainingSettings, state: TrainingState) -> Float[Array, ""]:
    """Growth from 0, then a cosine decay to `final_rate`."""
    step, warmup = state.step, jnp.round(settings.warmup * state.steps)
    progress = (step - warmup) / jnp.maximum(state.steps - warmup, 1)
    cosine = 0.5 * (1.0 + jnp.cos(jnp.pi * jnp.clip(progress, 0.0, 1.0)))
    decayed = settings.final_rate + (1.0 - settings.final_rate) * cosine
    growing = (step + 1) / jnp.maximum(warmup, 1)
    return state.rate * jnp.where(step < warmup, growing, decayed)


def _with_weights(module: Any, weights: Weights) -> Any:
    dynamic, static = eqx.partition(module, eqx.is_inexact_array)
    return eqx.combine(ravel_pytree(dynamic)[1](weights), static)
