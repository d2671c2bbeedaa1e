"""log p, learned from the values that a training has paid for already.

A map of volume 1 that moves (x, v) ~ p(x) N(v; 0, I) to (x', v') has

    KL(law of (x', v') ‖ p N) = E[U(x') + ½|v'|²] + constant,   U = −log p,

and is always accepted where that is least. v' alone can be made smaller for ever by making x'
wider; both together cannot. Only values of p are known, so a network e(x) learns U from them: at
particles of the pool, and at the kernel's proposals, which are evaluated anyway.

    e(x) = ½|x|² + network(x),   least squares on U, of which what lies far above the pool counts
                                 by its logarithm, by Huber's function

The square is U of a Gaussian in whitened coordinates: for a target near one, little is left.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.kernels.layers import Network, network, numpy_generator
from salmc.learning.particles import Proposals, Slice, Values
from salmc.target import Points, Scalar

_WIDTH, _DEPTH = 64, 2
_FAR = 10.0
"""Energies above the pool's mean are U up to about here, and grow as log U beyond."""
_NOWHERE = 1e3
"""Where p is 0."""


class Energy(eqx.Module):
    """e(x), up to a constant; x is whitened.

    Args:
        key: for the initial weights; not inside `jit`.
        dim: coordinates of a point.
    """

    network: Network

    def __init__(self, key: PRNGKeyArray, dim: int):
        sizes = [dim, *[_WIDTH] * _DEPTH, 1]
        self.network = network(numpy_generator(key), sizes, jax.nn.silu, last_gain=0.1)

    def __call__(self, points: Points) -> Values:
        return 0.5 * jnp.sum(points**2, axis=1) + self.network(points.T)[0]


class CriticAndEnergy(eqx.Module):
    """A critic of pairs, and the energy that is learned beside it by the same optimiser."""

    critic: Any
    energy: Energy

    def __call__(self, pairs: Float[Array, "n both"]) -> Values:
        """The critic's score."""
        return self.critic(pairs)


class Evaluated(NamedTuple):
    """Points and what e should be there."""

    points: Points
    energies: Values
    known: Bool[Array, " n"]
    """Whether a point is finite: one that is not teaches nothing."""


def evaluated(level: Scalar, real: Slice, proposals: Proposals) -> Evaluated:
    """What a step has evaluated.

    Args:
        level: log p that stands for energy 0, such as the pool's mean.
        real: particles.
        proposals: from there.
    """
    known = jnp.all(jnp.isfinite(proposals.points), axis=1)
    points = jnp.where(known[:, None], proposals.points, real.points)
    log_density = jnp.concatenate([real.log_density, proposals.log_density])
    above = jnp.where(jnp.isfinite(log_density), level - log_density, _NOWHERE)
    energies = jnp.where(above > 0.0, _FAR * jnp.log1p(jnp.maximum(above, 0.0) / _FAR), above)
    every = jnp.ones(len(real.points), dtype=bool)
    return Evaluated(
        jnp.concatenate([real.points, points]), energies, jnp.concatenate([every, known])
    )


def energy_loss(energy: Energy, given: Evaluated) -> Scalar:
    """What the energy minimises: Huber's function of its errors."""
    error = jnp.abs(energy(given.points) - given.energies)
    losses = jnp.where(error < 1.0, 0.5 * error**2, error - 0.5)
    return jnp.mean(jnp.where(given.known, losses, 0.0))
