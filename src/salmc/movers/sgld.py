"""SGLD: stochastic gradient Langevin dynamics.

Each particle goes up the gradient of the log density and is shaken by noise of matching size,

    x ← x − ε_t ∇Ũ(x) + √(2ε_t) ζ,    ε_t = a (t + 1)^−0.55,    ζ ~ N(0, I),

eq. 1 of the paper and the step sizes of its experiments. U = −log p, and Ũ is U on a minibatch
where the target has one. Without a Metropolis step the bias is of the order of ε times the
curvature of U; the decay takes it away.

Reference: Welling and Teh, "Bayesian learning via stochastic gradient Langevin dynamics", 2011.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, decayed, setting, tamed
from salmc.movers.cloud import Cloud
from salmc.target import AbstractTarget, Points


class SGLD(AbstractMover):
    """Stochastic gradient Langevin dynamics, eq. 1 of the paper.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: a, the first step size, in units of the squared spread of the start.
        decay: the exponent of the decay of the step size; 0 keeps it constant.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.1, above=0.0)
    decay: Float[Array, ""] = setting("decay", 0.55, at_least=0.0, at_most=1.0)

    name = "sgld"
    explanation = "Langevin dynamics: gradient steps plus noise, one chain each"
    requires_gradient = True
    kind = "chains"

    def init(self, key: PRNGKeyArray, particles: Points) -> Cloud:
        del key
        return Cloud.begin(particles)

    def step(self, key: PRNGKeyArray, state: Cloud) -> tuple[Cloud, Info]:
        batch_key, noise_key = jax.random.split(key)
        step_size = decayed(self.step_size, self.decay, state.count)
        gradients = state.gradients(batch_key, self.target)
        noise = jax.random.normal(noise_key, gradients.shape, gradients.dtype)
        move = step_size * tamed(gradients, step_size) + jnp.sqrt(2.0 * step_size) * noise
        state, length = state.moved(move)
        return state, Info(length)
