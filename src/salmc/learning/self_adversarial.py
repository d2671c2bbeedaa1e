"""Algorithm 1 of the paper, one step of it, over a pool of particles that persists.

    for t = 1, 2, …
        x_t ← AG-SVGD(x̃_{t−1})                     `adjust`: a slice of the pool takes exact moves,
                                                    or the mover moves all of it; `refresh` says how
                                                    much of it is x̃_{t−1}
        for i = 1 … m: train the discriminator      `train_critic`: maximises eq. 8 over D
        train the generator                         `train_kernel`: one Adam step on `objective`
        x̃_t ← G(x̃_{t−1}, ξ)                         `advance_chain`
        for i = 1 … m: x̃_t ← G(x̃_t, ξ)              `extra_transitions`

With `refresh` = 1, `pool_move` = "mover" and `pool_size` = `batch` this is the algorithm to the
letter. An exact kernel may refresh the pool by Metropolis-Hastings steps instead, and so repairs
what it learns from. Without a target, x_t are random rows of given samples: AL-MC.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.learning import objective, particles
from salmc.learning.method import (
    AbstractMethod,
    StepResult,
    TrainingState,
    Weights,
    descend,
    kernel_step,
    learning_rate,
    with_memory,
)
from salmc.learning.mixture_move import mixture_move
from salmc.learning.particles import Proposals, Slice, Values
from salmc.learning.settings import LearningSettings
from salmc.learning.validation import held_out_figure
from salmc.movers.base import AbstractMover
from salmc.target import AbstractTarget, Points, Scalar

_ENOUGH_ACCEPTED, _LEARNED = 0.75, 0.25
"""Of independent proposals; and the share of a course that a kernel is given to get there."""
_SETTLED = 3.5
"""Standard errors by which a pool that has settled differs from itself, at most, by chance."""


class SelfAdversarial(AbstractMethod):
    """SAL-MC, and without a target AL-MC.

    Attributes:
        kernel, critic, settings: see `AbstractMethod`.
        whitening: to the coordinates in which all of this happens.
        target: None where only samples are known.
        mover: None unless it advances the pool at each step.
        held: samples that the kernel is judged by; the pool serves where there are none.
    """

    kernel: AbstractKernel
    critic: Any
    settings: LearningSettings = eqx.field(static=True)
    target: AbstractTarget | None
    whitening: Whitening
    mover: AbstractMover | None = None
    held: Points | None = None

    def step(self, state: TrainingState, key: PRNGKeyArray, data: Any = None) -> StepResult:
        del data
        keys = jax.random.split(jax.random.fold_in(key, state.step), 6)
        rate = learning_rate(self.settings, state)
        kernel = self.kernel_with(state.weights)

        state, real, moved = self.adjust(state, keys[0])
        figures = {"move_acceptance": moved}
        if self.settings.adversarial > 0.0:
            state, figures["critic_loss"] = self.train_critic(
                state, kernel, real.points, rate, keys[1]
            )
        noise, proposals = self.noise(keys[2], len(real.points)), None
        if self.settings.makes_proposals:
            proposals = particles.propose(kernel, real, noise, self.log_density)
        batch = self.batch(state, real, proposals, keys[3])
        state, loss, terms, fine = self.train_kernel(state, batch, rate)
        figures |= {"kernel_loss": loss, **terms.figures}
        if proposals is not None:
            # The kernel as it was before its update: it had seen neither slice nor proposals yet
            # in this step, so that the figures do not flatter.
            ratio = particles.exact_ratio(kernel, real, proposals, terms.log_proposal)
            figures |= particles.told_of(ratio, real, proposals)
            recent = 0.98 * state.memory.acceptance + 0.02 * figures["acceptance"]
            state = with_memory(state, acceptance=recent)
            if self.settings.exact_refresh:
                share = self.settings.refresh_at(state.step, state.steps)
                moved_rows = particles.accepted(keys[4], real, proposals, ratio, share)
                state = dataclasses.replace(state, memory=state.memory.with_rows(moved_rows))
        if terms.outputs is not None:
            inputs = self.advance_chain(state, terms.outputs, keys[5])
            state = dataclasses.replace(state, inputs=inputs)
        if self.is_calibrated:
            late = state.step >= state.steps // 2
            state = dataclasses.replace(state, memory=state.memory.with_moments(real.points, late))
        return dataclasses.replace(state, step=state.step + 1), figures, fine

    def adjust(
        self, state: TrainingState, key: PRNGKeyArray
    ) -> tuple[TrainingState, Slice, Scalar]:
        """x_t ← AG-SVGD(x̃_{t−1}): the state, the step's real samples, and what was accepted."""
        refresh_key, move_key = jax.random.split(key)
        settings, pool, count = self.settings, state.memory, self.settings.batch
        if self.target is None:
            # Given samples stay as they are, and may be of any number.
            return state, pool.random_rows(move_key, count), jnp.zeros(())
        real = pool.rows((state.step * count) % len(pool.points), count)
        if settings.refresh > 0.0 and not settings.exact_refresh:
            share = settings.refresh_at(state.step, state.steps)
            fresh = jax.random.uniform(refresh_key, (count,)) < share
            points = jnp.where(fresh[:, None], state.inputs, real.points)
            values = jnp.where(fresh, self.log_density(state.inputs), real.log_density)
            real = Slice(points, values, real.first)
        if self.mover is None:
            real, accepted = particles.evolved(move_key, pool, real, self.log_density)
            pool = pool.with_rows(real)
        else:
            pool, accepted = pool.with_rows(real), jnp.zeros(())
            pool = particles.moved_by(self.mover, move_key, pool, self.whitening, self.log_density)
            real = pool.rows(real.first, count)
        return dataclasses.replace(state, memory=pool), real, accepted

    def train_critic(
        self,
        state: TrainingState,
        kernel: AbstractKernel,
        real: Points,
        rate: Scalar,
        key: PRNGKeyArray,
    ) -> tuple[TrainingState, Scalar]:
        """m updates of the critic against fresh outputs of the kernel."""
        settings = self.settings

        def loss_of(weights: Weights, fake: Points) -> Scalar:
            return objective.critic_objective(self.critic_with(weights), real, fake, settings)

        def update(
            carry: tuple[Weights, Any], key: PRNGKeyArray
        ) -> tuple[tuple[Weights, Any], Scalar]:
            weights, memory = carry
            fake = kernel.propose(state.inputs, self.noise(key, len(state.inputs))).points
            loss, gradient = jax.value_and_grad(loss_of)(weights, fake)
            weights, memory, _ = descend(settings, weights, memory, loss, gradient, rate)
            return (weights, memory), loss

        keys = jax.random.split(key, settings.critic_steps)
        carry = (state.critic, state.critic_optimiser)
        (weights, memory), losses = jax.lax.scan(update, carry, keys)
        state = dataclasses.replace(state, critic=weights, critic_optimiser=memory)
        return state, jnp.mean(losses)

    def train_kernel(
        self, state: TrainingState, batch: objective.Batch, rate: Scalar
    ) -> tuple[TrainingState, Scalar, objective.Terms, Bool[Array, ""]]:
        """One Adam step of the kernel, and of the average of its weights."""
        settings = self.settings
        critic = self.critic_with(state.critic) if settings.adversarial > 0.0 else None
        begins = settings.regression_start * state.steps
        regression = jnp.where(state.step >= begins, settings.regression, 0.0)

        def loss_of(weights: Weights) -> tuple[Scalar, objective.Terms]:
            kernel = self.kernel_with(weights)
            return objective.kernel_objective(kernel, critic, batch, settings, regression)

        (loss, terms), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.weights)
        state, fine = kernel_step(settings, state, loss, gradient, rate)
        return state, loss, terms, fine

    def advance_chain(self, state: TrainingState, outputs: Points, key: PRNGKeyArray) -> Points:
        """x̃_t: the outputs of this step, and of `extra_transitions` more."""
        outputs = jax.lax.stop_gradient(outputs)
        noise_key, rows_key = jax.random.split(key)
        if self.settings.extra_transitions:
            kernel = self.kernel_with(state.weights)

            def transition(i: Array, points: Points) -> Points:
                noise = self.noise(jax.random.fold_in(noise_key, i), len(points))
                return kernel.propose(points, noise).points

            outputs = jax.lax.fori_loop(0, self.settings.extra_transitions, transition, outputs)
        # A chain that ran away begins again in the pool: one bad output must not stay for ever.
        elsewhere = state.memory.random_rows(rows_key, len(outputs)).points
        if self.kernel.volume_preserving:
            # Without Metropolis it would drift away for ever.
            return elsewhere
        return jnp.where(jnp.all(jnp.isfinite(outputs), axis=1)[:, None], outputs, elsewhere)

    def batch(
        self, state: TrainingState, real: Slice, proposals: Proposals | None, key: PRNGKeyArray
    ) -> objective.Batch:
        """What the kernel learns from in this step."""
        key, noise_key = jax.random.split(key)
        conditions = state.inputs
        if self.kernel.tractable and not self.kernel.independent:
            conditions = state.memory.random_rows(key, len(conditions)).points
        return objective.Batch(
            real.points,
            real.log_density,
            conditions,
            state.inputs,
            self.noise(noise_key, len(state.inputs)) if self.settings.makes_outputs else None,
            None if proposals is None else particles.finite(proposals, real),
        )

    def log_density(self, points: Points) -> Values:
        """log p at whitened points, up to a constant."""
        assert self.target is not None
        return self.target.log_densities(self.whitening.colour(points))

    @property
    def is_calibrated(self) -> bool:
        """Whether moments of the pool are gathered for a calibration in the end."""
        return self.settings.calibrate and self.kernel.calibrated

    @property
    def figure_names(self) -> tuple[str, ...]:
        moves = self.target is not None and self.mover is None
        return objective.figure_names(self.settings, self.kernel, moves)

    @property
    def figure_kind(self) -> str:
        if self.settings.makes_proposals:
            return "rejection" if self.kernel.tractable else "stay"
        likely = self.target is None and self.settings.likelihood > 0.0
        return "likelihood" if likely and self.kernel.tractable else "mmd"

    def figure(self, state: TrainingState, figures: dict[str, float], key: PRNGKeyArray) -> float:
        if self.settings.makes_proposals:
            return 1.0 - figures["acceptance" if self.kernel.tractable else "jump"]
        held = state.memory.points if self.held is None else self.held
        kernel = self.kernel_with(state.average)
        return float(held_out_figure(kernel, self.figure_kind, state.inputs, held, key))

    @property
    def pool_move_name(self) -> str:
        return "latent" if self.moves_in_latent_space else "mixture"

    @property
    def moves_in_latent_space(self) -> bool:
        """Whether an exact kernel moves the whole pool in its own space now and then."""
        settings = self.settings
        return settings.exact_refresh and settings.latent_every > 0 and self.kernel.latent

    @property
    def pool_move_every(self) -> int:
        if self.moves_in_latent_space:
            return self.settings.latent_every
        has_moves = self.target is not None and self.mover is None
        return self.settings.mixture_every if has_moves and self.settings.mixture_components else 0

    def wants_pool_move(self, state: TrainingState) -> bool:
        # Where independent proposals are nearly all accepted, local ones have nothing to add.
        few = (state.memory.acceptance < _ENOUGH_ACCEPTED) & (state.step >= _LEARNED * state.steps)
        return not self.moves_in_latent_space or bool(few)

    def move_pool(self, state: TrainingState, key: PRNGKeyArray) -> tuple[TrainingState, Scalar]:
        """Latent moves of an exact kernel, or the mixture's independence move; the whole pool."""
        pool = state.memory
        if self.moves_in_latent_space:
            kernel = self.kernel_with(state.average)
            pool, accepted = particles.latent_moves(key, kernel, pool, self.log_density)
        else:
            points, values, accepted = mixture_move(
                key,
                pool.points,
                pool.log_density,
                self.log_density,
                self.settings.mixture_components,
            )
            pool = dataclasses.replace(pool, points=points, log_density=values)
        return dataclasses.replace(state, memory=pool), accepted

    def remembers(self, state: TrainingState) -> TrainingState:
        if state.memory.quantiles is None:
            return state
        return with_memory(state, quantiles=particles.quantiles(state.memory.points))

    def goes_on(self, state: TrainingState, courses: int) -> bool:
        """While the pool has not settled: what the kernel learns from is not yet the target."""
        more = self.moves_in_latent_space and courses < self.settings.courses
        return more and particles.drift(state.memory) > _SETTLED
