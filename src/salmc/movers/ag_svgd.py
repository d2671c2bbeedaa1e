"""AG-SVGD: approximate-gradient SVGD, the paper's self-learning module. It never differentiates p.

Let ν be the density of the particles. Each particle moves by eq. 12 of the paper,

    x_i ← x_i + (ε/Z) Σ_j ω_j [∇log ν(x_j) κ(x_i, x_j) + ∇_{x_j} κ(x_i, x_j)],
    ω_j = ν(x_j)/p(x_j),    Z = Σ_j ω_j,

with ∇log ν by the Stein gradient estimator (eq. 14, `stein_score`) and ν by a kernel density
estimate (eq. 13). Only values of log p enter. Four things make it work on any target:

* **Bandwidths follow the near distances.** The unit of h and h* is a low quantile of the squared
  distances between particles, shared out over dimensions. A median says how far apart the modes
  are; the near distances say how wide they are.
* **The ratio is estimated as a ratio.** A kernel density estimate smooths ν but not p, so at
  ν = p it sees a difference that is not there and makes the cloud too narrow. Following Hjort and
  Glad (1995), with the target as the parametric start,

      ω_i = (1/M) Σ_j κ*(x_i, x_j)/p(x_j) = (1/p(x_i)) (1/M) Σ_j κ*(x_i, x_j) p(x_i)/p(x_j),

  has no such bias. p(x_i)/p(x_j) is held to e^±`ratio_limit`, since it has heavy tails; a limit
  of 0 is eq. 13.
* **Birth and death** (`birth_death`) balance the modes. A rate of 0 is the paper's scheme.
* **What was learned is kept** (`memory`). A kernel estimate of ν from some hundred particles is
  poor, the more so the more dimensions. Draws beside the particles have a density that is known
  exactly; once those of the last steps are worth as many exact draws as there are particles, these
  follow them instead of the estimates (`energy`): the same push between particles, and for the
  pull Σ_j ω_j ∇log ν κ, which stands for E_p[κ ∇log p], that of the draws. Strays between modes,
  which that hardly pulls at, are born again elsewhere (`strays`). In many dimensions, or while
  particles are still far from the target, draws are worth little, and eq. 12 moves on.

The weights are made in log space and held to e^±`weight_limit` about their median, so that one
stray particle cannot take all the mass. Steps are AdaGrad's, which come to rest.

References: the paper; Han and Liu, "Stein variational gradient descent without gradient", 2018.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, setting
from salmc.movers.birth_death import succession
from salmc.movers.cloud import Cloud
from salmc.movers.energy import energy_direction
from salmc.movers.memory import Memory, draws_beside
from salmc.movers.stein import (
    map_rows,
    quantile,
    quantile_of_squared_distances,
    squared_distances,
    stein_direction,
)
from salmc.movers.stein_score import stein_score
from salmc.movers.strays import DRAWS, reborn, shares_below, surplus
from salmc.target import AbstractTarget, Points

_NEAR = 0.03
"""Share of all pairs of particles that counts as near: with ten modes, a third of a mode's own."""


_DRAWS_WIDTH = 1.0
"""Variance of draws about their particle, in units of the near distances. Beside 50 exact draws of
Mog10, 28 % of them count; of half that variance and of twice it, 18 %."""


_PATIENCE, _RECALL_EVERY = 100, 10
"""Strays are looked for in every tenth step that follows the memory, which costs an evaluation for
each particle, and not before the hundredth: until then they may find modes that it does not have.
"""

_BIRTH_BANDWIDTH = 4.0
"""h by which it is seen where particles are too few, in units of the near distances: about the size
of a mode. A smaller one sees the gaps between single particles."""


class AGSVGDState(Cloud):
    """A cloud with AdaGrad's sum of squared directions, and what it remembers."""

    sum_of_squares: Points
    memory: Memory | None
    followed: Float[Array, ""]
    """How many steps, up to the last one, have followed the memory."""


class AGSVGDInfo(Info):
    """What a step tells beside its length.

    Attributes:
        log_ratio_spread: of log ν/p at the particles, 0 at the target; NaN where memory leads.
        births: particles that were reborn.
        remembered: exact draws that the memory is worth.
    """

    log_ratio_spread: Float[Array, ""]
    births: Float[Array, ""]
    remembered: Float[Array, ""]


class AGSVGD(AbstractMover):
    """Approximate-gradient SVGD, eq. 12 of the paper, from values of the log density alone.

    Args:
        target: what to sample from; it needs no gradient.
        step_size: AdaGrad's step, in units of the spread of the start.
        bandwidth: h of the kernel that moves, in units of the near distances.
        density_bandwidth: h* of the kernel that estimates ν and ∇log ν, in the same units.
        regularisation: η of the Stein gradient estimator.
        weight_limit: weights ω are held to e^±limit about their median.
        ratio_limit: p(x_i)/p(x_j) in the estimate of ω is held to e^±limit; 0 is the paper's.
        birth_death: rate of birth and death; 0 is the paper's.
        memory: whether draws beside the particles are made, kept and followed; False is the
            paper's. It costs one more evaluation for each particle and step until it leads, and
            is without effect on minibatches.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.1, above=0.0)
    bandwidth: Float[Array, ""] = setting("bandwidth", 1.0, above=0.0)
    density_bandwidth: Float[Array, ""] = setting("density_bandwidth", 1.0, above=0.0)
    regularisation: Float[Array, ""] = setting("regularisation", 1.0, above=0.0)
    weight_limit: Float[Array, ""] = setting("weight_limit", 3.0, above=0.0, at_most=30.0)
    ratio_limit: Float[Array, ""] = setting("ratio_limit", 1.0, at_least=0.0, at_most=30.0)
    birth_death: Float[Array, ""] = setting("birth_death", 0.1, at_least=0.0, at_most=1.0)
    memory: bool = eqx.field(static=True, default=True)

    name = "ag-svgd"
    explanation = "particles that need no gradient; the paper's self-learning module"
    requires_gradient = False
    kind = "particles"

    def init(self, key: PRNGKeyArray, particles: Points) -> AGSVGDState:
        del key
        return AGSVGDState.begin(
            particles,
            sum_of_squares=jnp.zeros_like(particles),
            memory=Memory.empty(particles) if self.memory else None,
            followed=jnp.zeros(()),
        )

    def step(self, key: PRNGKeyArray, state: AGSVGDState) -> tuple[AGSVGDState, AGSVGDInfo]:
        target = self.target.minibatch(jax.random.split(key, 3)[0])
        near = quantile_of_squared_distances(state.standard, _NEAR) * 2.0 / self.target.dim
        if state.memory is None or not _same(target, self.target):
            return self._by_density(key, target, state, near)
        memory = self._with_draws(jax.random.fold_in(key, 3), state.memory, state, near)
        follows = memory.worth >= len(state.particles)
        # Directions of both kinds differ in size: each begins with sums of its own.
        sums = jnp.where(follows == (state.followed > 0.0), state.sum_of_squares, 0.0)
        followed = jnp.where(follows, state.followed + 1.0, 0.0)
        state = dataclasses.replace(state, sum_of_squares=sums, memory=memory, followed=followed)
        return jax.lax.cond(
            follows,
            lambda: self._by_memory(jax.random.fold_in(key, 4), memory, state, near),
            lambda: self._by_density(key, target, state, near),
        )

    def _with_draws(
        self, key: PRNGKeyArray, memory: Memory, state: AGSVGDState, near: Float[Array, ""]
    ) -> Memory:
        """The memory with draws beside the particles as they are."""
        draws, log_proposal = draws_beside(key, state.standard, _DRAWS_WIDTH * near)
        draws = jnp.mean(state.particles, axis=0) + state.scale * draws
        log_density = self.target.log_densities(draws)
        return memory.with_draws(state.count.astype(int), draws, log_density, log_proposal)

    def _by_memory(
        self, key: PRNGKeyArray, memory: Memory, state: AGSVGDState, near: Array
    ) -> tuple[AGSVGDState, AGSVGDInfo]:
        """Descent of the energy distance to what is remembered, in its own mean and covariance."""
        mean, factor = memory.moments()

        def whitened(points: Points) -> Points:
            return solve_triangular(factor, (points - mean).T, lower=True).T

        draws, weights = memory.part(state.count.astype(int))
        direction = energy_direction(whitened(state.particles), whitened(draws), weights)
        move, sum_of_squares = self._move(state, direction)
        state, length = state.moved(move @ factor.T / state.scale, sum_of_squares=sum_of_squares)

        particles, births = jax.lax.cond(
            (state.followed > _PATIENCE) & (state.followed % _RECALL_EVERY == 0),
            lambda: self._without_strays(key, memory, state, near),
            lambda: (state.particles, jnp.zeros(())),
        )
        state = dataclasses.replace(state, particles=particles)
        return state, AGSVGDInfo(length, jnp.full((), jnp.nan), births, memory.worth)

    def _without_strays(
        self, key: PRNGKeyArray, memory: Memory, state: AGSVGDState, near: Array
    ) -> tuple[Points, Float[Array, ""]]:
        """The particles, strays among them in other places, and how many these are."""
        death_key, birth_key, draws_key = jax.random.split(key, 3)
        log_density = self.target.log_densities(state.particles)
        dead = surplus(death_key, shares_below(log_density, memory))
        centre = jnp.mean(state.particles, axis=0)
        draws = (memory.resampled(draws_key, DRAWS) - centre) / state.scale
        born = reborn(birth_key, state.standard, dead, draws, _BIRTH_BANDWIDTH * near)
        particles = jnp.where(dead[:, None], centre + state.scale * born, state.particles)
        return particles, jnp.sum(dead).astype(particles.dtype)

    def _by_density(
        self, key: PRNGKeyArray, target: AbstractTarget, state: AGSVGDState, near: Array
    ) -> tuple[AGSVGDState, AGSVGDInfo]:
        """Eq. 12, and birth and death."""
        _, resample_key, noise_key = jax.random.split(key, 3)
        log_density = target.log_densities(state.particles)
        points = state.standard
        density_bandwidth = self.density_bandwidth * near

        log_ratio = self.log_ratio(points, log_density, density_bandwidth)
        scores = stein_score(points, density_bandwidth, self.regularisation)
        weights = jax.nn.softmax(log_ratio)
        direction = stein_direction(points, scores, self.bandwidth * near, weights)
        move, sum_of_squares = self._move(state, direction)
        state, length = state.moved(move)

        parent, born = succession(resample_key, -self.birth_death * log_ratio)
        # Newborns are drawn from the density estimate itself: a copy at its parent's very place
        # would stay there for ever, since the push between coinciding particles is zero.
        noise = jnp.sqrt(0.5 * density_bandwidth) * jax.random.normal(noise_key, points.shape)
        particles = state.particles[parent] + jnp.where(born[:, None], state.scale * noise, 0.0)
        state = dataclasses.replace(
            state, particles=particles, sum_of_squares=sum_of_squares[parent]
        )
        births = jnp.sum(born).astype(points.dtype)
        return state, AGSVGDInfo(length, jnp.std(log_ratio), births, _worth(state))

    def _move(self, state: AGSVGDState, direction: Points) -> tuple[Points, Points]:
        """AdaGrad's move along a direction, and its sum of squares."""
        # A particle that never moved has a zero sum; adding a tiny number gives 0/0 a meaning.
        sum_of_squares = state.sum_of_squares + direction**2
        return self.step_size * direction / jnp.sqrt(sum_of_squares + 1e-20), sum_of_squares

    def log_ratio(
        self, points: Points, log_density: Float[Array, " n"], bandwidth: Float[Array, ""]
    ) -> Float[Array, " n"]:
        """log(ν/p) at the particles, less its median, held to ±`weight_limit`."""
        # Zero density counts as far less likely than any other particle, but finite.
        lowest = jnp.min(jnp.where(jnp.isfinite(log_density), log_density, jnp.inf))
        log_density = jnp.where(jnp.isfinite(log_density), log_density, lowest - 100.0)
        log_density = log_density - jnp.max(log_density)

        def smoothed(rows: Array, row_values: Array) -> Array:
            kernel = jnp.exp(-squared_distances(rows, points) / bandwidth)
            difference = row_values[:, None] - log_density[None, :]
            limited = jnp.clip(difference, -self.ratio_limit, self.ratio_limit)
            return jnp.mean(kernel * jnp.exp(limited), axis=1, keepdims=True)

        estimate = map_rows(smoothed, (points, log_density), len(points))[:, 0]
        log_ratio = jnp.log(estimate) - log_density
        log_ratio = log_ratio - quantile(log_ratio, 0.5)
        return jnp.clip(log_ratio, -self.weight_limit, self.weight_limit)


def _same(view: AbstractTarget, target: AbstractTarget) -> bool:
    """Whether a view of a target has all its data: then it has the very same arrays."""
    pairs = zip(jax.tree.leaves(view), jax.tree.leaves(target), strict=True)
    return all(one is other for one, other in pairs)


def _worth(state: AGSVGDState) -> Float[Array, ""]:
    return jnp.zeros(()) if state.memory is None else state.memory.worth
