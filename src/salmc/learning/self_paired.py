"""SAL-MC with kernels on (x, v): Algorithm 1 of the paper, with a critic that sees pairs.

    x_t ← AG-SVGD(x̃_{t−1})                     `SelfAdversarial.adjust`
    proposals from x_t                          whose values of log p teach `learned_energy`
    for i = 1 … m: train the discriminator      `pair_game.play`: on pairs (x_t, x_t') of the pool
    train the generator                         and (x', x) of the kernel
    x̃_t: exact moves of the pool                by the kernel itself, with its averaged weights

A volume-preserving map keeps the law of its input as soon as that is the target's, however short
its steps are: single draws of it look right to a critic while it hardly moves. Pairs do not, unless
they look like two independent draws. The rest is SAL-MC's: the pool is there from the first step,
and every step moves a slice of it by differential evolution and by the kernel's exact moves.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from salmc.learning import pair_game, particles
from salmc.learning.learned_energy import CriticAndEnergy, evaluated
from salmc.learning.method import StepResult, TrainingState, learning_rate
from salmc.learning.self_adversarial import SelfAdversarial


class SelfPaired(SelfAdversarial):
    """The pool of `SelfAdversarial`, and the game of `pair_game`; see the module's text."""

    def step(self, state: TrainingState, key: PRNGKeyArray, data: Any = None) -> StepResult:
        del data
        keys = jax.random.split(jax.random.fold_in(key, state.step), 7)
        rate, kernel = learning_rate(self.settings, state), self.kernel_with(state.average)
        state, real, moved = self.adjust(state, keys[0])
        proposals, known = None, None
        if self.settings.makes_proposals:
            noise = self.noise(keys[4], len(real.points))
            proposals = particles.propose(kernel, real, noise, self.log_density)
            if isinstance(self.critic, CriticAndEnergy):
                known = evaluated(jnp.mean(state.memory.log_density), real, proposals)
        state, figures, fine = pair_game.play(self, state, rate, keys[1:4], known)
        figures["move_acceptance"] = moved
        if proposals is not None:
            ratio = particles.exact_ratio(kernel, real, proposals, None)
            figures |= particles.told_of(ratio, real, proposals)
            if self.settings.exact_refresh:
                share = self.settings.refresh_at(state.step, state.steps)
                rows = particles.accepted(keys[5], real, proposals, ratio, share)
                state = dataclasses.replace(state, memory=state.memory.with_rows(rows))
        # Pairs begin at the pool: no chain of the kernel without Metropolis goes on.
        inputs = state.memory.random_rows(keys[6], len(state.inputs)).points
        return dataclasses.replace(state, inputs=inputs, step=state.step + 1), figures, fine

    @property
    def figure_names(self) -> tuple[str, ...]:
        has_energy = isinstance(self.critic, CriticAndEnergy)
        return (*super().figure_names, *(["energy"] if has_energy else []))
