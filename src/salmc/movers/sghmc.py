"""SGHMC: stochastic gradient Hamiltonian Monte Carlo.

Each particle carries a velocity with friction, so that it keeps its way over several steps where
Langevin dynamics turns at each:

    v ← (1 − α) v − ε ∇Ũ(x) + √(α (2 − α) ε) ζ,    x ← x + v.

The velocity is then N(0, ε I) at rest. The noise of the original, √(2αε), agrees to first order
in α; the form here leaves that law exactly unchanged for every friction.

Reference: Chen, Fox and Guestrin, "Stochastic gradient Hamiltonian Monte Carlo", 2014, eq. 15.
The paper names it among the SG-MCMC methods below eq. 1.
"""

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import (
    AbstractMover,
    AbstractState,
    Info,
    displacement,
    setting,
    spread,
    standardised_gradients,
    tamed,
)
from salmc.target import AbstractTarget, Points


class SGHMCState(AbstractState):
    """Positions, velocities in units of `scale`, and the unit of length of each coordinate."""

    particles: Points
    velocities: Points
    scale: Float[Array, " dim"]


class SGHMC(AbstractMover):
    """Stochastic gradient Hamiltonian Monte Carlo.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: ε, the square of the time of one step, in units of the squared spread of the
            start.
        friction: α, the share of the velocity that one step forgets.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.003, above=0.0)
    friction: Float[Array, ""] = setting("friction", 0.05, above=0.0, at_most=1.0)

    name: ClassVar[str] = "sghmc"
    explanation: ClassVar[str] = "Langevin dynamics with momentum: longer strides than sgld"
    requires_gradient: ClassVar[bool] = True
    kind: ClassVar[Literal["chains", "particles"]] = "chains"

    def init(self, key: PRNGKeyArray, particles: Points) -> SGHMCState:
        noise = jax.random.normal(key, particles.shape, particles.dtype)
        return SGHMCState(particles, jnp.sqrt(self.step_size) * noise, spread(particles))

    def step(self, key: PRNGKeyArray, state: SGHMCState) -> tuple[SGHMCState, Info]:
        batch_key, noise_key = jax.random.split(key)
        gradients = standardised_gradients(batch_key, self.target, state.particles, state.scale)
        noise = jax.random.normal(noise_key, gradients.shape, gradients.dtype)
        kick = self.step_size * tamed(gradients, self.step_size)
        shake = jnp.sqrt(self.friction * (2.0 - self.friction) * self.step_size) * noise
        velocities = (1.0 - self.friction) * state.velocities + kick + shake
        particles = state.particles + state.scale * velocities
        info = Info(displacement(state.particles, particles, state.scale))
        return SGHMCState(particles, velocities, state.scale), info
