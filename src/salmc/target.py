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
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from salmc import checks
from salmc.annotations import NOTHING, Annotations
from salmc.errors import TargetError
from salmc.target_sources import TargetSources, no_gradient
from salmc.truth import KnownTruth, Moments, Point, Points, Scalar

__all__ = ["AbstractTarget", "Moments", "Point", "Points", "Scalar", "Target"]


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


class Target(TargetSources, AbstractTarget):
    """A target made of the user's own JAX function of one point.

    Args:
        log_density: x of shape (dim,) ↦ log p(x) up to a constant, a scalar.
        dim: number of coordinates.
        name: what tables and folders call it.
        names: a name for each coordinate.
        mean, std: the truth where it is known; used by diagnostics only.
        sample: (key, n) ↦ n exact draws of shape (n, dim); used by diagnostics only.
        constrain: x ↦ a dictionary of the user's own variables.
        bounds: a pair (lower, upper) for each coordinate, with None for no bound. The density is
            zero outside; inside, sampling goes on in coordinates without bounds (`salmc.bounds`),
            and whatever comes out is in yours.
        start: points (n, dim) that show where to look first: guesses, or draws from the prior.
        annotations: names of axes, labels and data; `labelled` adds to them.

    Example:
        >>> import jax.numpy as jnp, salmc
        >>> target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
        >>> float(target.log_density(jnp.ones(2)))
        -1.0
    """

    function: Callable[[Point], Scalar]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    _differentiable: bool = eqx.field(static=True)
    _names: tuple[str, ...] = eqx.field(static=True)
    _mean: Point | None
    _std: Point | None
    _sample: Callable[..., Any] | None
    _constrain: Callable[..., Any] | None
    _bounds: Any
    _start: Points | None
    _annotations: Annotations

    def __init__(
        self,
        log_density: Callable[[Point], Scalar],
        dim: int,
        *,
        name: str = "target",
        names: Sequence[str] | None = None,
        mean: Any = None,
        std: Any = None,
        sample: Callable[..., Any] | None = None,
        constrain: Callable[..., Any] | None = None,
        bounds: Any = None,
        start: Any = None,
        differentiable: bool = True,
        annotations: Annotations = NOTHING,
    ):
        if not callable(log_density):
            checks.fail("log_density", "a function of one point", log_density)
        self.function = log_density
        self.dim = checks.integer("dim", dim, 1)
        self.name = name
        self._differentiable = differentiable
        self._names = tuple(names) if names is not None else tuple(f"x{i}" for i in range(dim))
        if len(self._names) != dim:
            checks.fail("names", f"{dim} names, one for each coordinate", names)
        self._mean = None if mean is None else jnp.asarray(checks.array("mean", mean), dtype=float)
        self._std = None if std is None else jnp.asarray(checks.array("std", std), dtype=float)
        for label, value in (("mean", self._mean), ("std", self._std)):
            if value is not None and value.shape != (dim,):
                checks.fail(label, f"an array of shape ({dim},)", value)
        self._sample = sample
        self._constrain = constrain
        self._annotations = annotations
        self._bounds = self._start = None
        if bounds is not None:
            from salmc.bounds import Bounds

            self._bounds = Bounds.of(bounds, dim)
        if start is not None:
            self._start = jnp.atleast_2d(jnp.asarray(checks.array("start", start), dtype=float))
            if self._start.shape[1:] != (dim,) or not np.all(np.isfinite(self._start)):
                checks.fail("start", f"finite points, an array (n, {dim})", self._start.shape)

    def log_density(self, x: Point) -> Scalar:
        value = self.function(x)  # its shape is known while tracing, so the check costs nothing
        require_scalar(self.name, self.dim, value)
        value = jnp.asarray(value, dtype=jnp.result_type(value, x))
        return (
            value if self._bounds is None else jnp.where(self._bounds.contain(x), value, -jnp.inf)
        )

    @property
    def unbounded(self) -> AbstractTarget:
        if self._bounds is None:
            return self
        from salmc.bounds import Unbounded

        return Unbounded(self, self._bounds)

    @property
    def start(self) -> Points | None:
        return self._start

    @property
    def differentiable(self) -> bool:
        return self._differentiable

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    @property
    def mean(self) -> Point | None:
        return self._mean

    @property
    def std(self) -> Point | None:
        return self._std

    @property
    def can_sample(self) -> bool:
        return self._sample is not None

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        if self._sample is None:
            return super().sample(key, n)
        points = jnp.asarray(self._sample(key, n), dtype=float)
        if points.shape != (n, self.dim):
            raise TargetError(
                f"The exact draws of `{self.name}` must have shape ({n}, {self.dim}). "
                f"Got {points.shape} instead."
            )
        return points

    def constrain(self, x: Point) -> PyTree:
        return {"x": x} if self._constrain is None else self._constrain(x)

    @property
    def has_variables(self) -> bool:
        return self._constrain is not None

    @property
    def annotations(self) -> Annotations:
        return self._annotations

    def labelled(self, *, dims: Any = None, coords: Any = None) -> "Target":
        """The same target with names for the axes of its variables, and labels along them.

        Args:
            dims: of a variable, the names of its axes: {"theta": ["school"]}.
            coords: of an axis, the labels along it: {"school": ["Choate", …]}.
        """
        found = self._annotations.labelled(dims, coords)
        return eqx.tree_at(lambda target: target._annotations, self, found)


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
