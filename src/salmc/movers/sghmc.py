"""SGHMC: stochastic gradient Hamiltonian Monte Carlo.

Each particle carries a velocity with friction, so that it keeps its way over several steps where
Langevin dynamics turns at each:

    v ← (1 − α) v − ε ∇Ũ(x) + √(α (2 − α) ε) ζ,    x ← x + v.

The velocity is then N(0, ε I) at rest. The noise of the original, √(2αε), agrees to first order
in α; the form here leaves that law exactly unchanged for every friction.

Reference: Chen, Fox and Guestrin, "Stochastic gradient Hamiltonian Monte Carlo", 2014, eq. 15.
The paper names it among the SG-MCMC methods below eq. 1.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, setting, tamed
from salmc.movers.cloud import Cloud
from salmc.target import AbstractTarget, Points


class SGHMCState(Cloud):
    """A cloud with velocities, in units of `scale`."""

    velocities: Points


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

    name = "sghmc"
    explanation = "Langevin dynamics with momentum: longer strides than sgld"
    requires_gradient = True
    kind = "chains"

    def init(self, key: PRNGKeyArray, particles: Points) -> SGHMCState:
        noise = jax.random.normal(key, particles.shape, particles.dtype)
        return SGHMCState.begin(particles, velocities=jnp.sqrt(self.step_size) * noise)

    def step(self, key: PRNGKeyArray, state: SGHMCState) -> tuple[SGHMCState, Info]:
        batch_key, noise_key = jax.random.split(key)
        gradients = state.gradients(batch_key, self.target)
        noise = jax.random.normal(noise_key, gradients.shape, gradients.dtype)
        kick = self.step_size * tamed(gradients, self.step_size)
        shake = jnp.sqrt(self.friction * (2.0 - self.friction) * self.step_size) * noise
        velocities = (1.0 - self.friction) * state.velocities + kick + shake
        state, length = state.moved(velocities, velocities=velocities)
        return state, Info(length)
