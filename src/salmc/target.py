"""The `Target` contract: an unnormalised log density on R^d, and what else is known about it.

A target must say `dim` and `log_density` of one point. Everything else has a default:

* `log_densities`, `gradients`: the same over a batch of points (what the movers call);
* `minibatch(key)`: a stochastic view of itself, the target itself where there is no data;
* `mean`, `std`, `sample`: the truth, where it is known. Only diagnostics look at it;
* `statistic`: the quantities whose ESS is judged (the coordinates, or a radius);
* `component`, `component_weights`: the modes, where the target has known ones;
* `names`, `constrain`: back to the user's own variables.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from salmc import checks
from salmc.black_box import black_box
from salmc.errors import NotDifferentiableError, TargetError

Point = Float[Array, " dim"]
Points = Float[Array, "n dim"]
Scalar = Float[Array, ""]


class Moments(NamedTuple):
    """Known mean and standard deviation of each judged quantity."""

    mean: Float[Array, " k"]
    std: Float[Array, " k"]


class AbstractTarget(eqx.Module):
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
            raise _no_gradient(method, self.name)

    def minibatch(self, key: PRNGKeyArray) -> "AbstractTarget":
        """A stochastic view of this target; itself where there is no data to subsample."""
        del key
        return self

    @property
    def mean(self) -> Point | None:
        """The true mean, or None where it is not known."""
        return None

    @property
    def std(self) -> Point | None:
        """The true standard deviation of each coordinate, or None where it is not known."""
        return None

    @property
    def can_sample(self) -> bool:
        """Whether `sample` gives exact draws."""
        return False

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        """n exact draws, for diagnostics only."""
        del key, n
        raise TargetError(f"The target `{self.name}` has no exact draws; `can_sample` tells.")

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""
        return tuple(f"x{i}" for i in range(self.dim))

    def constrain(self, x: Point) -> PyTree:
        """The user's own variables at one point: a dictionary of arrays."""
        return {"x": x}

    def statistic(self, points: Points) -> Float[Array, "n k"]:
        """The quantities on which ESS is measured: the coordinates unless stated otherwise."""
        return points

    @property
    def statistic_moments(self) -> Moments | None:
        """True mean and standard deviation of `statistic`, or None where they are not known."""
        if self.mean is None or self.std is None:
            return None
        return Moments(self.mean, self.std)

    @property
    def component_weights(self) -> Float[Array, " modes"] | None:
        """True weight of each mode, or None for a target without labelled modes."""
        return None

    def component(self, points: Points) -> Int[Array, " n"]:
        """The mode each point belongs to."""
        del points
        raise TargetError(f"The target `{self.name}` has no labelled modes.")


class Target(AbstractTarget):
    """A target made of the user's own JAX function of one point.

    Args:
        log_density: x of shape (dim,) ↦ log p(x) up to a constant, a scalar.
        dim: number of coordinates.
        name: what tables and folders call it.
        names: a name for each coordinate.
        mean, std: the truth where it is known; used by diagnostics only.
        sample: (key, n) ↦ n exact draws of shape (n, dim); used by diagnostics only.
        constrain: x ↦ a dictionary of the user's own variables.

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
        differentiable: bool = True,
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
        self._mean = None if mean is None else jnp.asarray(mean, dtype=float)
        self._std = None if std is None else jnp.asarray(std, dtype=float)
        for label, value in (("mean", self._mean), ("std", self._std)):
            if value is not None and value.shape != (dim,):
                checks.fail(label, f"an array of shape ({dim},)", value)
        self._sample = sample
        self._constrain = constrain

    def log_density(self, x: Point) -> Scalar:
        value = self.function(x)  # its shape is known while tracing, so the check costs nothing
        require_scalar(self.name, self.dim, value)
        return jnp.asarray(value, dtype=jnp.result_type(value, x))

    @classmethod
    def from_pytree(
        cls, log_density: Callable[[PyTree], Scalar], example: PyTree, **options: Any
    ) -> "Target":
        """A target whose parameter is any pytree of arrays, such as a dictionary.

        Args:
            log_density: tree ↦ log p(tree) up to a constant.
            example: a tree of the right structure and shapes; its values do not matter.
            options: as for `Target`, but for `dim`, `names` and `constrain`, which follow.
        """
        for taken in {"dim", "names", "constrain"} & options.keys():
            checks.fail(taken, "left out: `from_pytree` finds it from `example`", options[taken])
        try:
            example = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), example)
        except (TypeError, ValueError):
            checks.fail("example", "a tree of numbers and arrays", example)
        flat, unravel = jax.flatten_util.ravel_pytree(example)
        if flat.size == 0:
            checks.fail("example", "a tree that holds at least one number", example)
        return cls(
            lambda x: log_density(unravel(x)),
            dim=flat.size,
            names=_leaf_names(example),
            constrain=unravel,
            **options,
        )

    @classmethod
    def from_numpy(
        cls, log_densities: Callable[[np.ndarray], np.ndarray], dim: int, **options: Any
    ) -> "Target":
        """A black box: a NumPy function of a batch of points, with no gradient.

        Args:
            log_densities: array (n, dim) ↦ array (n,) of log p up to a constant. It is called
                with whole batches, once for each step of a method.
            dim: number of coordinates.
            options: as for `Target`.
        """

        function = black_box(
            log_densities, dim, _no_gradient("jax.grad", options.get("name", "target"))
        )
        return cls(function, dim, **{**options, "differentiable": False})

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


def _no_gradient(method: str, name: str) -> NotDifferentiableError:
    return NotDifferentiableError(
        f"{method} needs the gradient of the log density, which the target `{name}` does not "
        "have. Use a gradient-free method such as ag-svgd."
    )


def _leaf_names(example: PyTree) -> tuple[str, ...]:
    """ "weights[0, 1]" and the like, in the order of the flattened tree."""
    names: list[str] = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(example):
        stem = jax.tree_util.keystr(path, simple=True, separator=".") or "x"
        indices = np.ndindex(leaf.shape)
        names += [f"{stem}[{', '.join(map(str, i))}]" if i else stem for i in indices]
    return tuple(names)
