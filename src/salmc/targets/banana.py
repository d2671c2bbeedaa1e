"""The banana: a Gaussian bent along a parabola, as in Rosenbrock's function.

    x₁ ~ N(0, a²),   x₂ | x₁ ~ N(b x₁², s²)

    log p(x) = −x₁²/(2a²) − (x₂ − b x₁²)²/(2s²) + const

    mean (0, b a²),   variances (a², s² + 2 b² a⁴)   since Var(x₁²) = 2a⁴

The bend has unit Jacobian, so draws are exact: two normals and one parabola.
Reference: Haario, Saksman and Tamminen, "Adaptive proposal distribution for random walk
Metropolis algorithm", 1999.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.target import AbstractTarget, Point, Points, Scalar


class Banana(AbstractTarget):
    """A bent Gaussian on the plane.

    Args:
        scale: a, the sd of the first coordinate.
        curvature: b, how much the second coordinate follows the square of the first.
        thickness: s, the sd of the second coordinate given the first.
        name: what tables and folders call it.
    """

    scale: Float[Array, ""]
    curvature: Float[Array, ""]
    thickness: Float[Array, ""]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    can_sample = True

    def __init__(
        self,
        scale: float = 2.0,
        curvature: float = 0.5,
        thickness: float = 0.5,
        *,
        name: str = "banana",
    ):
        self.scale = jnp.asarray(checks.real("scale", scale, above=0.0), dtype=float)
        self.curvature = jnp.asarray(checks.real("curvature", curvature), dtype=float)
        self.thickness = jnp.asarray(checks.real("thickness", thickness, above=0.0), dtype=float)
        self.dim = 2
        self.name = name

    def log_density(self, x: Point) -> Scalar:
        along = x[0] / self.scale
        across = (x[1] - self.curvature * x[0] ** 2) / self.thickness
        return -0.5 * (along**2 + across**2)

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        z = jax.random.normal(key, (n, 2))
        first = self.scale * z[:, 0]
        second = self.curvature * first**2 + self.thickness * z[:, 1]
        return jnp.stack([first, second], axis=1)

    @property
    def mean(self) -> Point:
        return jnp.stack([jnp.zeros(()), self.curvature * self.scale**2])

    @property
    def std(self) -> Point:
        second = jnp.sqrt(self.thickness**2 + 2 * self.curvature**2 * self.scale**4)
        return jnp.stack([self.scale, second])
