"""A target in other units: the affine change of any target.

    y = shift + scale · x,   log p_Y(y) = log p_X((y − shift)/scale) − Σᵢ log |scaleᵢ|

    E[Y] = shift + scale · E[X],   sd(Y) = |scale| · sd(X)

A method that claims to serve targets of any location and scale gives the same answer on both.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from salmc import checks
from salmc.annotations import Annotations
from salmc.target import AbstractTarget, Moments, Point, Points, Scalar


class Affine(AbstractTarget):
    """shift + scale · x for x distributed as `target`.

    The judged quantity, the modes and the user's own variables are those of `target` at
    x = (y − shift)/scale, so their known values do not change.

    Args:
        target: any target.
        shift: a number, or an array (dim,).
        scale: a number other than zero, or an array (dim,) of such.
        name: what tables and folders call it; the name of `target` if left out.
    """

    target: AbstractTarget
    shift: Float[Array, " dim"]
    scale: Float[Array, " dim"]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        target: AbstractTarget,
        shift: Any = 0.0,
        scale: Any = 1.0,
        *,
        name: str | None = None,
    ):
        self.target = target
        self.dim = target.dim
        self.shift = _vector("shift", shift, target.dim)
        self.scale = _vector("scale", scale, target.dim)
        if not isinstance(self.scale, jax.core.Tracer) and np.any(np.asarray(self.scale) == 0):
            checks.fail("scale", "other than zero in every coordinate", scale)
        self.name = target.name if name is None else name

    def forward(self, x: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """y = shift + scale · x."""
        return self.shift + self.scale * x

    def inverse(self, y: Float[Array, "*batch dim"]) -> Float[Array, "*batch dim"]:
        """x = (y − shift)/scale."""
        return (y - self.shift) / self.scale

    def log_density(self, x: Point) -> Scalar:
        log_volume = jnp.sum(jnp.log(jnp.abs(self.scale)))
        return self.target.log_density(self.inverse(x)) - log_volume

    @property
    def differentiable(self) -> bool:
        return self.target.differentiable

    def minibatch(self, key: PRNGKeyArray) -> "Affine":
        return eqx.tree_at(lambda self: self.target, self, self.target.minibatch(key))

    @property
    def mean(self) -> Point | None:
        return None if self.target.mean is None else self.forward(self.target.mean)

    @property
    def std(self) -> Point | None:
        return None if self.target.std is None else jnp.abs(self.scale) * self.target.std

    @property
    def can_sample(self) -> bool:
        return self.target.can_sample

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        return self.forward(self.target.sample(key, n))

    @property
    def names(self) -> tuple[str, ...]:
        return self.target.names

    def constrain(self, x: Point) -> PyTree:
        return self.target.constrain(self.inverse(x))

    @property
    def has_variables(self) -> bool:
        return self.target.has_variables

    @property
    def annotations(self) -> Annotations:
        return self.target.annotations

    def statistic(self, points: Points) -> Float[Array, "n k"]:
        return self.target.statistic(self.inverse(points))

    @property
    def statistic_moments(self) -> Moments | None:
        return self.target.statistic_moments

    @property
    def component_weights(self) -> Float[Array, " modes"] | None:
        return self.target.component_weights

    def component(self, points: Points) -> Int[Array, " n"]:
        return self.target.component(self.inverse(points))


def _vector(name: str, value: Any, dim: int) -> Float[Array, " dim"]:
    array = jnp.asarray(checks.real(name, value), dtype=float)
    if array.shape not in ((), (dim,)):
        checks.fail(name, f"a number or an array of shape ({dim},)", f"shape {array.shape}")
    return jnp.broadcast_to(array, (dim,))
