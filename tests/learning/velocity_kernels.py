"""Kernels on (x, v) with one number to learn, and a pool of N(0, I) for them."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from salmc.kernels import Whitening
from salmc.kernels.base import AbstractKernel, Proposal
from salmc.kernels.nice import velocity_correction
from salmc.learning.pool import Pool


class VelocityKernel(AbstractKernel):
    """A map of (x, v) of volume 1 that is its own inverse but for the sign of v, which N(0, I)
    does not see."""

    weight: jax.Array
    dim: int = eqx.field(static=True)

    exact = True
    volume_preserving = True
    training = "velocities"

    @property
    def noise_dim(self) -> int:
        return self.dim

    def propose(self, points, noise):
        new, after = self.push(points, noise)
        return Proposal(new, velocity_correction(noise, after))

    def description(self) -> dict[str, Any]:
        return {"dim": self.dim}

    @classmethod
    def from_description(cls, description):
        return cls(jnp.zeros(()), **description)


def normal_pool() -> Pool:
    """512 draws of N(0, I) on the plane."""
    points = jax.random.normal(jax.random.key(7), (512, 2))
    values = -0.5 * jnp.sum(points**2, axis=1)
    return Pool(points, values, points, {}, (), whitening=Whitening.identity(2))
