"""The game on pairs of points that A-NICE-MC plays, and SAL-MC with kernels on (x, v).

Pairs that ought to look like two independent draws come from the chain *without*
Metropolis-Hastings, always forwards:

    (x_m, x)     x from the pool, x_m after m steps of f
    (z_m, z_b)   z_b from N(0, I) after b steps, which no gradient passes; z_m after m more

b and m are random, b the same for all pairs of a step. The critic sees them beside pairs of the
pool (`pair_critic`), `critic_steps` times; then the kernel takes one step on

    E D(pairs) + velocity · E ½ |v'|² / dim v

where v' is the velocity that comes out of the last step: f keeps volume, so that with x' ~ p and
v' ~ N(0, I) every proposal would be accepted. Where values of log p are given, an energy e is
learned from them beside the critic (`learned_energy`), and the second term is

    energy · E [e(x') + ½ |v'|²]

Steps beyond m are computed and not taken, so that one program serves all.

Reference: Song, Zhao and Ermon, "A-NICE-MC: adversarial training for MCMC", NeurIPS 2017.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.learning.learned_energy import CriticAndEnergy, Evaluated, energy_loss
from salmc.learning.method import AbstractMethod, TrainingState, Weights, descend, kernel_step
from salmc.learning.nice_settings import NICESettings
from salmc.learning.pair_critic import Pairs, wasserstein_critic_loss
from salmc.learning.pair_settings import PairSettings
from salmc.metropolis import normal
from salmc.target import Points, Scalar

Settings = NICESettings | PairSettings
"""What the game is played by."""

_PENALTY_SHARE = 2
"""The gradient penalty is taken on every second pair: it costs as much as all the rest."""


class Starts(NamedTuple):
    """Where the pairs of some rounds begin; a round is an update of the critic or the kernel."""

    points: Float[Array, "rounds n dim"]
    """x of the pool, then z_b."""
    leaps: Int[Array, " rounds"]
    """m."""


def starts(kernel: AbstractKernel, settings: Settings, pool: Points, key: PRNGKeyArray) -> Starts:
    """For all rounds at once: many small products would cost more than a few large ones.

    With `approach` = 0 there are none from noise.
    """
    keys = jax.random.split(key, 5)
    rounds, batch = settings.critic_steps + 1, settings.batch
    rows = jax.random.randint(keys[0], (rounds, batch), 0, len(pool))
    points = pool[rows]
    leaps = jax.random.randint(keys[4], (rounds,), 1, settings.leap + 1)
    if settings.approach:
        length = jax.random.randint(keys[1], (), 1, settings.approach + 1)
        noise = jax.random.normal(keys[2], (rounds * batch, kernel.dim))
        # No gradient passes here, so the loop may be as long as it needs to be.
        arrived = jax.lax.fori_loop(
            0,
            length,
            lambda i, points: _push(kernel, jax.random.fold_in(keys[3], i), points)[0],
            noise,
        )
        # A start that ran away is one of the pool instead.
        arrived = arrived.reshape(rounds, batch, kernel.dim)
        finite = jnp.all(jnp.isfinite(arrived), axis=2, keepdims=True)
        points = jnp.concatenate([points, jnp.where(finite, arrived, points)], axis=1)
    return Starts(jax.lax.stop_gradient(points), leaps)


def play(
    method: AbstractMethod,
    state: TrainingState,
    rate: Scalar,
    keys: Key[Array, " 3"],
    evaluated: Evaluated | None = None,
) -> tuple[TrainingState, dict[str, Scalar], Bool[Array, ""]]:
    """Updates of the critic, then one of the kernel.

    Args:
        method: whose settings are `Settings`.
        state: with a pool as its memory, which is whitened.
        rate: of learning.
        keys: three of them.
        evaluated: points whose energies are known; the critic is a `CriticAndEnergy` then.

    Returns:
        The state, figures by name, and whether the update of the kernel was finite.
    """
    kernel = method.kernel_with(state.weights)
    begin = starts(kernel, method.settings, state.memory.points, keys[0])
    seen = jax.tree.map(lambda leaf: leaf[:-1], begin)
    state, critic_loss = train_critic(method, state, kernel, seen, rate, keys[1], evaluated)
    state, figures, fine = train_kernel(
        method, state, begin.points[-1], begin.leaps[-1], rate, keys[2]
    )
    return state, {**figures, "critic_loss": critic_loss}, fine


def train_critic(
    method: AbstractMethod,
    state: TrainingState,
    kernel: AbstractKernel,
    starts: Starts,
    rate: Scalar,
    key: PRNGKeyArray,
    evaluated: Evaluated | None = None,
) -> tuple[TrainingState, Scalar]:
    """One update for each round of `starts`; of the energy as well, where there is one."""
    settings, pool = method.settings, state.memory.points
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

        def loss_of(weights: Weights) -> tuple[Scalar, Scalar]:
            critic = method.critic_with(weights)
            loss = wasserstein_critic_loss(critic, *given, weight=settings.penalty)
            # They share no weights, and Adam has a scale for each: the sum needs no factor.
            both = loss if evaluated is None else loss + energy_loss(critic.energy, evaluated)
            return both, loss

        (_, loss), gradient = jax.value_and_grad(loss_of, has_aux=True)(weights)
        weights, memory, _ = descend(settings, weights, memory, loss, gradient, rate)
        return (weights, memory), loss

    carry = (state.critic, state.critic_optimiser)
    (weights, memory), losses = jax.lax.scan(update, carry, (real, fake, mixing))
    state = dataclasses.replace(state, critic=weights, critic_optimiser=memory)
    return state, jnp.mean(losses)


def train_kernel(
    method: AbstractMethod,
    state: TrainingState,
    points: Points,
    count: Int[Array, ""],
    rate: Scalar,
    key: PRNGKeyArray,
) -> tuple[TrainingState, dict[str, Scalar], Bool[Array, ""]]:
    """One Adam step of the kernel on pairs that begin at `points` and are `count` steps apart.

    Returns:
        The state, the loss and its terms, and whether the update was finite.
    """
    settings, critic = method.settings, method.critic_with(state.critic)
    has_energy = isinstance(method.critic, CriticAndEnergy)

    def loss_of(weights: Weights) -> tuple[Scalar, dict[str, Scalar]]:
        new, velocities = leap(method.kernel_with(weights), key, points, count, settings.leap)
        pairs = jnp.concatenate([new, points], axis=1)
        terms = {"adversarial": jnp.mean(critic(pairs)), "velocity": 0.5 * jnp.mean(velocities**2)}
        if not has_energy:
            return terms["adversarial"] + settings.velocity * terms["velocity"], terms
        terms["energy"] = jnp.mean(critic.energy(new))
        total = terms["energy"] + velocities.shape[1] * terms["velocity"]
        return terms["adversarial"] + settings.energy * total, terms

    (loss, terms), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.weights)
    state, fine = kernel_step(settings, state, loss, gradient, rate)
    return state, {"kernel_loss": loss, **terms}, fine


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
