"""Kernels simple enough to know everything about, and two that are wrong on purpose."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from salmc.kernels.base import AbstractKernel, AbstractTractableKernel


def log_normal(x, mean, scale):
    z = (x - mean) / scale
    return -0.5 * jnp.sum(z**2) - x.size * (jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi))


class Described:
    """Dimension alone fixes the structure; the two numbers are weights."""

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
    looks_at_state: bool = eqx.field(static=True)
    name: ClassVar[str] = "autoregressive"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, dim, pull=0.0, scale=1.0):
        self.pull, self.scale = jnp.asarray(pull, float), jnp.asarray(scale, float)
        self.dim, self.looks_at_state = dim, True

    def propose(self, key, x):
        return self.pull * x + self.scale * jax.random.normal(key, x.shape)

    def log_density(self, x_new, x):
        return log_normal(x_new, self.pull * x, self.scale)


class Independent(Described, AbstractTractableKernel):
    """x' = m + b ξ, whatever x is."""

    centre: jax.Array
    scale: jax.Array
    dim: int = eqx.field(static=True)
    looks_at_state: bool = eqx.field(static=True)
    name: ClassVar[str] = "independent"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, dim, centre=0.0, scale=1.0):
        self.centre, self.scale = jnp.asarray(centre, float), jnp.asarray(scale, float)
        self.dim, self.looks_at_state = dim, False

    def propose(self, key, x):
        return self.centre + self.scale * jax.random.normal(key, x.shape)

    def log_density(self, x_new, x):
        return log_normal(x_new, self.centre, self.scale)


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

    def propose(self, key, x):
        return self.pull * x + self.scale * jax.random.normal(key, x.shape)


class Claiming(AbstractTractableKernel):
    """Another kernel that claims log q = truth · log q: only 1 is exact.

    The share of truth is an array, so that the honest and the lying share one trace.
    """

    honest: AbstractTractableKernel
    truth: jax.Array
    dim: int = eqx.field(static=True)
    looks_at_state: bool = eqx.field(static=True)
    name: ClassVar[str] = "claiming"
    explanation: ClassVar[str] = "for tests"

    def __init__(self, honest, truth):
        self.honest, self.truth = honest, jnp.asarray(truth, float)
        self.dim, self.looks_at_state = honest.dim, honest.looks_at_state

    def propose(self, key, x):
        return self.honest.propose(key, x)

    def log_density(self, x_new, x):
        return self.truth * self.honest.log_density(x_new, x)

    def description(self):
        return {}

    @classmethod
    def from_description(cls, description):
        raise NotImplementedError


class Breaking(Independent):
    """Every proposal whose first coordinate is above one becomes NaN."""

    def propose(self, key, x):
        new = super().propose(key, x)
        return jnp.where(new[0] > 1.0, jnp.nan, new)


TRACTABLE = {"autoregressive": Autoregressive, "independent": Independent}
SIMPLE = {**TRACTABLE, "implicit": Implicit}
