"""A-NICE-MC as a method of the training engine: what one of its steps does.

The buffer has draws x of the chain with Metropolis-Hastings. Pairs that ought to look like two
independent draws come from the chain *without* it, always forwards:

    (x_m, x)     x from the buffer, x_m after m steps of f
    (z_m, z_b)   z_b from N(0, I) after b steps, which no gradient passes; z_m after m more

b and m are random, b the same for all pairs of a step. The critic sees them beside pairs of the
buffer (`pair_critic`), `critic_steps` times; then the kernel takes one step on

    E D(pairs) + velocity · E ½ |v'|² / dim v

where v' is the velocity that comes out of the last step: f keeps volume, so that with x' ~ p and
v' ~ N(0, I) every proposal would be accepted.

Steps beyond m are computed and not taken, so that one program serves all.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.kernels.noise import normal
from salmc.learning.method import (
    AbstractMethod,
    StepResult,
    TrainingState,
    Weights,
    averaged,
    descend,
    learning_rate,
)
from salmc.learning.nice_settings import NICESettings
from salmc.learning.pair_critic import PairCritic, Pairs, wasserstein_critic_loss
from salmc.learning.particles import Particles, Slice, Values, exact_ratio, propose
from salmc.metropolis import acceptance, mean_jump, taken
from salmc.target import AbstractTarget, Points, Scalar

_PENALTY_SHARE = 2
"""The gradient penalty is taken on every second pair: it costs as much as all the rest."""


class Starts(NamedTuple):
    """Where the pairs of some rounds begin; a round is an update of the critic or the kernel."""

    points: Float[Array, "rounds n dim"]
    """x of the buffer, then z_b."""
    leaps: Int[Array, " rounds"]
    """m."""


class NiceMethod(AbstractMethod):
    """What is trained, in whitened coordinates; see `AbstractMethod`."""

    kernel: AbstractKernel
    critic: PairCritic
    settings: NICESettings = eqx.field(static=True)
    target: AbstractTarget
    whitening: Whitening

    def step(self, state: TrainingState, key: PRNGKeyArray, data: Any = None) -> StepResult:
        del data
        settings = self.settings
        keys = jax.random.split(jax.random.fold_in(key, state.step), 5)
        rate = learning_rate(settings, state)
        kernel = self.kernel_with(state.weights)
        starts = self._starts(kernel, state.memory, keys[0])
        seen = jax.tree.map(lambda leaf: leaf[:-1], starts)
        state, critic_loss = self.train_critic(state, kernel, seen, rate, keys[1])
        critic = self.critic_with(state.critic)

        def loss_of(weights: Weights) -> tuple[Scalar, Scalar]:
            points = starts.points[-1]
            new, velocities = leap(
                self.kernel_with(weights), keys[2], points, starts.leaps[-1], settings.leap
            )
            pairs = jnp.concatenate([new, points], axis=1)
            velocity = 0.5 * jnp.mean(velocities**2)
            return jnp.mean(critic(pairs)) + settings.velocity * velocity, velocity

        (loss, velocity), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.weights)
        weights, memory, fine = descend(
            settings, state.weights, state.kernel_optimiser, loss, gradient, rate
        )
        figures = {"kernel_loss": loss, "critic_loss": critic_loss, "velocity": velocity}
        some_key, move_key = jax.random.split(keys[3])
        some = state.memory.random_rows(some_key, settings.batch)
        figures |= self._tried_out(state, some, move_key)
        average = averaged(settings, state, weights)
        state = dataclasses.replace(
            state, weights=weights, average=average, kernel_optimiser=memory, step=state.step + 1
        )
        return state, figures, fine

    def train_critic(
        self,
        state: TrainingState,
        kernel: AbstractKernel,
        starts: Starts,
        rate: Scalar,
        key: PRNGKeyArray,
    ) -> tuple[TrainingState, Scalar]:
        """One update for each round of `starts`."""
        settings, pool = self.settings, state.memory.points
        leap_key, real_key, mix_key = jax.random.split(key, 3)
        rounds, count, dim = starts.points.shape
        points = starts.points.reshape(-1, dim)
        new, _ = leap(kernel, leap_key, points, jnp.repeat(starts.leaps, count), settings.leap)
        fake = jnp.concatenate([new, points], axis=1).reshape(rounds, count, 2 * dim)
        rows = jax.random.randint(real_key, (rounds, count, 2), 0, len(pool))
        real = pool[rows].reshape(rounds, count, 2 * dim)
        mixing = jax.random.uniform(mix_key, (rounds, max(count // _PENALTY_SHARE, 1)))

        def update(
            carry: tuple[Weights, Any], given: tuple[Pairs, Pairs, Array]
        ) -> tuple[tuple[Weights, Any], Scalar]:
            weights, memory = carry

            def loss_of(weights: Weights) -> Scalar:
                critic = self.critic_with(weights)
                return wasserstein_critic_loss(critic, *given, weight=settings.penalty)

            loss, gradient = jax.value_and_grad(loss_of)(weights)
            weights, memory, _ = descend(settings, weights, memory, loss, gradient, rate)
            return (weights, memory), loss

        carry = (state.critic, state.critic_optimiser)
        (weights, memory), losses = jax.lax.scan(update, carry, (real, fake, mixing))
        state = dataclasses.replace(state, critic=weights, critic_optimiser=memory)
        return state, jnp.mean(losses)

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

    def _starts(self, kernel: AbstractKernel, buffer: Particles, key: PRNGKeyArray) -> Starts:
        """For all rounds at once: many small products would cost more than a few large ones."""
        keys = jax.random.split(key, 5)
        settings, dim = self.settings, kernel.dim
        rounds, batch = settings.critic_steps + 1, settings.batch
        rows = jax.random.randint(keys[0], (rounds, batch), 0, len(buffer.points))
        length = jax.random.randint(keys[1], (), 1, settings.approach + 1)
        noise = jax.random.normal(keys[2], (rounds * batch, dim))
        # No gradient passes here, so the loop may be as long as it needs to be.
        arrived = jax.lax.fori_loop(
            0,
            length,
            lambda i, points: _push(kernel, jax.random.fold_in(keys[3], i), points)[0],
            noise,
        )
        # A start that ran away is one of the buffer instead.
        arrived = arrived.reshape(rounds, batch, dim)
        real = buffer.points[rows]
        arrived = jnp.where(jnp.all(jnp.isfinite(arrived), axis=2, keepdims=True), arrived, real)
        leaps = jax.random.randint(keys[4], (rounds,), 1, settings.leap + 1)
        points = jax.lax.stop_gradient(jnp.concatenate([real, arrived], axis=1))
        return Starts(points, leaps)

    def _tried_out(self, state: TrainingState, some: Slice, key: PRNGKeyArray) -> dict[str, Scalar]:
        """Acceptance and `mean_jump` of the averaged kernel at points of the buffer."""
        kernel = self.kernel_with(state.average)
        noise = self.noise(key, len(some.points))
        proposals = propose(kernel, some, noise, self.log_density)
        probability = acceptance(exact_ratio(kernel, some, proposals, None))
        jump = mean_jump(probability, some.points, proposals.points)
        return {"acceptance": jnp.mean(probability), "jump": jump}


def leap(
    kernel: AbstractKernel,
    key: PRNGKeyArray,
    points: Points,
    count: Int[Array, "..."],
    most: int,
) -> tuple[Points, Float[Array, "n velocity_dim"]]:
    """`count` ≤ `most` steps forwards without Metropolis, and the last velocity that came out.

    Args:
        kernel: whose f is applied.
        key: of the velocities.
        points: where to begin.
        count: at least 1; for all points, or for each.
        most: static.
    """
    taken = jnp.broadcast_to(count, (len(points),))[:, None]

    def step(
        carry: tuple[Array, Array], given: tuple[Array, PRNGKeyArray]
    ) -> tuple[tuple[Array, Array], None]:
        number, key = given
        new, velocities = _push(kernel, key, carry[0])
        moves = number < taken
        return (jnp.where(moves, new, carry[0]), jnp.where(moves, velocities, carry[1])), None

    shape = jax.eval_shape(lambda points: _push(kernel, key, points)[1], points)
    start = (points, jnp.zeros(shape.shape, shape.dtype))
    return jax.lax.scan(step, start, (jnp.arange(most), jax.random.split(key, most)))[0]


def _push(
    kernel: AbstractKernel, key: PRNGKeyArray, points: Points
) -> tuple[Points, Float[Array, "n velocity_dim"]]:
    """f(x, v) of fresh velocities."""
    new, velocities = kernel.push(points, normal(key, (len(points), kernel.noise_dim)))
    assert velocities is not None
    return new, velocities
