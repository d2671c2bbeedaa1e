"""One step of learning: the body of the paper's Algorithm 1, over a pool that persists.

    for t = 1, 2, …
        x_t ← AG-SVGD(x̃_{t−1})                     `adjust`: a slice of the pool takes
                                                    exact moves, or the mover moves the whole pool;
                                                    `refresh` says how much of it is x̃_{t−1}
        for i = 1 … m: train the discriminator      `train_critic`
        train the generator                         `objective.kernel_objective`, one Adam step
        x̃_t ← G(x̃_{t−1}, ξ)                         `state.inputs`
        for i = 1 … m: x̃_t ← G(x̃_t, ξ)              `extra_transitions`

With `refresh` = 1, `pool_move` = "mover" and `pool_size` = `batch` this is the algorithm to the
letter. A tractable kernel may refresh the pool by exact Metropolis-Hastings steps instead.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    AbstractVolumePreservingKernel,
)
from salmc.learning.adjust import Adjusted, adjust_particles, refresh_share, write_slice
from salmc.learning.losses import adversarial_critic_loss, gradient_penalty
from salmc.learning.moves import Proposals, kernel_move, propose
from salmc.learning.objective import Batch, Terms, kernel_objective
from salmc.learning.settings import LearningSettings
from salmc.learning.state import Problem, TrainingState, Weights, learning_rate
from salmc.learning.update import averaged, descend
from salmc.learning.validation import mean_jump
from salmc.target import Points, Scalar

_PENALTY_SHARE = 4
"""Gradient penalties are taken on every fourth point: they cost three times the rest."""

_Exact = (AbstractTractableKernel, AbstractVolumePreservingKernel)


def figure_names(problem: Problem, settings: LearningSettings) -> tuple[str, ...]:
    """The names of what a step reports, in order."""
    names = ["kernel_loss", "critic_loss"] if settings.adversarial else ["kernel_loss"]
    names += [
        term for term in ("adversarial", "wasserstein", "decorrelation") if _on(term, settings)
    ]
    if problem.tractable and (settings.likelihood or settings.regression or settings.exact_refresh):
        names.append("likelihood")
    if settings.regression:
        names.append("regression")
    if settings.velocity and problem.makes_outputs(settings):
        names.append("velocity")
    if problem.makes_proposals(settings):
        names.append("acceptance")
        if problem.preserves_volume:
            names.append("jump")
    if problem.target is not None and problem.mover is None:
        names.append("move_acceptance")
    return tuple(names)


def training_step(
    problem: Problem, settings: LearningSettings, state: TrainingState, key: PRNGKeyArray
) -> tuple[TrainingState, Float[Array, " figures"], Bool[Array, ""]]:
    """One step; its randomness depends on the key and the number of the step alone.

    Returns:
        The state, the figures of `figure_names`, and whether the update of the kernel was finite.
        One that is not is left out.
    """
    keys = jax.random.split(jax.random.fold_in(key, state.step), 7)
    rate = learning_rate(settings, state)
    kernel = problem.kernel_with(state.weights)

    adjusted = adjust_particles(problem, settings, state, keys[0])
    state, real = adjusted.state, adjusted.real
    figures = {"move_acceptance": adjusted.acceptance}
    if settings.adversarial > 0.0:
        state, figures["critic_loss"] = train_critic(
            problem, settings, state, kernel, real, rate, keys[1]
        )

    proposals = None
    if problem.makes_proposals(settings) and isinstance(kernel, _Exact):
        proposals = propose(kernel, keys[2], real, problem.log_density)
    batch = Batch(
        real,
        adjusted.log_density,
        _conditions(problem, state, keys[3]),
        state.inputs,
        proposals,
    )
    state, loss, terms, fine = _update_kernel(problem, settings, state, batch, rate, keys[4])
    figures |= {"kernel_loss": loss, **terms.figures}

    if isinstance(kernel, _Exact) and proposals is not None:
        state, figures["acceptance"], figures["jump"] = _refresh_exactly(
            settings, state, kernel, adjusted, proposals, terms.log_proposal, keys[5]
        )
    if terms.outputs is not None:
        inputs = _advance_chain(problem, settings, state, terms.outputs, keys[6])
        state = dataclasses.replace(state, inputs=inputs)
    if problem.is_calibrated(settings):
        state = _gather_moments(settings, state, real)
    state = dataclasses.replace(state, step=state.step + 1)
    names = figure_names(problem, settings)
    return state, jnp.stack([figures[name] for name in names]), fine


def train_critic(
    problem: Problem,
    settings: LearningSettings,
    state: TrainingState,
    kernel: AbstractKernel,
    real: Points,
    rate: Scalar,
    key: PRNGKeyArray,
) -> tuple[TrainingState, Scalar]:
    """m updates of the critic against fresh outputs of the kernel: maximises eq. 8 over D."""
    some = max(settings.batch // _PENALTY_SHARE, 1)

    def loss_of(weights: Weights, fake: Points) -> Scalar:
        critic = problem.critic_with(weights)
        scores = critic(jnp.concatenate([real, fake]))
        loss = adversarial_critic_loss(
            settings.adversarial_form, scores[: len(real)], scores[len(real) :]
        )
        if settings.penalty > 0.0:
            loss += settings.penalty * gradient_penalty(critic, real[:some], fake[:some])
        return loss

    def update(carry: tuple[Weights, Any], key: PRNGKeyArray) -> tuple[tuple[Weights, Any], Scalar]:
        weights, memory = carry
        fake = kernel.propose_batch(key, state.inputs)
        loss, gradient = jax.value_and_grad(loss_of)(weights, fake)
        weights, memory, _ = descend(settings, weights, memory, loss, gradient, rate)
        return (weights, memory), loss

    keys = jax.random.split(key, settings.critic_steps)
    (weights, memory), losses = jax.lax.scan(update, (state.critic, state.critic_optimiser), keys)
    state = dataclasses.replace(state, critic=weights, critic_optimiser=memory)
    return state, jnp.mean(losses)


def _update_kernel(
    problem: Problem,
    settings: LearningSettings,
    state: TrainingState,
    batch: Batch,
    rate: Scalar,
    key: PRNGKeyArray,
) -> tuple[TrainingState, Scalar, Terms, Bool[Array, ""]]:
    """One Adam step of the kernel, and of the average of its weights."""
    critic = problem.critic_with(state.critic) if settings.adversarial > 0.0 else None
    begins = settings.regression_start * state.steps
    regression = jnp.where(state.step >= begins, settings.regression, 0.0)

    def loss_of(weights: Weights) -> tuple[Scalar, Terms]:
        return kernel_objective(
            problem.kernel_with(weights),
            critic,
            batch,
            settings,
            key,
            outputs=problem.makes_outputs(settings),
            regression_weight=regression,
        )

    (loss, terms), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.weights)
    weights, memory, fine = descend(
        settings, state.weights, state.kernel_optimiser, loss, gradient, rate
    )
    average = averaged(settings, state, weights)
    state = dataclasses.replace(state, weights=weights, average=average, kernel_optimiser=memory)
    return state, loss, terms, fine


def _refresh_exactly(
    settings: LearningSettings,
    state: TrainingState,
    kernel: AbstractTractableKernel | AbstractVolumePreservingKernel,
    adjusted: Adjusted,
    proposals: Proposals,
    log_proposal: Float[Array, " n"] | None,
    key: PRNGKeyArray,
) -> tuple[TrainingState, Scalar, Scalar]:
    """The slice takes one Metropolis-Hastings step with the kernel as it was before its update.

    Returns:
        The state, the mean acceptance and `mean_jump`. These weights had not seen the slice yet in
        this step, nor the proposals, which are new: the figures do not flatter.
    """
    if isinstance(kernel, AbstractVolumePreservingKernel):
        log_proposal = jnp.zeros(len(adjusted.real))
    elif kernel.looks_at_state:
        log_proposal = kernel.log_densities(adjusted.real, proposals.points)
    assert log_proposal is not None
    share = refresh_share(settings, state) if settings.exact_refresh else 0.0
    points, values, probability = kernel_move(
        key, adjusted.real, adjusted.log_density, proposals, log_proposal, share
    )
    if settings.exact_refresh:
        state = write_slice(state, points, values, adjusted.first)
    jump = mean_jump(probability, adjusted.real, proposals.points)
    return state, jnp.mean(probability), jump


def _advance_chain(
    problem: Problem,
    settings: LearningSettings,
    state: TrainingState,
    outputs: Points,
    key: PRNGKeyArray,
) -> Points:
    """x̃_t: the outputs of this step, and of `extra_transitions` more."""
    outputs = jax.lax.stop_gradient(outputs)
    noise_key, rows_key = jax.random.split(key)
    if settings.extra_transitions:
        kernel = problem.kernel_with(state.weights)
        outputs = jax.lax.fori_loop(
            0,
            settings.extra_transitions,
            lambda i, points: kernel.propose_batch(jax.random.fold_in(noise_key, i), points),
            outputs,
        )
    # A chain that ran away begins again in the pool: one bad output must not stay for ever.
    rows = jax.random.randint(rows_key, (len(outputs),), 0, len(state.pool))
    if problem.preserves_volume:
        # A map of volume 1 cannot pull a chain back that has left the target: without Metropolis
        # it would drift away for ever.
        return state.pool[rows]
    finite = jnp.all(jnp.isfinite(outputs), axis=1, keepdims=True)
    return jnp.where(finite, outputs, state.pool[rows])


def _conditions(problem: Problem, state: TrainingState, key: PRNGKeyArray) -> Points:
    """Random particles of the pool, for a kernel that looks at its state; else anything."""
    if getattr(problem.kernel, "looks_at_state", False):
        rows = jax.random.randint(key, (len(state.inputs),), 0, len(state.pool))
        return state.pool[rows]
    return state.inputs


def _gather_moments(
    settings: LearningSettings, state: TrainingState, real: Points
) -> TrainingState:
    extended = jnp.concatenate([real, jnp.ones((len(real), 1))], axis=1)
    late = state.step >= state.steps // 2
    moments = state.moments + jnp.where(late, extended.T @ extended / len(real), 0.0)
    return dataclasses.replace(state, moments=moments)


def _on(term: str, settings: LearningSettings) -> bool:
    return getattr(settings, term) > 0.0
