"""SGNHT: the stochastic gradient Nosé-Hoover thermostat.

As SGHMC, but the friction ξ of each particle is learned: it rises while the particle is too fast
and falls while it is too slow, and so takes up gradient noise of unknown size,

    v ← e^{−hξ} v − h ∇Ũ(x) + √(1 − e^{−2hA}) ζ,    x ← x + h v,    ξ ← ξ + h (|v|²/d − 1).

With exact gradients ξ settles at A; noise in the gradients adds to it. The original has the
first-order forms 1 − hξ and √(2Ah), which are unstable where ξ grows beyond 2/h.

Reference: Ding et al., "Bayesian sampling using stochastic gradient thermostats", 2014, alg. 2.
The paper names it among the SG-MCMC methods below eq. 1.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, setting, tamed
from salmc.movers.cloud import Cloud
from salmc.target import AbstractTarget, Points

_HOTTEST = 16.0
"""Kinetic energies above 16 times the right one count as 16: in one dimension that is a velocity
of 4 standard deviations. Else a particle far out would charge its thermostat within a few steps
with a friction that takes hundreds of steps to wear off."""


class SGNHTState(Cloud):
    """A cloud with velocities, in units of `scale`, and a thermostat for each particle."""

    velocities: Points
    thermostats: Float[Array, " n"]


class SGNHTInfo(Info):
    """What one step tells."""

    thermostat: Float[Array, ""]
    """Mean friction: `diffusion` at rest, more where gradients are noisy."""


class SGNHT(AbstractMover):
    """The stochastic gradient Nosé-Hoover thermostat.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: h, the time of one step, in units of the spread of the start. (The `step_size`
            of SGHMC is its square.)
        diffusion: A, the strength of the noise, and the friction without gradient noise.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.05, above=0.0)
    diffusion: Float[Array, ""] = setting("diffusion", 1.0, above=0.0)

    name = "sgnht"
    explanation = "sghmc with a thermostat that absorbs gradient noise"
    requires_gradient = True
    kind = "chains"

    def init(self, key: PRNGKeyArray, particles: Points) -> SGNHTState:
        velocities = jax.random.normal(key, particles.shape, particles.dtype)
        thermostats = jnp.full(len(particles), self.diffusion)
        return SGNHTState.begin(particles, velocities=velocities, thermostats=thermostats)

    def step(self, key: PRNGKeyArray, state: SGNHTState) -> tuple[SGNHTState, SGNHTInfo]:
        batch_key, noise_key = jax.random.split(key)
        gradients = state.gradients(batch_key, self.target)
        noise = jax.random.normal(noise_key, gradients.shape, gradients.dtype)
        kick = self.step_size * tamed(gradients, self.step_size**2)
        shake = jnp.sqrt(-jnp.expm1(-2.0 * self.step_size * self.diffusion)) * noise
        remaining = jnp.exp(-self.step_size * state.thermostats)
        velocities = remaining[:, None] * state.velocities + kick + shake
        heat = jnp.minimum(jnp.mean(velocities**2, axis=1), _HOTTEST)
        thermostats = state.thermostats + self.step_size * (heat - 1.0)
        state, length = state.moved(
            self.step_size * velocities, velocities=velocities, thermostats=thermostats
        )
        return state, SGNHTInfo(length, jnp.mean(thermostats))
