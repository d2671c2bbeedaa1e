"""`Target`: the user's own function as a target; `abstract_target` has the contract."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from salmc import checks
from salmc.abstract_target import (
    AbstractTarget,
    no_gradient,
    require_scalar,
    zero_where_invalid,
)
from salmc.annotations import NOTHING, Annotations
from salmc.black_box import black_box
from salmc.errors import TargetError
from salmc.evaluation import Evaluation
from salmc.truth import Moments, Point, Points, Scalar

__all__ = [
    "AbstractTarget",
    "Moments",
    "Point",
    "Points",
    "Scalar",
    "Target",
    "require_scalar",
    "zero_where_invalid",
]


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

    @classmethod
    def from_pytree(
        cls,
        log_density: Callable[[PyTree], Scalar],
        example: PyTree,
        *,
        constrain: Any = None,
        bounds: Any = None,
        **options: Any,
    ) -> "Target":
        """A target whose parameter is any pytree of arrays, such as a dictionary.

        Args:
            log_density: tree ↦ log p(tree) up to a constant.
            example: a tree of the right structure and shapes; its values do not matter.
            constrain: tree ↦ a dictionary of what you want to see; the tree itself if left out.
            bounds: {leaf: (lower, upper)} of the leaves that have bounds, with None for no bound
                and "a.b" for the leaf b within a; or a pair for each number of the tree.
            options: as for `Target`, but for `dim` and `names`, which follow.
        """
        from salmc.pytrees import flattened

        return cls(**flattened(log_density, example, constrain, bounds, options))

    @classmethod
    def from_numpy(
        cls,
        log_prob: Any,
        dim: int,
        *,
        vectorized: bool = True,
        executor: Any = None,
        **options: Any,
    ) -> "Target":
        """A black box: a NumPy function without a gradient.

        Args:
            log_prob: array (n, dim) ↦ array (n,) of log p up to a constant, called with whole
                batches, once for each step of a method.
            dim: number of coordinates.
            vectorized: False for a function of one point (dim,), as emcee takes it.
            executor: a pool that shares the points of a batch among its workers: anything that
                speaks `concurrent.futures`, or has `apply_async`; see `salmc.evaluation`.
            options: as for `Target`, such as `bounds`.
        """
        evaluate = Evaluation(log_prob, vectorized=vectorized, executor=executor)
        refusal = no_gradient("jax.grad", options.get("name", "target"))
        function = black_box(evaluate, dim, refusal)
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
