"""One step of A-NICE-MC's training.

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
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from salmc.kernels.nice import NICEKernel
from salmc.learning.nice_settings import NICESettings
from salmc.learning.pair_critic import Pairs, wasserstein_critic_loss
from salmc.learning.scheme import Scheme
from salmc.learning.state import Problem, TrainingState, Weights, learning_rate
from salmc.learning.update import averaged, descend
from salmc.learning.validation import mean_jump
from salmc.sampling.metropolis import ChainState, Noise, hastings
from salmc.target import Points, Scalar

_PENALTY_SHARE = 2
"""The gradient penalty is taken on every second pair: it costs as much as all the rest."""

FIGURES = ("kernel_loss", "critic_loss", "velocity", "acceptance", "jump")


class Starts(NamedTuple):
    """Where the pairs of some rounds begin; a round is an update of the critic or the kernel."""

    points: Float[Array, "rounds n dim"]
    """x of the buffer, then z_b."""
    leaps: Int[Array, " rounds"]
    """m."""


def training_step(
    problem: Problem, settings: NICESettings, state: TrainingState, key: PRNGKeyArray
) -> tuple[TrainingState, Float[Array, " figures"], Bool[Array, ""]]:
    """One update of the kernel after `critic_steps` of the critic; see `Scheme.step`."""
    keys = jax.random.split(jax.random.fold_in(key, state.step), 5)
    rate = learning_rate(settings, state)
    kernel = _nice(problem, state.weights)
    starts = _starts(kernel, settings, state, keys[0])
    seen = jax.tree.map(lambda leaf: leaf[:-1], starts)
    state, critic_loss = _train_critic(problem, settings, state, kernel, seen, rate, keys[1])

    critic = problem.critic_with(state.critic)

    def loss_of(weights: Weights) -> tuple[Scalar, Scalar]:
        points = starts.points[-1]
        new, velocities = leap(
            _nice(problem, weights), keys[2], points, starts.leaps[-1], settings.leap
        )
        pairs = jnp.concatenate([new, points], axis=1)
        velocity = 0.5 * jnp.mean(velocities**2)
        return jnp.mean(critic(pairs)) + settings.velocity * velocity, velocity

    (loss, velocity), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.weights)
    weights, memory, fine = descend(
        settings, state.weights, state.kernel_optimiser, loss, gradient, rate
    )
    average = averaged(settings, state, weights)
    acceptance, jump = _try_out(problem, settings, state, keys[3])
    state = dataclasses.replace(
        state, weights=weights, average=average, kernel_optimiser=memory, step=state.step + 1
    )
    return state, jnp.stack([loss, critic_loss, velocity, acceptance, jump]), fine


def leap(
    kernel: NICEKernel,
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
        new = kernel.push(key, carry[0])
        moves = number < taken
        return (jnp.where(moves, new[0], carry[0]), jnp.where(moves, new[1], carry[1])), None

    start = (points, jnp.zeros((len(points), kernel.velocity_dim)))
    return jax.lax.scan(step, start, (jnp.arange(most), jax.random.split(key, most)))[0]


def _starts(
    kernel: NICEKernel, settings: NICESettings, state: TrainingState, key: PRNGKeyArray
) -> Starts:
    """For all rounds at once: many small products would cost more than a few large ones."""
    keys = jax.random.split(key, 5)
    rounds, batch, dim = settings.critic_steps + 1, settings.batch, kernel.dim
    rows = jax.random.randint(keys[0], (rounds, batch), 0, len(state.pool))
    length = jax.random.randint(keys[1], (), 1, settings.approach + 1)
    noise = jax.random.normal(keys[2], (rounds * batch, dim))
    # No gradient passes here, so the loop may be as long as it needs to be.
    arrived = jax.lax.fori_loop(
        0,
        length,
        lambda i, points: kernel.push(jax.random.fold_in(keys[3], i), points)[0],
        noise,
    )
    # A start that ran away is one of the buffer instead.
    arrived = arrived.reshape(rounds, batch, dim)
    real = state.pool[rows]
    arrived = jnp.where(jnp.all(jnp.isfinite(arrived), axis=2, keepdims=True), arrived, real)
    leaps = jax.random.randint(keys[4], (rounds,), 1, settings.leap + 1)
    points = jax.lax.stop_gradient(jnp.concatenate([real, arrived], axis=1))
    return Starts(points, leaps)


def _train_critic(
    problem: Problem,
    settings: NICESettings,
    state: TrainingState,
    kernel: NICEKernel,
    starts: Starts,
    rate: Scalar,
    key: PRNGKeyArray,
) -> tuple[TrainingState, Scalar]:
    """One update for each round of `starts`."""
    leap_key, real_key, mix_key = jax.random.split(key, 3)
    rounds, count, dim = starts.points.shape
    points = starts.points.reshape(-1, dim)
    new, _ = leap(kernel, leap_key, points, jnp.repeat(starts.leaps, count), settings.leap)
    fake = jnp.concatenate([new, points], axis=1).reshape(rounds, count, 2 * dim)
    rows = jax.random.randint(real_key, (rounds, count, 2), 0, len(state.pool))
    real = state.pool[rows].reshape(rounds, count, 2 * dim)
    mixing = jax.random.uniform(mix_key, (rounds, max(count // _PENALTY_SHARE, 1)))

    def update(
        carry: tuple[Weights, Any], given: tuple[Pairs, Pairs, Array]
    ) -> tuple[tuple[Weights, Any], Scalar]:
        weights, memory = carry

        def loss_of(weights: Weights) -> Scalar:
            critic = problem.critic_with(weights)
            return wasserstein_critic_loss(critic, *given, weight=settings.penalty)

        loss, gradient = jax.value_and_grad(loss_of)(weights)
        weights, memory, _ = descend(settings, weights, memory, loss, gradient, rate)
        return (weights, memory), loss

    carry = (state.critic, state.critic_optimiser)
    (weights, memory), losses = jax.lax.scan(update, carry, (real, fake, mixing))
    state = dataclasses.replace(state, critic=weights, critic_optimiser=memory)
    return state, jnp.mean(losses)


def _try_out(
    problem: Problem, settings: NICESettings, state: TrainingState, key: PRNGKeyArray
) -> tuple[Scalar, Scalar]:
    """Acceptance and `mean_jump` of the averaged kernel at points of the buffer."""
    rows_key, move_key = jax.random.split(key)
    rows = jax.random.randint(rows_key, (settings.batch,), 0, len(state.pool))
    old, values = state.pool[rows], state.log_density[rows]
    new, correction = _nice(problem, state.average).propose_with_correction(move_key, old)
    gain = problem.log_density(new) - values + correction
    usable = ~jnp.isnan(gain) & jnp.all(jnp.isfinite(new), axis=1)
    probability = jnp.where(usable, jnp.exp(jnp.minimum(gain, 0.0)), 0.0)
    return jnp.mean(probability), mean_jump(probability, old, new)


@eqx.filter_jit
def refill(
    problem: Problem, settings: NICESettings, state: TrainingState, key: PRNGKeyArray
) -> tuple[TrainingState, Float[Array, ""]]:
    """Half of the buffer is discarded, and chains that begin there run for `refill_steps`.

    Returns:
        The state, and the share of proposals that was accepted.
    """
    first_key, kernel_key, accept_key = jax.random.split(key, 3)
    size = len(state.pool)
    # Every second row from a random one on: no sorting, and no row stays for ever.
    first = jax.random.randint(first_key, (), 0, size)
    rows = (first + 2 * jnp.arange(size // 2)) % size
    nothing = jnp.zeros(len(rows))
    chains = ChainState(state.pool[rows], state.log_density[rows], nothing)

    def advance(carry: ChainState, number: Array) -> tuple[ChainState, Scalar]:
        uniform = jax.random.uniform(jax.random.fold_in(accept_key, number), (1, 1, len(rows)))
        keys = jax.random.fold_in(kernel_key, number)[None]
        noise = Noise(keys, jnp.log1p(-uniform))
        carry, steps = hastings(_nice(problem, state.average), problem.log_density, carry, noise)
        return carry, jnp.mean(steps.accepted)

    chains, accepted = jax.lax.scan(advance, chains, jnp.arange(settings.refill_steps))
    pool = state.pool.at[rows].set(chains.points)
    values = state.log_density.at[rows].set(chains.log_density)
    return dataclasses.replace(state, pool=pool, log_density=values), jnp.mean(accepted)


def _nice(problem: Problem, weights: Weights) -> NICEKernel:
    kernel = problem.kernel_with(weights)
    assert isinstance(kernel, NICEKernel)
    return kernel


NICE_SCHEME = Scheme(
    step=training_step,
    figure_names=lambda problem, settings: FIGURES,
    figure_kind=lambda problem, settings: "stay",
    pool_move=refill,
    pool_move_name="refill",
    pool_move_every=lambda problem, settings: settings.refill_every,
)
