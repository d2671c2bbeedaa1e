"""Tempered SMC: particles carried from a Gaussian to the target through a row of bridges.

    p_β ∝ p_0^{1−β} p^β,    β from 0 to 1,    p_0 the Gaussian of the starting particles.

One step raises β until the weights (p/p_0)^{Δβ} leave half of the particles to count, resamples,
and moves all particles by differential evolution, which leaves p_β invariant. At β = 1 only the
moves go on. On cheap densities this fills a pool in a blink, from values of log p alone; every
particle is then an approximate draw, and more particles make it as exact as wished.

Reference: Del Moral, Doucet and Jasra, "Sequential Monte Carlo samplers", 2006.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.movers.base import AbstractMover, AbstractState, Info, displacement, setting, spread
from salmc.movers.evolution import evolve
from salmc.programs import compiled
from salmc.target import AbstractTarget, Points

MOST_ROUNDS = 200
_ROUNDS_AT_TARGET = 2
_LEAST_RAISE = 1e-14

_ACCEPTED_EACH = 0.25
"""Of the moves in a step, so many must be accepted of each particle, in the mean: copies that do
not come apart would stand for one and the same particle in the next."""

_MOST_SWEEPS = 12
"""In units of the fewest."""


class TemperedSMCState(AbstractState):
    """Positions, their log density, the temperature and the Gaussian they started from."""

    particles: Points
    log_density: Float[Array, " n"]
    beta: Float[Array, ""]
    mean: Float[Array, " dim"]
    cholesky: Float[Array, "dim dim"]
    scale: Float[Array, " dim"]
    log_evidence: Float[Array, ""]
    """log ∫ p of what was tempered so far: an estimate of log ∫ p, less that of p_0, at β = 1."""


class TemperedSMCInfo(Info):
    """The move, the temperature and the share of proposals that were accepted."""

    beta: Float[Array, ""]
    acceptance: Float[Array, ""]


class TemperedSMC(AbstractMover):
    """Adaptive tempered sequential Monte Carlo with differential-evolution moves.

    Args:
        target: what to sample from; it needs no gradient.
        kept: share of the particles that must still count after each raise of β.
        sweeps: moves of all particles in each step, in units of max(4, d/2).
    """

    target: AbstractTarget
    kept: Float[Array, ""] = setting("kept", 0.5, above=0.0, at_most=0.99)
    sweeps: Float[Array, ""] = setting("sweeps", 1.0, above=0.0)

    name: ClassVar[str] = "smc"
    explanation: ClassVar[str] = "particles tempered from a Gaussian to the target; no gradient"
    requires_gradient: ClassVar[bool] = False
    kind: ClassVar[Literal["chains", "particles"]] = "particles"

    def init(self, key: PRNGKeyArray, particles: Points) -> TemperedSMCState:
        del key
        count, dim = particles.shape
        scale = spread(particles)
        centred = (particles - jnp.mean(particles, axis=0)) / scale
        # The ridge keeps a Gaussian of few particles proper; p_0 may be any Gaussian.
        covariance = centred.T @ centred / count + 1e-3 * jnp.eye(dim)
        return TemperedSMCState(
            particles,
            self.target.log_densities(particles),
            jnp.zeros(()),
            jnp.mean(particles, axis=0),
            scale[:, None] * jnp.linalg.cholesky(covariance),
            scale,
            jnp.zeros(()),
        )

    def step(self, key: PRNGKeyArray, state: TemperedSMCState) -> tuple[TemperedSMCState, Info]:
        resample_key, move_key = jax.random.split(key)

        log_volume = jnp.sum(jnp.log(jnp.diag(state.cholesky)))
        log_volume = log_volume + 0.5 * self.target.dim * jnp.log(2.0 * jnp.pi)

        def base(points: Points) -> Float[Array, " n"]:
            noise = jax.scipy.linalg.solve_triangular(
                state.cholesky, (points - state.mean).T, lower=True
            )
            return -0.5 * jnp.sum(noise**2, axis=0) - log_volume

        log_ratio = state.log_density - base(state.particles)
        log_ratio = jnp.where(jnp.isfinite(log_ratio), log_ratio, -jnp.inf)
        beta = jnp.minimum(1.0, state.beta + self.raise_of_beta(log_ratio, state.beta))
        chosen = systematic(resample_key, (beta - state.beta) * log_ratio)
        tempering = state.beta < 1.0
        gain = jax.nn.logsumexp((beta - state.beta) * log_ratio) - jnp.log(len(log_ratio))
        particles = jnp.where(tempering, state.particles[chosen], state.particles)
        log_density = jnp.where(tempering, state.log_density[chosen], state.log_density)

        def tempered(points: Points, log_density: Float[Array, " n"]) -> Float[Array, " n"]:
            return beta * log_density + (1.0 - beta) * base(points)

        def unfinished(carry: tuple[Array, Array, Array, Array]) -> Array:
            sweeps, accepted = carry[0], carry[3]
            few = (sweeps < least) | (accepted < self.sweeps * _ACCEPTED_EACH * least)
            return few & (sweeps < _MOST_SWEEPS * least)

        def sweep(carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            i, points, values, accepted = carry
            points, values, latest = evolve(
                jax.random.fold_in(move_key, i),
                points,
                values,
                self.target.log_densities,
                tempered=tempered,
            )
            return i + 1, points, values, accepted + jnp.mean(latest)

        least = jnp.ceil(self.sweeps * max(4, self.target.dim // 2)).astype(int)
        begin = (jnp.zeros((), int), particles, log_density, jnp.zeros(()))
        sweeps, moved, log_density, accepted = jax.lax.while_loop(unfinished, sweep, begin)
        info = TemperedSMCInfo(
            displacement(state.particles, moved, state.scale), beta, accepted / sweeps
        )
        state = dataclasses.replace(
            state,
            particles=moved,
            log_density=log_density,
            beta=beta,
            log_evidence=state.log_evidence + gain,
        )
        return state, info

    def raise_of_beta(
        self, log_ratio: Float[Array, " n"], beta: Float[Array, ""]
    ) -> Float[Array, ""]:
        """The largest Δβ that leaves the share `kept` of the particles to count, by bisection."""

        def share(delta: Array) -> Array:
            scaled = jnp.where(log_ratio > -jnp.inf, delta * log_ratio, -jnp.inf)
            total, squares = jax.nn.logsumexp(scaled), jax.nn.logsumexp(2.0 * scaled)
            return jnp.exp(2.0 * total - squares) / len(log_ratio)

        def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bracket
            middle = jnp.sqrt(low * high)
            enough = share(middle) > self.kept
            return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

        rest = jnp.maximum(1.0 - beta, _LEAST_RAISE)
        low, _ = jax.lax.fori_loop(0, 40, halve, (jnp.array(_LEAST_RAISE), rest))
        return jnp.where(share(rest) > self.kept, rest, low)


def systematic(key: PRNGKeyArray, log_weights: Float[Array, " n"]) -> Int[Array, " n"]:
    """Systematic resampling: the index of the particle that each place is given to.

    Neighbours in the answer are dealt to alternate halves, so that the copies of one particle are
    not all in the half that moves, where their differences would be missing.
    """
    count = len(log_weights)
    cumulative = jnp.cumsum(jax.nn.softmax(log_weights))
    marks = (jnp.arange(count) + jax.random.uniform(key)) / count * cumulative[-1]
    chosen = jnp.searchsorted(cumulative, marks).clip(0, count - 1)
    return jnp.concatenate([chosen[::2], chosen[1::2]])


@compiled
def temper(
    mover: TemperedSMC, key: PRNGKeyArray, start: Points, most: Int[Array, ""]
) -> TemperedSMCState:
    """Steps until β = 1 and two more; at most `most`, which is traced."""
    init_key, step_key = jax.random.split(key)

    def unfinished(carry: tuple[Array, Array, object]) -> Array:
        i, at_target, _ = carry
        return (i < most) & (at_target < _ROUNDS_AT_TARGET)

    def body(carry: tuple) -> tuple:
        i, at_target, state = carry
        at_target = at_target + (state.beta >= 1.0)
        state, _ = mover.step(jax.random.fold_in(step_key, i), state)
        return i + 1, at_target, state

    zero = jnp.zeros((), dtype=int)
    return jax.lax.while_loop(unfinished, body, (zero, zero, mover.init(init_key, start)))[2]


def merge(runs: Sequence[TemperedSMCState]) -> tuple[Points, Float[Array, " n"]]:
    """Of several runs, from each as many particles as its estimate of ∫ p has of their sum."""
    if len(runs) == 1:
        return runs[0].particles, runs[0].log_density
    evidence = np.array([float(run.log_evidence) for run in runs])
    evidence = np.where(np.isnan(evidence), -np.inf, evidence)
    count, known = len(runs[0].particles), np.max(evidence) > -np.inf
    weights = np.exp(evidence - np.max(evidence)) if known else np.ones(len(runs))
    last = np.round(count * np.cumsum(weights) / np.sum(weights)).astype(int)
    which = np.searchsorted(last, np.random.default_rng(0).permutation(count), side="right")
    points = np.stack([np.asarray(run.particles) for run in runs])
    values = np.stack([np.asarray(run.log_density) for run in runs])
    rows = np.arange(count)
    return jnp.asarray(points[which, rows]), jnp.asarray(values[which, rows])
