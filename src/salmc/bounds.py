"""Other coordinates for a target: all of R^d is allowed there, and funnels are straight.

Bounds go by a smooth map of each coordinate,

    a < x         x = a + eʸ                 dx/dy = eʸ
    x < b         x = b − eʸ                 dx/dy = eʸ
    a < x < b     x = a + (b − a) σ(y)       dx/dy = (b − a) σ(y) σ(−y)
    elsewhere     x = y

    log p_Y(y) = log p_X(x(y)) + Σ log |dx/dy|

and before them come the maps that straighten funnels (`straight`), where a pool showed any. Movers
and kernels know y alone; `outward` undoes the maps for all that people see.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc import checks
from salmc.programs import compiled, on_device
from salmc.straight import Straight
from salmc.target import AbstractTarget, Point, Points, Scalar, zero_where_invalid

_INSIDE = 1e-6
"""Points on an edge at 0 are taken to lie this share of the way inside, where y is finite."""


class Bounds(eqx.Module):
    """A lower and an upper bound of each coordinate; −inf and inf where there is none."""

    lower: Float[Array, " dim"]
    upper: Float[Array, " dim"]

    @classmethod
    def of(cls, bounds: Any, dim: int) -> "Bounds":
        """From `dim` pairs (lower, upper), in which None stands for no bound.

        Raises:
            ArgumentError: if they are not such pairs, or none lies between two of them.
        """
        expectation = f"{dim} pairs (lower, upper), with None for no bound"
        try:
            pairs = [tuple(pair) for pair in bounds]
            limits = [
                (-np.inf if low is None else float(low), np.inf if high is None else float(high))
                for low, high in pairs
            ]
        except (TypeError, ValueError):
            checks.fail("bounds", expectation, bounds)
        if len(limits) != dim:
            checks.fail("bounds", expectation, bounds)
        lower, upper = np.array(limits).T
        if not np.all(lower < upper):
            checks.fail("bounds", "such that each lower one is below its upper one", bounds)
        return cls(on_device(lower), on_device(upper))

    @classmethod
    def none(cls, dim: int) -> "Bounds":
        """All of R^d."""
        return cls(jnp.full(dim, -jnp.inf, dtype=float), jnp.full(dim, jnp.inf, dtype=float))

    def contain(self, x: Float[Array, "*n dim"]) -> Bool[Array, "*n"]:
        """Whether points lie within, edges excluded."""
        return jnp.all((x > self.lower) & (x < self.upper), axis=-1)

    @compiled
    def outward(self, y: Float[Array, "*n dim"]) -> tuple[Array, Array]:
        """x, and Σ log |dx/dy|."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        low, high = jnp.where(below, self.lower, 0.0), jnp.where(above, self.upper, 1.0)
        both = below & above
        width = jnp.where(both, high - low, 1.0)
        # From the nearer edge: a + (b − a) σ(y) would lose all digits near a b that is far from 0.
        share = jax.nn.sigmoid(-jnp.abs(y))
        inner = jnp.where(y < 0, low + width * share, high - width * share)
        free = ~below & ~above
        # Not of coordinates that need it not: beyond 88 it is infinite, and so is its slope.
        growth = jnp.exp(jnp.where(both | free, 0.0, y))
        x = jnp.where(both, inner, jnp.where(below, low + growth, high - growth))
        log_slope = jnp.where(both, jnp.log(width) + _log_logistic(y), y)
        return jnp.where(free, y, x), jnp.sum(jnp.where(free, 0.0, log_slope), axis=-1)

    @compiled
    def inward(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """y, of points within."""
        below, above = jnp.isfinite(self.lower), jnp.isfinite(self.upper)
        low, high = jnp.where(below, self.lower, 0.0), jnp.where(above, self.upper, 1.0)
        width = jnp.where(below & above, high - low, 1.0)
        from_low = jnp.where(x > low, x - low, _beside(low, width))
        from_high = jnp.where(x < high, high - x, _beside(high, width))
        y = jnp.where(
            below & above,
            jnp.log(from_low) - jnp.log(from_high),
            jnp.where(below, jnp.log(from_low), jnp.log(from_high)),
        )
        return jnp.where(~below & ~above, x, y)


def _beside(edge: Float[Array, " dim"], width: Float[Array, " dim"]) -> Float[Array, " dim"]:
    """How far inside points on an edge are taken to lie: as near as rounds to it, if anything does.

    What is not on the edge stays where it is, however near: a scale may be 10⁻⁹.
    """
    rounding = 0.25 * jnp.finfo(edge.dtype).eps * jnp.abs(edge)
    return jnp.where(edge == 0.0, _INSIDE * width, jnp.minimum(rounding, _INSIDE * width))


class Unbounded(AbstractTarget):
    """A target in the coordinates y, in which nothing is bounded, and funnels may be straight."""

    inner: AbstractTarget
    """As the user knows it."""
    bounds: Bounds
    straight: Straight | None
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(self, outer: AbstractTarget, bounds: Bounds, straight: Straight | None = None):
        self.inner, self.bounds, self.straight = outer, bounds, straight
        self.dim, self.name = outer.dim, outer.name

    @classmethod
    def with_straight(cls, target: AbstractTarget, straight: Straight) -> "Unbounded":
        """A target, bounded or not, in coordinates in which its funnels are straight."""
        bounds = target.bounds if isinstance(target, Unbounded) else Bounds.none(target.dim)
        return cls(target.outer, bounds, straight)

    @property
    def outer(self) -> AbstractTarget:
        return self.inner

    def log_density(self, x: Point) -> Scalar:
        inside, log_slope, kept = self._outward(x)
        return jnp.where(kept, self.outer.log_density(inside) + log_slope, -jnp.inf)

    def log_densities(self, points: Points) -> Float[Array, " n"]:
        inside, log_slope, kept = self._outward(points)
        found = zero_where_invalid(self.outer.log_densities(inside) + log_slope)
        return jnp.where(kept, found, -jnp.inf)

    @property
    def size(self) -> int:
        return self.outer.size

    @property
    def differentiable(self) -> bool:
        return self.outer.differentiable

    def minibatch(self, key: PRNGKeyArray) -> "Unbounded":
        return Unbounded(self.outer.minibatch(key), self.bounds, self.straight)

    @property
    def start(self) -> Points | None:
        return None if self.outer.start is None else self.inward(self.outer.start)

    @property
    def names(self) -> tuple[str, ...]:
        return self.outer.names

    def outward(
        self, points: Float[Array, "*n dim"], log_density: Float[Array, "*n"]
    ) -> tuple[Float[Array, "*n dim"], Float[Array, "*n"]]:
        inside, log_slope, _ = self._outward(points)
        return inside, log_density - log_slope

    def inward(self, points: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        points = self.bounds.inward(points)
        return points if self.straight is None else self.straight.inward(points)

    def _outward(self, y: Float[Array, "*n dim"]) -> tuple[Array, Array, Array | bool]:
        """x, log |∂x/∂y|, and whether x can be told from its neighbours."""
        if self.straight is None:
            return *self.bounds.outward(y), True
        y, log_slope, kept = self.straight.outward(y)
        x, more = self.bounds.outward(y)
        return x, log_slope + more, kept


def _log_logistic(y: Float[Array, "..."]) -> Float[Array, "..."]:
    """log σ(y) σ(−y)."""
    return -jnp.abs(y) - 2.0 * jnp.log1p(jnp.exp(-jnp.abs(y)))
