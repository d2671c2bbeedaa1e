"""The pool while a kernel learns from it: slices of it are moved, and written back.

Every move leaves the target invariant, whatever the pool is: a proposal may be learned from
particles that stand still meanwhile, never from the one that it moves. So the pool forgets the bias
of the mover that filled it, and does not run dry of fresh particles. Points are whitened.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.metropolis import acceptance, local_noise, log_q, log_ratio, mean_jump, normal, taken
from salmc.movers.base import AbstractMover, AbstractState
from salmc.movers.evolution import evolution_move
from salmc.programs import on_device
from salmc.target import Points, Scalar

Values = Float[Array, " n"]
LogDensity = Callable[[Points], Values]

_LEVELS = (0.02, 0.1, 0.5, 0.9, 0.98)

State = tuple[Array, Array, Array, Array]

_LATENT_SWEEPS = 40


class Slice(NamedTuple):
    """Rows of the pool from `first` on: the real samples x_t of one step."""

    points: Points
    log_density: Values
    first: Int[Array, ""]


class Particles(eqx.Module):
    """The particles that stand for real samples.

    Attributes:
        points, log_density: where they are, and log p there; 0 without a target.
        moments: Σ (x, 1)(x, 1)ᵀ over slices in the second half of training, for a calibration.
        mover: state of the mover, where it advances the pool.
        acceptance: of the kernel's proposals, over the last hundred steps or so.
        quantiles: of the pool in the middle of this course, at `_LEVELS`: has it settled since?
    """

    points: Points
    log_density: Values
    moments: Float[Array, "size size"]
    mover: AbstractState | None = None
    acceptance: Scalar = eqx.field(default_factory=lambda: jnp.ones(()))
    quantiles: Float[Array, "levels dim"] | None = None

    def rows(self, first: Int[Array, ""], count: int) -> Slice:
        """A slice of neighbours."""
        return Slice(
            jax.lax.dynamic_slice_in_dim(self.points, first, count),
            jax.lax.dynamic_slice_in_dim(self.log_density, first, count),
            first,
        )

    def with_rows(self, new: Slice) -> "Particles":
        """The pool with a slice in its place."""
        return dataclasses.replace(
            self,
            points=_update(self.points, new.points, new.first),
            log_density=_update(self.log_density, new.log_density, new.first),
        )

    def random_rows(self, key: PRNGKeyArray, count: int) -> Slice:
        """Any rows, drawn with replacement; they cannot be written back."""
        rows = jax.random.randint(key, (count,), 0, len(self.points))
        return Slice(self.points[rows], self.log_density[rows], jnp.zeros((), dtype=int))

    def with_moments(self, points: Points, late: Array) -> "Particles":
        """The moments with those of a slice, late in training."""
        extended = jnp.concatenate([points, jnp.ones((len(points), 1))], axis=1)
        added = jnp.where(late, extended.T @ extended / len(points), 0.0)
        return dataclasses.replace(self, moments=self.moments + added)


def evolved(
    key: PRNGKeyArray, pool: Particles, rows: Slice, log_density: LogDensity
) -> tuple[Slice, Scalar]:
    """One differential-evolution step of a slice, and what was accepted.

    Its differences are of particles outside the slice, which stand still meanwhile.
    """
    size, count = len(pool.points), len(rows.points)
    choose_key, move_key = jax.random.split(key)
    away = jax.random.randint(choose_key, (count,), 0, size - count)
    others = pool.points[(rows.first + count + away) % size]
    points, values, moved = evolution_move(
        move_key, rows.points, rows.log_density, others, log_density
    )
    return Slice(points, values, rows.first), jnp.mean(moved)


def latent_moves(
    key: PRNGKeyArray, kernel: AbstractKernel, pool: Particles, log_density: LogDensity
) -> tuple[Particles, Scalar]:
    """Preconditioned Crank–Nicolson moves of the whole pool in a latent kernel's own space.

        ξ' = √(1 − ρ²) ξ + ρ ε,   ε ~ N(0, I),   x' = T(ξ'),   accepted with min{1, w(x')/w(x)}

    with w = p/q. They leave N(0, I) invariant and so p, whatever T is; ρ = 1 is an independent
    proposal. Small ρ are accepted where T fits badly, and so carry particles along a valley, or out
    into a tail, that independent proposals reach only by luck. ρ is drawn anew each time.

    Returns:
        The pool, and the share of proposals that was accepted.
    """
    noise, log_scale = kernel.to_noise(pool.points)
    start = (noise, pool.points, pool.log_density, pool.log_density - log_q(noise, log_scale))

    def sweep(carry: State, key: PRNGKeyArray) -> tuple[State, Scalar]:
        noise, points, values, log_weight = carry
        noise_key, uniform_key = jax.random.split(key)
        share, threshold = jax.random.uniform(uniform_key, (2, len(points)))
        new_noise = local_noise(noise, normal(noise_key, noise.shape), share)
        new, log_scale = kernel.from_noise(new_noise)
        new_values = log_density(new)
        new_weight = new_values - log_q(new_noise, -log_scale)
        finite = jnp.all(jnp.isfinite(new), axis=1) & jnp.isfinite(log_scale)
        moves = taken(jnp.log1p(-threshold), log_ratio(new_weight, log_weight, 0.0, finite))
        moved = (
            jnp.where(moves[:, None], new_noise, noise),
            jnp.where(moves[:, None], new, points),
            jnp.where(moves, new_values, values),
            jnp.where(moves, new_weight, log_weight),
        )
        return moved, jnp.mean(moves)

    carry, accepted = jax.lax.scan(sweep, start, jax.random.split(key, _LATENT_SWEEPS))
    return dataclasses.replace(pool, points=carry[1], log_density=carry[2]), jnp.mean(accepted)


def quantiles(points: Points) -> Float[Array, "levels dim"]:
    """Of each coordinate of a pool, on the host."""
    return on_device(np.quantile(np.asarray(points), _LEVELS, axis=0))


def drift(pool: Particles) -> float:
    """How far the pool has moved since its quantiles were looked at, in standard errors.

    Of the share of it below each of them, which is known a priori: between two modes a quantile
    itself jumps for next to nothing.
    """
    if pool.quantiles is None:
        return 0.0
    points, levels = np.asarray(pool.points), np.asarray(_LEVELS)[:, None]
    shares = np.mean(points[None] <= np.asarray(pool.quantiles)[:, None], axis=1)
    error = np.sqrt(2.0 * levels * (1.0 - levels) / len(points))
    return float(np.max(np.abs(shares - levels) / error))


def moved_by(
    mover: AbstractMover,
    key: PRNGKeyArray,
    pool: Particles,
    whitening: Whitening,
    log_density: LogDensity,
) -> Particles:
    """The mover advances the whole pool one step; particles it would lose stay where they were."""
    before = whitening.colour(pool.points)
    state: Any = eqx.tree_at(lambda state: state.particles, pool.mover, before)
    if getattr(state, "log_density", None) is not None:
        state = eqx.tree_at(lambda state: state.log_density, state, pool.log_density)
    moved, _ = mover.step(key, state)
    finite = jnp.all(jnp.isfinite(moved.particles), axis=1, keepdims=True)
    points = whitening.whiten(jnp.where(finite, moved.particles, before))
    return dataclasses.replace(pool, points=points, log_density=log_density(points), mover=moved)


class Proposals(NamedTuple):
    """What an exact kernel proposes from a slice."""

    points: Points
    log_density: Values
    log_correction: Values
    """Of a tractable kernel without log q(x|x'), which its objective's own pass gives."""


def propose(
    kernel: AbstractKernel, real: Slice, noise: Float[Array, "n noise_dim"], log_density: LogDensity
) -> Proposals:
    """Proposals of an exact kernel from a slice."""
    if kernel.tractable:
        new, forward = kernel.propose_with_density(real.points, noise)
        return Proposals(new, log_density(new), jnp.where(jnp.isfinite(forward), -forward, jnp.inf))
    new, correction = kernel.propose(real.points, noise)
    assert correction is not None
    return Proposals(new, log_density(new), correction)


def finite(proposals: Proposals, real: Slice) -> tuple[Points, Values]:
    """Proposals and log p there; one that overflows in a heavy tail teaches nothing."""
    usable = jnp.all(jnp.isfinite(proposals.points), axis=1)
    points = jnp.where(usable[:, None], proposals.points, real.points)
    return points, jnp.where(usable, proposals.log_density, real.log_density)


def accepted(
    key: PRNGKeyArray, real: Slice, proposals: Proposals, ratio: Values, share: Any
) -> Slice:
    """The slice after one Metropolis-Hastings step, of which a share of it takes part."""
    accept_key, share_key = jax.random.split(key)
    moves = taken(jnp.log1p(-jax.random.uniform(accept_key, ratio.shape)), ratio)
    moves &= jax.random.uniform(share_key, ratio.shape) < share
    points = jnp.where(moves[:, None], proposals.points, real.points)
    return Slice(points, jnp.where(moves, proposals.log_density, real.log_density), real.first)


def exact_ratio(
    kernel: AbstractKernel, real: Slice, proposals: Proposals, log_proposal: Values | None
) -> Values:
    """log of the Metropolis-Hastings ratio of each proposal.

    Args:
        kernel: with the weights that proposed.
        real, proposals: from where, and what.
        log_proposal: log q at the slice, where the kernel is independent and it is known already.
    """
    correction = proposals.log_correction
    if kernel.tractable:
        if not kernel.independent or log_proposal is None:
            log_proposal = kernel.log_densities(real.points, proposals.points)
        correction = correction + log_proposal
    finite = jnp.all(jnp.isfinite(proposals.points), axis=1)
    return log_ratio(proposals.log_density, real.log_density, correction, finite)


def told_of(ratio: Values, real: Slice, proposals: Proposals) -> dict[str, Scalar]:
    """What a step tells of proposals, given log of their ratios: how many are taken, how far."""
    probability = acceptance(ratio)
    jump = mean_jump(probability, real.points, proposals.points)
    return {"acceptance": jnp.mean(probability), "jump": jump}


def _update(array: Array, rows: Array, first: Int[Array, ""]) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(array, rows, first, axis=0)
