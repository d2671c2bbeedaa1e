"""SPOS: stochastic particle-optimisation sampling.

SVGD plus Langevin dynamics. The noise keeps the particles from the collapse of spread that SVGD
has in many dimensions, the interaction keeps them apart:

    x_i ← x_i − (ε_t/β) ∇Ũ(x_i) + √(2ε_t/β) ζ_i
              + (ε_t/M) Σ_j [−κ(x_i, x_j) ∇Ũ(x_j) + ∇_{x_j} κ(x_i, x_j)].

At β → ∞ it is SVGD with a plain step. Particles interact, so they are not separate chains: the
sample is the cloud.

Reference: Zhang, Zhang and Chen, "Stochastic particle-optimization sampling and the
non-asymptotic convergence theory", 2018. The paper cites it for the flows of eq. 3 and 4.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, decayed, setting, tamed
from salmc.movers.cloud import Cloud
from salmc.movers.stein import stein_direction
from salmc.movers.svgd import default_bandwidth
from salmc.target import AbstractTarget, Points


class SPOS(AbstractMover):
    """Stochastic particle-optimisation sampling.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: the first step size, in units of the squared spread of the start.
        decay: the exponent of the decay of the step size; 0 keeps it constant.
        inverse_temperature: β; the larger, the less noise.
        bandwidth: a factor on the bandwidth of SVGD, median²/log(M + 1).
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.1, above=0.0)
    decay: Float[Array, ""] = setting("decay", 0.55, at_least=0.0, at_most=1.0)
    inverse_temperature: Float[Array, ""] = setting("inverse_temperature", 1.0, above=0.0)
    bandwidth: Float[Array, ""] = setting("bandwidth", 1.0, above=0.0)

    name = "spos"
    explanation = "svgd plus Langevin noise: does not lose its spread"
    requires_gradient = True
    kind = "particles"

    def init(self, key: PRNGKeyArray, particles: Points) -> Cloud:
        del key
        return Cloud.begin(particles)

    def step(self, key: PRNGKeyArray, state: Cloud) -> tuple[Cloud, Info]:
        batch_key, noise_key = jax.random.split(key)
        step_size = decayed(self.step_size, self.decay, state.count)
        temperature = 1.0 / self.inverse_temperature
        gradients = tamed(state.gradients(batch_key, self.target), step_size)
        bandwidth = self.bandwidth * default_bandwidth(state.standard)
        drift = temperature * gradients + stein_direction(state.standard, gradients, bandwidth)
        noise = jax.random.normal(noise_key, gradients.shape, gradients.dtype)
        move = step_size * drift + jnp.sqrt(2.0 * step_size * temperature) * noise
        state, length = state.moved(move)
        return state, Info(length)
