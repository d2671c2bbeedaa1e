"""SAL-MC with kernels on (x, v): Algorithm 1 of the paper, with a critic that sees pairs.

    x_t ← AG-SVGD(x̃_{t−1})                     `SelfAdversarial.adjust`
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
from jaxtyping import Array, Key, PRNGKeyArray

from salmc.learning import pair_game, particles
from salmc.learning.method import StepResult, TrainingState, Weights, learning_rate
from salmc.learning.particles import Slice
from salmc.learning.self_adversarial import SelfAdversarial
from salmc.metropolis import acceptance, mean_jump
from salmc.target import Scalar


class SelfPaired(SelfAdversarial):
    """The pool of `SelfAdversarial`, and the game of `pair_game`; see the module's text."""

    def step(self, state: TrainingState, key: PRNGKeyArray, data: Any = None) -> StepResult:
        del data
        keys = jax.random.split(jax.random.fold_in(key, state.step), 7)
        rate, tried = learning_rate(self.settings, state), state.average
        state, real, moved = self.adjust(state, keys[0])
        state, figures, fine = pair_game.play(self, state, rate, keys[1:4])
        figures["move_acceptance"] = moved
        if self.settings.makes_proposals:
            state, told = self._moved_by_kernel(state, real, tried, keys[4:6])
            figures |= told
        # Pairs begin at the pool: no chain of the kernel without Metropolis goes on.
        inputs = state.memory.random_rows(keys[6], len(state.inputs)).points
        return dataclasses.replace(state, inputs=inputs, step=state.step + 1), figures, fine

    def _moved_by_kernel(
        self, state: TrainingState, real: Slice, weights: Weights, keys: Key[Array, " 2"]
    ) -> tuple[TrainingState, dict[str, Scalar]]:
        """A slice of the pool after an exact move, and how that went."""
        kernel = self.kernel_with(weights)
        noise = self.noise(keys[0], len(real.points))
        proposals = particles.propose(kernel, real, noise, self.log_density)
        ratio = particles.exact_ratio(kernel, real, proposals, None)
        probability = acceptance(ratio)
        jump = mean_jump(probability, real.points, proposals.points)
        if self.settings.exact_refresh:
            share = self.settings.refresh_at(state.step, state.steps)
            rows = particles.accepted(keys[1], real, proposals, ratio, share)
            state = dataclasses.replace(state, memory=state.memory.with_rows(rows))
        return state, {"acceptance": jnp.mean(probability), "jump": jump}
