"""Kernels simple enough to know everything about, and two that are wrong on purpose."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from salmc.kernels.base import AbstractKernel, AbstractTractableKernel, Proposal


def log_normal(x, mean, scale):
    z = (x - mean) / scale
    constant = x.shape[-1] * (jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi))
    return -0.5 * jnp.sum(z**2, axis=-1) - constant


class Described:
    """Dimension alone fixes the structure; the two numbers are weights."""

    @property
    def noise_dim(self):
        return self.dim

    def description(self):
        return {"dim": self.dim}

    @classmethod
    def from_description(cls, description):
        return cls(description["dim"])


class Autoregressive(Described, AbstractTractableKernel):
    """x' = a x + b ξ: its q is not symmetric, and it has no target of ours as its own."""

    pull: jax.Array
    scale: jax.Array
    dim: int = eqx.field(static=True)
    name: ClassVar[str] = "autoregressive"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, dim, pull=0.0, scale=1.0):
        self.pull, self.scale = jnp.asarray(pull, float), jnp.asarray(scale, float)
        self.dim = dim

    def propose_with_density(self, points, noise):
        new = self.pull * points + self.scale * noise
        return new, self.log_densities(new, points)

    def log_densities(self, new, old):
        return log_normal(new, self.pull * old, self.scale)


class Independent(Described, AbstractTractableKernel):
    """x' = m + b ξ, whatever x is."""

    centre: jax.Array
    scale: jax.Array
    dim: int = eqx.field(static=True)
    name: ClassVar[str] = "independent"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, dim, centre=0.0, scale=1.0):
        self.centre, self.scale = jnp.asarray(centre, float), jnp.asarray(scale, float)
        self.dim = dim

    @property
    def independent(self):
        return True

    def propose_with_density(self, points, noise):
        new = self.centre + self.scale * noise
        return new, self.log_densities(new, points)

    def log_densities(self, new, old):
        return log_normal(new, self.centre, self.scale)


class Mirror(Described, AbstractKernel):
    """x' = −x + b ξ: an involution with noise, exact with r = 1, of which no density is told."""

    scale: jax.Array
    dim: int = eqx.field(static=True)
    name: ClassVar[str] = "mirror"
    explanation: ClassVar[str] = "for tests"
    exact: ClassVar[bool] = True

    def __init__(self, dim, scale=1.0):
        self.scale, self.dim = jnp.asarray(scale, float), dim

    def propose(self, points, noise):
        return Proposal(-points + self.scale * noise, jnp.zeros(len(points)))


class Implicit(Described, AbstractKernel):
    """The autoregressive kernel, with its density kept secret."""

    pull: jax.Array
    scale: jax.Array
    dim: int = eqx.field(static=True)
    name: ClassVar[str] = "implicit"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, dim, pull=0.5, scale=1.0):
        self.pull, self.scale = jnp.asarray(pull, float), jnp.asarray(scale, float)
        self.dim = dim

    def propose(self, points, noise):
        return Proposal(self.pull * points + self.scale * noise, None)


class Claiming(AbstractTractableKernel):
    """Another kernel that claims log q = truth · log q: only 1 is exact.

    The share of truth is an array, so that the honest and the lying share one trace.
    """

    honest: AbstractTractableKernel
    truth: jax.Array
    dim: int = eqx.field(static=True)
    name: ClassVar[str] = "claiming"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, honest, truth):
        self.honest, self.truth, self.dim = honest, jnp.asarray(truth, float), honest.dim

    @property
    def noise_dim(self):
        return self.honest.noise_dim

    @property
    def independent(self):
        return self.honest.independent

    def propose_with_density(self, points, noise):
        new, log_q = self.honest.propose_with_density(points, noise)
        return new, self.truth * log_q

    def log_densities(self, new, old):
        return self.truth * self.honest.log_densities(new, old)

    def description(self):
        return {}

    @classmethod
    def from_description(cls, description):
        raise NotImplementedError


class Breaking(Independent):
    """Every proposal whose first coordinate is above one becomes NaN."""

    def propose_with_density(self, points, noise):
        new, log_q = super().propose_with_density(points, noise)
        return jnp.where(new[:, :1] > 1.0, jnp.nan, new), log_q


EXACT = {"autoregressive": Autoregressive, "independent": Independent, "mirror": Mirror}
SIMPLE = {**EXACT, "implicit": Implicit}
