"""What a method of learning is: a small object that says what one step does.

`engine` does the rest for all of them: chunks, rollbacks, early stops, checkpoints, progress. What
one step hands to the next is a `TrainingState`, of which `memory` is the method's own part.

Weights are kept as one flat vector: one fused update instead of one for each array, which compiles
and runs faster. A method is an argument of all compiled functions, so that every seed, every chunk
and every set of weights share one trace.
"""

import abc
import dataclasses
import math
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.learning.settings import TrainingSettings
from salmc.metropolis import normal
from salmc.programs import compiled
from salmc.target import AbstractTarget, Scalar

Weights = Float[Array, " parameters"]
Module = TypeVar("Module", bound=eqx.Module)

_AVERAGE_START = 10.0
"""The average forgets its beginning: its decay is (t + 1)/(t + 10) until that exceeds `average`."""


class TrainingState(eqx.Module):
    """All that one step hands to the next.

    Attributes:
        weights, average, best: of the kernel: as they are, averaged, and averaged at the best
            figure so far.
        critic: weights of the critic.
        kernel_optimiser, critic_optimiser: of Optax.
        inputs: x̃_{t−1}, where the kernel's own chains are.
        memory: what else the method carries on, such as its pool; a tree of arrays.
        rate: the learning rate at its peak, lowered by rollbacks.
        step, steps: how many were done, and how many a course has.
        begun: at which step this course began.
    """

    weights: Weights
    average: Weights
    best: Weights
    critic: Float[Array, " critic_parameters"]
    kernel_optimiser: Any
    critic_optimiser: Any
    inputs: Float[Array, "batch dim"]
    memory: Any
    rate: Float[Array, ""]
    step: Int[Array, ""]
    steps: Int[Array, ""]
    begun: Int[Array, ""]


StepResult = tuple[TrainingState, dict[str, Scalar], Bool[Array, ""]]
"""The state, figures by name, and whether the update of the kernel was finite."""


class AbstractMethod(eqx.Module):
    """What is trained, and what one step of it does. See the module's text.

    Attributes:
        kernel, critic: with their first weights; no critic without an adversarial term.
        settings: static.
        target: None where only samples are known.
    """

    kernel: eqx.AbstractVar[AbstractKernel]
    critic: eqx.AbstractVar[Any]
    settings: eqx.AbstractVar[Any]
    target: eqx.AbstractVar[AbstractTarget | None]

    @abc.abstractmethod
    def step(self, state: TrainingState, key: PRNGKeyArray, data: Any) -> StepResult:
        """One update of the kernel.

        Args:
            state: as the last step left it.
            key: of all steps: randomness depends on it and on the number of the step alone.
            data: what the host feeds to this step; None where it feeds nothing.

        Returns:
            The state with `step` raised by one, the figures of `figure_names`, and whether the
            update was finite. One that is not is left out.
        """

    @property
    @abc.abstractmethod
    def figure_names(self) -> tuple[str, ...]:
        """What a step reports, in order."""

    @property
    def figure_kind(self) -> str | None:
        """What is looked at to judge progress, of `validation.TOLERANCES`; None for nothing."""
        return None

    def figure(self, state: TrainingState, figures: dict[str, float], key: PRNGKeyArray) -> float:
        """The figure of that kind, smaller is better; `figures` are a chunk's means."""
        raise NotImplementedError

    @property
    def pool_move_name(self) -> str:
        """What the move of the whole pool is called in seconds and history."""
        return "pool"

    @property
    def pool_move_every(self) -> int:
        """Steps between moves of the whole pool; 0 for none."""
        return 0

    def wants_pool_move(self, state: TrainingState) -> bool:
        """Whether to make the move that is due."""
        return True

    def remembers(self, state: TrainingState) -> TrainingState:
        """The state in the middle of a course, with what `goes_on` will want to know of it."""
        return state

    def goes_on(self, state: TrainingState, courses: int) -> bool:
        """Whether to train for a course more, after so many."""
        return False

    def move_pool(self, state: TrainingState, key: PRNGKeyArray) -> tuple[TrainingState, Scalar]:
        """A move of the whole pool: the state, and the share of proposals that was accepted."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """For progress bars."""
        trained = f"learning {self.kernel.name}"
        return trained if self.target is None else f"{trained} on {self.target.name}"

    def noise(self, key: PRNGKeyArray, count: int) -> Float[Array, "n noise_dim"]:
        """ξ ~ N(0, I), for n points."""
        return normal(key, (count, self.kernel.noise_dim))

    def kernel_with(self, weights: Weights) -> Any:
        """The kernel with other weights."""
        return with_weights(self.kernel, weights)

    def critic_with(self, weights: Weights) -> Any:
        """The critic with other weights."""
        return with_weights(self.critic, weights)


def first_state(
    method: AbstractMethod, inputs: Float[Array, "batch dim"], memory: Any
) -> TrainingState:
    """The state before the first step."""
    settings: TrainingSettings = method.settings
    weights, critic = flat_weights(method.kernel), flat_weights(method.critic)
    rule = _optimiser(settings)
    return TrainingState(
        weights=weights,
        average=weights,
        best=weights,
        critic=critic,
        kernel_optimiser=rule.init(weights),
        critic_optimiser=rule.init(critic),
        inputs=inputs,
        memory=memory,
        rate=jnp.asarray(settings.learning_rate, dtype=float),
        step=jnp.zeros((), dtype=int),
        steps=jnp.asarray(settings.steps),
        begun=jnp.zeros((), dtype=int),
    )


def learning_rate(settings: TrainingSettings, state: TrainingState) -> Float[Array, ""]:
    """Growth from 0, then a cosine decay to `final_rate`, in each course; all of it is traced."""
    step, warmup = state.step - state.begun, jnp.round(settings.warmup * state.steps)
    progress = (step - warmup) / jnp.maximum(state.steps - warmup, 1)
    cosine = 0.5 * (1.0 + jnp.cos(math.pi * jnp.clip(progress, 0.0, 1.0)))
    decayed = settings.final_rate + (1.0 - settings.final_rate) * cosine
    growing = (step + 1) / jnp.maximum(warmup, 1)
    return state.rate * jnp.where(step < warmup, growing, decayed)


def descend(
    settings: TrainingSettings,
    weights: Weights,
    memory: Any,
    loss: Scalar,
    gradient: Weights,
    rate: Scalar,
) -> tuple[Weights, Any, Bool[Array, ""]]:
    """One Adam step.

    Args:
        settings: of Adam.
        weights, memory: as they are; `memory` is Optax's.
        loss, gradient: there.
        rate: of learning.

    Returns:
        Weights and memory, left as they were where loss or gradient is not finite; and whether
        they were finite.
    """
    change, new_memory = _optimiser(settings).update(gradient, memory)
    fine = jnp.isfinite(loss) & jnp.all(jnp.isfinite(gradient))
    new = (optax.apply_updates(weights, -rate * change), new_memory)
    weights, memory = jax.tree.map(lambda a, b: jnp.where(fine, a, b), new, (weights, memory))
    return weights, memory, fine


def kernel_step(
    settings: TrainingSettings, state: TrainingState, loss: Scalar, gradient: Weights, rate: Scalar
) -> tuple[TrainingState, Bool[Array, ""]]:
    """One Adam step of the kernel, and of the average of its weights; see `descend`."""
    weights, memory, fine = descend(
        settings, state.weights, state.kernel_optimiser, loss, gradient, rate
    )
    decay = jnp.minimum(settings.average, (state.step + 1.0) / (state.step + _AVERAGE_START))
    average = optax.incremental_update(weights, state.average, 1.0 - decay)
    changed = {"weights": weights, "average": average, "kernel_optimiser": memory}
    return dataclasses.replace(state, **changed), fine


def with_memory(state: TrainingState, **changes: Any) -> TrainingState:
    """The state with some fields of its memory changed."""
    return dataclasses.replace(state, memory=dataclasses.replace(state.memory, **changes))


@compiled
def flat_weights(module: Any) -> Weights:
    """All weights of a module as one vector."""
    return jnp.asarray(ravel_pytree(eqx.filter(module, eqx.is_inexact_array))[0], dtype=float)


@compiled
def with_weights(module: Module, weights: Weights) -> Module:
    """A module with the weights of a vector."""
    dynamic, static = eqx.partition(module, eqx.is_inexact_array)
    return eqx.combine(ravel_pytree(dynamic)[1](weights), static)


def _optimiser(settings: TrainingSettings) -> optax.GradientTransformation:
    """Adam without its rate, which `learning_rate` gives."""
    adam = optax.scale_by_adam(b1=settings.momentum, b2=settings.second_momentum)
    if settings.clip > 0.0:
        return optax.chain(optax.clip_by_global_norm(settings.clip), adam)
    return adam
