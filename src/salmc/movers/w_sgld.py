"""w-SGLD: Langevin dynamics without noise, by entropic optimal transport between particles.

The discrete gradient flow of eq. 5 of the paper moves particles down the energy plus a transport
cost W₂². With an entropic plan π_ij = u_i v_j e^{−c_ij/λ}, c_ij = |x_i − x_j|², the gradient of
Σ_j π_ij c_ij drives the particles apart:

    x_i ← x_i − ε_t ∇Ũ(x_i) + ε_t γ_i Σ_j 2 (1 − a c_ij/λ) e^{−c_ij/λ} (x_i − x_j).

At a = 1 (`attraction`) it is the full gradient: repulsion below the distance √λ and attraction
beyond, which draws particles into clumps where λ is smaller than the cloud. The default a = 0
keeps the repulsion alone.

The potentials u_i v_j = γ_i, a constant to be set by hand in the original, follow from two
conditions here. The rows of the plan have equal mass, so γ_i ∝ 1/Σ_j e^{−c_ij/λ}: with a = 0 the
force is then −∇ log of the particles' kernel density estimate, the entropy's own force. And each
coordinate's force F satisfies E[(x − E x) F] = 1, as −∇ log ν does for every density ν: this
makes up for the smoothing of the kernel, which would leave the cloud too narrow. It does so for
the cloud as a whole, and overshoots on thin curved densities: a banana comes out half as wide
again, and wants a smaller λ. In ten dimensions a smaller λ lets the particles collapse.

Reference: Chen et al., "A unified particle-optimization framework for scalable Bayesian
sampling", 2018, sec. 4. The paper builds AL-MC on it (eq. 5 and 6).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, decayed, setting, tamed
from salmc.movers.cloud import Cloud
from salmc.movers.stein import kernel_product
from salmc.movers.svgd import default_bandwidth
from salmc.target import AbstractTarget, Points

_LARGEST_GAIN = 100.0
"""Bound on the second condition's factor, for clouds so sparse that no particle feels another."""


class WSGLD(AbstractMover):
    """Langevin dynamics whose noise is replaced by repulsion between the particles.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: the first step size, in units of the squared spread of the start.
        decay: the exponent of the decay of the step size; 0 keeps it constant.
        bandwidth: λ as a factor on the bandwidth of SVGD, median²/log(M + 1).
        repulsion: a factor on the force between particles; 1 gives the right spread.
        attraction: the share of the attraction beyond √λ that is kept, from 0 to 1.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.1, above=0.0)
    decay: Float[Array, ""] = setting("decay", 0.55, at_least=0.0, at_most=1.0)
    bandwidth: Float[Array, ""] = setting("bandwidth", 0.3, above=0.0)
    repulsion: Float[Array, ""] = setting("repulsion", 1.0, at_least=0.0)
    attraction: Float[Array, ""] = setting("attraction", 0.0, at_least=0.0, at_most=1.0)

    name = "w-sgld"
    explanation = "Langevin dynamics with repulsion in place of noise"
    requires_gradient = True
    kind = "particles"

    def init(self, key: PRNGKeyArray, particles: Points) -> Cloud:
        del key
        return Cloud.begin(particles)

    def step(self, key: PRNGKeyArray, state: Cloud) -> tuple[Cloud, Info]:
        step_size = decayed(self.step_size, self.decay, state.count)
        bandwidth = self.bandwidth * default_bandwidth(state.standard)
        force, mass = transport_force(state.standard, bandwidth, self.attraction)
        force = force / (mass[:, None] * bandwidth)
        work = jnp.mean(state.standard * force, axis=0)
        gain = 1.0 / jnp.maximum(work, 1.0 / _LARGEST_GAIN)
        drift = state.gradients(key, self.target) + self.repulsion * gain * force
        state, length = state.moved(step_size * tamed(drift, step_size))
        return state, Info(length)


def transport_force(
    points: Points, bandwidth: Float[Array, ""], attraction: Float[Array, ""]
) -> tuple[Points, Float[Array, " n"]]:
    """Σ_j 2 (1 − a c_ij/λ) e^{−c_ij/λ} (x_i − x_j), and the mass Σ_j e^{−c_ij/λ}.

    The factor c_ij needs no matrix of its own: c/λ e^{−c/λ} = λ ∂/∂λ e^{−c/λ}.
    """

    def sums(bandwidth: Float[Array, ""]) -> tuple[Points, Float[Array, " n"]]:
        values = jnp.concatenate([points, jnp.ones((len(points), 1))], axis=1)
        products = kernel_product(points, points, bandwidth, values)
        mass = products[:, -1]
        return points * mass[:, None] - products[:, :-1], mass

    (repulsion, mass), (derivative, _) = jax.jvp(sums, (bandwidth,), (jnp.ones_like(bandwidth),))
    return 2.0 * (repulsion - attraction * bandwidth * derivative), mass
