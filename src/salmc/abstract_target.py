"""The `Target` contract: an unnormalised log density on R^d, and what else is known about it.

A target must say `dim` and `log_density` of one point. Everything else has a default:

* `log_densities`, `gradients`: the same over a batch of points (what the movers call);
* `minibatch(key)`: a stochastic view of itself, the target itself where there is no data;
* `mean`, `std`, `sample`: the truth, where it is known. Only diagnostics look at it;
* `statistic`: the quantities whose ESS is judged (the coordinates, or a radius);
* `component`, `component_weights`: the modes, where the target has known ones;
* `names`, `constrain`, `annotations`: back to the user's own variables.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from salmc.annotations import NOTHING, Annotations
from salmc.errors import NotDifferentiableError, TargetError
from salmc.truth import KnownTruth, Point, Points, Scalar


class AbstractTarget(KnownTruth):
    """An unnormalised log density on R^d. See the module's text for the contract."""

    dim: eqx.AbstractVar[int]
    name: eqx.AbstractVar[str]

    @abc.abstractmethod
    def log_density(self, x: Point) -> Scalar:
        """log p(x) up to a constant, of one point. −inf where the density is zero."""

    def log_densities(self, points: Points) -> Float[Array, " n"]:
        """log p at each of n points; NaN and +inf count as zero density (−inf)."""
        return zero_where_invalid(jax.vmap(self.log_density)(points))

    def gradients(self, points: Points) -> Points:
        """∇ log p at each of n points."""
        self.require_gradient("this method")
        return jax.vmap(jax.grad(self.log_density))(points)

    @property
    def differentiable(self) -> bool:
        """Whether `gradients` works; False for black boxes."""
        return True

    def require_gradient(self, method: str) -> None:
        """Say clearly that `method` cannot work on a target without a gradient."""
        if not self.differentiable:
            raise no_gradient(method, self.name)

    def minibatch(self, key: PRNGKeyArray) -> "AbstractTarget":
        """A stochastic view of this target; itself where there is no data to subsample."""
        del key
        return self

    @property
    def start(self) -> Points | None:
        """Points that show where to look first, such as draws from the prior; None if unknown."""
        return None

    @property
    def size(self) -> int:
        """Number of data that one evaluation goes over; 0 where there are none."""
        return 0

    @property
    def unbounded(self) -> "AbstractTarget":
        """The same target in coordinates that have no bounds: what movers and kernels see."""
        return self

    @property
    def outer(self) -> "AbstractTarget":
        """The target as the user knows it: what `unbounded` was made of."""
        return self

    def outward(
        self, points: Float[Array, "*n dim"], log_density: Float[Array, "*n"]
    ) -> tuple[Float[Array, "*n dim"], Float[Array, "*n"]]:
        """Points and their log density, as `outer` has them."""
        return points, log_density

    def inward(self, points: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """Points of `outer`, in the coordinates of this target."""
        return points

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return tuple(f"x{i}" for i in range(self.dim))

    def constrain(self, x: Point) -> PyTree:
        """The user's own variables at one point: a dictionary of arrays."""
        return {"x": x}

    @property
    def has_variables(self) -> bool:
        """Whether `constrain` tells more than the coordinates themselves."""
        return type(self).constrain is not AbstractTarget.constrain

    @property
    def annotations(self) -> Annotations:
        """Names of axes, labels and data of the user's own variables."""
        return NOTHING


def zero_where_invalid(log_density: Float[Array, "..."]) -> Float[Array, "..."]:
    """NaN and +inf become −inf, so that one bad value cannot spread to all particles."""
    return jnp.where(log_density < jnp.inf, log_density, -jnp.inf)


def require_scalar(name: str, dim: int, value: Any) -> None:
    """Refuse what a log density returned, or would return, unless it is one number."""
    given = getattr(value, "shape", () if isinstance(value, (int, float)) else None)
    if given != ():
        raise TargetError(
            f"The log density of `{name}` must return a scalar for one point of shape ({dim},). "
            f"Got {type(value).__name__ if given is None else f'shape {given}'} instead."
        )


def no_gradient(method: str, name: str) -> NotDifferentiableError:
    """What is raised where a method asks for a gradient that is not there."""
    return NotDifferentiableError(
        f"{method} needs the gradient of the log density, which the target `{name}` does not "
        "have. Use a gradient-free method such as ag-svgd."
    )
