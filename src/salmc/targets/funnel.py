"""Neal's funnel: the scale of all other coordinates is itself unknown.

    x₀ ~ N(0, s²),   xᵢ | x₀ ~ N(0, exp x₀),   i = 1 … d − 1

    log p(x) = −x₀²/(2s²) − (d − 1) x₀/2 − ½ exp(−x₀) Σᵢ xᵢ² + const

    mean 0,   sd of x₀ is s,   sd of xᵢ is √E[exp x₀] = exp(s²/4)

With Neal's s = 3 the sd of xᵢ is exp(9/4) ≈ 9.49, most of it from rare draws of large x₀: the sd
of a finite sample converges slowly and from below.
Reference: Neal, "Slice sampling", 2003.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.target import AbstractTarget, Point, Points, Scalar


class Funnel(AbstractTarget):
    """Neal's funnel.

    Args:
        dim: number of coordinates, at least 2; the first is the logarithm of the variance.
        scale: s, the sd of the first coordinate.
        name: what tables and folders call it.
    """

    scale: Float[Array, ""]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    can_sample = True

    def __init__(self, dim: int = 10, scale: float = 3.0, *, name: str = "funnel"):
        self.dim = checks.integer("dim", dim, 2)
        self.scale = jnp.asarray(checks.real("scale", scale, above=0.0), dtype=float)
        self.name = name

    def log_density(self, x: Point) -> Scalar:
        log_variance, others = x[0], x[1:]
        prior = -0.5 * (log_variance / self.scale) ** 2
        log_volume = 0.5 * (self.dim - 1) * log_variance
        return prior - log_volume - 0.5 * jnp.sum((others * jnp.exp(-log_variance / 2)) ** 2)

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        z = jax.random.normal(key, (n, self.dim))
        log_variance = self.scale * z[:, :1]
        return jnp.concatenate([log_variance, jnp.exp(log_variance / 2) * z[:, 1:]], axis=1)

    @property
    def mean(self) -> Point:
        return jnp.zeros(self.dim)

    @property
    def std(self) -> Point:
        others = jnp.exp(self.scale**2 / 4)
        return jnp.concatenate([self.scale[None], jnp.full((self.dim - 1,), others)])
