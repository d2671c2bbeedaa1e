"""Differential evolution: exact Metropolis steps whose proposals are differences of particles.

One half of the particles moves while the other stands still and lends its differences,

    x' = x + g (a − b) + small noise,    accept with min{1, p(x')/p(x)},

so the proposal is symmetric and each half-step leaves p^M invariant. The scale g is drawn anew each
time over all scales worth trying, up to the optimal 2.38/√(2d) and a little beyond; now and then
g = 1, which carries a particle from one mode to another. Differences have the shape of the target,
whatever its scales and correlations: there is nothing to tune and no gradient.

Reference: ter Braak, "A Markov chain Monte Carlo version of the genetic algorithm differential
evolution", 2006.
"""

from collections.abc import Callable
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.metropolis import log_ratio, taken
from salmc.movers.base import AbstractMover, AbstractState, Info, displacement, setting, spread
from salmc.programs import compiled
from salmc.target import AbstractTarget, Points

_NOISE = 1e-3
"""Noise in units of the others' spread: without it particles could stay on a lattice."""

_LARGEST = 1.2
"""Largest scale g, in units of 2.38/√(2d)."""

_SWEEPS = 50
"""In which particles that are near the target settle there."""

Values = Float[Array, " n"]
Tempered = Callable[[Points, Values], Values]


class EvolutionState(AbstractState):
    """Positions, their log density, and the unit of length."""

    particles: Points
    log_density: Values
    scale: Float[Array, " dim"]


class EvolutionInfo(Info):
    """The move and the share of proposals that were accepted."""

    acceptance: Float[Array, ""]


class DifferentialEvolution(AbstractMover):
    """Exact, gradient-free Markov chains that learn the target's shape from one another.

    Args:
        target: what to sample from; it needs no gradient.
        jump: share of proposals with g = 1, which leap between modes.
    """

    target: AbstractTarget
    jump: Float[Array, ""] = setting("jump", 0.1, at_least=0.0, at_most=1.0)

    name: ClassVar[str] = "de-mc"
    explanation: ClassVar[str] = "exact chains that need no gradient; they propose by differences"
    requires_gradient: ClassVar[bool] = False
    kind: ClassVar[Literal["chains", "particles"]] = "chains"

    def init(self, key: PRNGKeyArray, particles: Points) -> EvolutionState:
        del key
        log_density = self.target.log_densities(particles)
        return EvolutionState(particles, log_density, spread(particles))

    def step(self, key: PRNGKeyArray, state: EvolutionState) -> tuple[EvolutionState, Info]:
        particles, log_density, accepted = evolve(
            key, state.particles, state.log_density, self.target.log_densities, self.jump
        )
        info = EvolutionInfo(
            displacement(state.particles, particles, state.scale), jnp.mean(accepted)
        )
        return EvolutionState(particles, log_density, state.scale), info


def evolve(
    key: PRNGKeyArray,
    particles: Points,
    log_density: Values,
    log_densities: Callable[[Points], Values],
    jump: Float[Array, ""] | float = 0.1,
    tempered: Tempered | None = None,
) -> tuple[Points, Values, Bool[Array, " n"]]:
    """One step of all particles: each half moves once by differences of the other."""
    half = len(particles) // 2
    first_key, second_key = jax.random.split(key)
    first, first_values, first_accepted = evolution_move(
        first_key,
        particles[:half],
        log_density[:half],
        particles[half:],
        log_densities,
        jump,
        tempered,
    )
    second, second_values, second_accepted = evolution_move(
        second_key, particles[half:], log_density[half:], first, log_densities, jump, tempered
    )
    return (
        jnp.concatenate([first, second]),
        jnp.concatenate([first_values, second_values]),
        jnp.concatenate([first_accepted, second_accepted]),
    )


def evolution_move(
    key: PRNGKeyArray,
    particles: Float[Array, "n dim"],
    log_density: Float[Array, " n"],
    others: Float[Array, "m dim"],
    log_densities: Callable[[Points], Values],
    jump: Float[Array, ""] | float = 0.1,
    tempered: Tempered | None = None,
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Bool[Array, " n"]]:
    """One Metropolis step of each particle by differences of `others`, which must stand still.

    Args:
        key: of the step.
        particles, log_density: what moves, and log p there.
        others: what lends its differences.
        log_densities: log p of n points.
        jump: share of proposals with g = 1.
        tempered: (points, log p) ↦ the log density that is left invariant; log p itself if None.
    """
    count, dim = particles.shape
    if count == 0 or len(others) == 0:
        return particles, log_density, jnp.zeros(count, dtype=bool)
    uniform_key, pair_key, noise_key = jax.random.split(key, 3)
    leap, scale, threshold = jax.random.uniform(uniform_key, (3, count))
    first, second = jax.random.randint(pair_key, (2, count), 0, len(others))
    # Small scales accept where the target is narrower than the cloud, as after resampling.
    smallest = min(0.4, 0.05 * np.sqrt(dim))
    log_range = np.log(_LARGEST / smallest)
    factor = smallest * jnp.exp(scale * log_range) * 2.38 / np.sqrt(2.0 * dim)
    factor = jnp.where(leap < jump, 1.0, factor)
    noise = _NOISE * jnp.std(others, axis=0) * jax.random.normal(noise_key, particles.shape)
    proposals = particles + factor[:, None] * (others[first] - others[second]) + noise
    values = log_densities(proposals)
    new, old = values, log_density
    if tempered is not None:
        new, old = tempered(proposals, values), tempered(particles, log_density)
    accepted = taken(jnp.log1p(-threshold), log_ratio(new, old))
    return (
        jnp.where(accepted[:, None], proposals, particles),
        jnp.where(accepted, values, log_density),
        accepted,
    )


@compiled
def settle_down(
    target: AbstractTarget, key: PRNGKeyArray, points: Points, values: Float[Array, " n"]
) -> tuple[Points, Float[Array, " n"]]:
    """Sweeps of differential evolution at the target itself."""

    def sweep(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return evolve(jax.random.fold_in(key, i), *carry, target.log_densities)[:2]

    return jax.lax.fori_loop(0, _SWEEPS, sweep, (points, values))
