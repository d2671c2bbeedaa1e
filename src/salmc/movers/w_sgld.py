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

from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import (
    AbstractMover,
    AbstractState,
    Info,
    decayed,
    displacement,
    setting,
    spread,
    standardised,
    standardised_gradients,
    tamed,
)
from salmc.movers.stein import kernel_product
from salmc.movers.svgd import default_bandwidth
from salmc.target import AbstractTarget, Points

_LARGEST_GAIN = 100.0
"""Bound on the second condition's factor, for clouds so sparse that no particle feels another."""


class WSGLDState(AbstractState):
    """Positions, the unit of length of each coordinate, and the number of steps taken."""

    particles: Points
    scale: Float[Array, " dim"]
    count: Float[Array, ""]


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

    name: ClassVar[str] = "w-sgld"
    explanation: ClassVar[str] = "Langevin dynamics with repulsion in place of noise"
    requires_gradient: ClassVar[bool] = True
    kind: ClassVar[Literal["chains", "particles"]] = "particles"

    def init(self, key: PRNGKeyArray, particles: Points) -> WSGLDState:
        del key
        return WSGLDState(particles, spread(particles), jnp.zeros(()))

    def step(self, key: PRNGKeyArray, state: WSGLDState) -> tuple[WSGLDState, Info]:
        step_size = decayed(self.step_size, self.decay, state.count)
        gradients = standardised_gradients(key, self.target, state.particles, state.scale)
        standard = standardised(state.particles, state.scale)
        bandwidth = self.bandwidth * default_bandwidth(standard)
        force, mass = transport_force(standard, bandwidth, self.attraction)
        force = force / (mass[:, None] * bandwidth)
        work = jnp.mean(standard * force, axis=0)
        gain = 1.0 / jnp.maximum(work, 1.0 / _LARGEST_GAIN)
        drift = gradients + self.repulsion * gain * force
        particles = state.particles + state.scale * step_size * tamed(drift, step_size)
        info = Info(displacement(state.particles, particles, state.scale))
        return WSGLDState(particles, state.scale, state.count + 1.0), info


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
