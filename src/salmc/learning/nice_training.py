"""A-NICE-MC as a method of the training engine: what one of its steps does.

The buffer has draws x of the chain with Metropolis-Hastings, by which the kernel renews it now and
then; `pair_game` is played on them at each step.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.learning import pair_game
from salmc.learning.method import AbstractMethod, StepResult, TrainingState, learning_rate
from salmc.learning.nice_settings import NICESettings
from salmc.learning.pair_critic import PairCritic
from salmc.learning.particles import (
    Particles,
    Slice,
    Values,
    exact_ratio,
    propose,
    told_of,
)
from salmc.metropolis import taken
from salmc.target import AbstractTarget, Points, Scalar


class NiceMethod(AbstractMethod):
    """What is trained, in whitened coordinates; see `AbstractMethod`."""

    kernel: AbstractKernel
    critic: PairCritic
    settings: NICESettings = eqx.field(static=True)
    target: AbstractTarget
    whitening: Whitening

    def step(self, state: TrainingState, key: PRNGKeyArray, data: Any = None) -> StepResult:
        del data
        keys, tried = jax.random.split(jax.random.fold_in(key, state.step), 5), state
        rate = learning_rate(self.settings, state)
        state, figures, fine = pair_game.play(self, state, rate, keys[:3])
        some_key, move_key = jax.random.split(keys[3])
        some = state.memory.random_rows(some_key, self.settings.batch)
        figures |= self._tried_out(tried, some, move_key)
        return dataclasses.replace(state, step=state.step + 1), figures, fine

    def move_pool(self, state: TrainingState, key: PRNGKeyArray) -> tuple[TrainingState, Scalar]:
        """Half of the buffer is discarded, and chains that begin there run for `refill_steps`."""
        first_key, step_key = jax.random.split(key)
        buffer: Particles = state.memory
        size, kernel = len(buffer.points), self.kernel_with(state.average)
        # Every second row from a random one on: no sorting, and no row stays for ever.
        first = jax.random.randint(first_key, (), 0, size)
        rows = (first + 2 * jnp.arange(size // 2)) % size

        def advance(here: Slice, number: Array) -> tuple[Slice, Scalar]:
            noise_key, accept_key = jax.random.split(jax.random.fold_in(step_key, number))
            noise = self.noise(noise_key, len(rows))
            proposals = propose(kernel, here, noise, self.log_density)
            ratio = exact_ratio(kernel, here, proposals, None)
            moves = taken(jnp.log1p(-jax.random.uniform(accept_key, ratio.shape)), ratio)
            points = jnp.where(moves[:, None], proposals.points, here.points)
            values = jnp.where(moves, proposals.log_density, here.log_density)
            return Slice(points, values, here.first), jnp.mean(moves)

        start = Slice(buffer.points[rows], buffer.log_density[rows], first)
        end, accepted = jax.lax.scan(advance, start, jnp.arange(self.settings.refill_steps))
        buffer = dataclasses.replace(
            buffer,
            points=buffer.points.at[rows].set(end.points),
            log_density=buffer.log_density.at[rows].set(end.log_density),
        )
        return dataclasses.replace(state, memory=buffer), jnp.mean(accepted)

    def log_density(self, points: Points) -> Values:
        """log p at whitened points, up to a constant."""
        return self.target.log_densities(self.whitening.colour(points))

    @property
    def figure_names(self) -> tuple[str, ...]:
        return ("kernel_loss", "critic_loss", "velocity", "acceptance", "jump")

    @property
    def figure_kind(self) -> str:
        return "stay"

    def figure(self, state: TrainingState, figures: dict[str, float], key: PRNGKeyArray) -> float:
        del state, key
        return 1.0 - figures["jump"]

    @property
    def pool_move_name(self) -> str:
        return "refill"

    @property
    def pool_move_every(self) -> int:
        return self.settings.refill_every

    def _tried_out(self, state: TrainingState, some: Slice, key: PRNGKeyArray) -> dict[str, Scalar]:
        """What the averaged kernel proposes at points of the buffer."""
        kernel = self.kernel_with(state.average)
        noise = self.noise(key, len(some.points))
        proposals = propose(kernel, some, noise, self.log_density)
        return told_of(exact_ratio(kernel, some, proposals, None), some, proposals)
