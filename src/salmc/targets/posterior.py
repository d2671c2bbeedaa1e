"""A Bayesian posterior, with minibatches of its data.

    log p(x) = log prior(x) + Σᵢ log likelihood(datumᵢ | x),   i = 1 … N

A minibatch S of n data, drawn without replacement, gives an unbiased view of it and of its
gradient, the ∇Ũ in eq. 1 of the paper:

    log p̃(x) = log prior(x) + N/n · Σ_{i ∈ S} log likelihood(datumᵢ | x)

Sums at many points go over the data in chunks: memory does not grow with the number of data.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from salmc import checks
from salmc.errors import TargetError
from salmc.target import AbstractTarget, Point, Points, Scalar, zero_where_invalid
from salmc.targets.sums import sum_over_chunks


class Posterior(AbstractTarget):
    """log prior + Σ log likelihood over data.

    Args:
        log_prior: x of shape (dim,) ↦ log prior up to a constant, a scalar.
        log_likelihood: (x, datum) ↦ log likelihood of *one* datum, a scalar. It is vectorised
            over the data here. A datum has the structure of `data` without the leading axis.
        data: an array, or a tree of arrays such as `{"features": (N, k), "labels": (N,)}`, with
            a common leading axis of length N.
        dim: number of coordinates of x.
        batch_size: how many data a minibatch holds; without it `minibatch` gives all of them.
        name: what tables and folders call it.
        names: a name for each coordinate.

    Example:
        >>> import jax.numpy as jnp
        >>> from salmc.targets import Posterior
        >>> data = jnp.array([1.0, 2.0, 3.0])
        >>> target = Posterior(
        ...     lambda x: -0.5 * jnp.sum(x**2), lambda x, y: -0.5 * (y - x[0]) ** 2, data, dim=1
        ... )
        >>> float(target.log_density(jnp.zeros(1)))
        -7.0
    """

    log_prior: Callable[..., Any]
    log_likelihood: Callable[..., Any]
    data: PyTree
    weight: Float[Array, ""]
    """N/n: how many data each datum held here stands for."""
    dim: int = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True)
    _names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        log_prior: Callable[..., Any],
        log_likelihood: Callable[..., Any],
        data: PyTree,
        *,
        dim: int,
        batch_size: int | None = None,
        name: str = "posterior",
        names: Sequence[str] | None = None,
    ):
        for label, function in (("log_prior", log_prior), ("log_likelihood", log_likelihood)):
            if not callable(function):
                checks.fail(label, "a function", function)
        self.log_prior = log_prior
        self.log_likelihood = log_likelihood
        self.data = _checked_data(data)
        self.weight = jnp.ones(())
        self.dim = checks.integer("dim", dim, 1)
        self.name = name
        self._names = tuple(f"x{i}" for i in range(dim)) if names is None else tuple(names)
        if len(self._names) != dim:
            checks.fail("names", f"{dim} names, one for each coordinate", names)
        self.batch_size = batch_size
        if batch_size is not None and checks.integer("batch_size", batch_size, 1) > self.size:
            checks.fail("batch_size", f"at most the number of data, {self.size}", batch_size)
        self._check_scalars()

    @property
    def size(self) -> int:
        """The number of data held: N, or n in a minibatch."""
        return jax.tree.leaves(self.data)[0].shape[0]

    def log_density(self, x: Point) -> Scalar:
        likelihoods = jax.vmap(self.log_likelihood, in_axes=(None, 0))(x, self.data)
        return self.log_prior(x) + self.weight * jnp.sum(likelihoods)

    def log_densities(self, points: Points) -> Float[Array, " n"]:
        def part(data: PyTree) -> Array:
            each = jax.vmap(self.log_likelihood, in_axes=(None, 0))
            return jnp.sum(jax.vmap(each, in_axes=(0, None))(points, data), axis=1)

        likelihood = self.weight * sum_over_chunks(part, self.data, len(points))
        return zero_where_invalid(jax.vmap(self.log_prior)(points) + likelihood)

    def gradients(self, points: Points) -> Points:
        def part(data: PyTree) -> Array:
            def likelihood(x: Point) -> Scalar:
                return jnp.sum(jax.vmap(self.log_likelihood, in_axes=(None, 0))(x, data))

            return jax.vmap(jax.grad(likelihood))(points)

        slope = sum_over_chunks(part, self.data, len(points))
        return jax.vmap(jax.grad(self.log_prior))(points) + self.weight * slope

    def minibatch(self, key: PRNGKeyArray) -> "Posterior":
        if self.batch_size is None or self.batch_size == self.size:
            return self
        chosen = random_subset(key, self.size, self.batch_size)
        batch = jax.tree.map(lambda leaf: leaf[chosen], self.data)
        weight = self.weight * (self.size / self.batch_size)
        return eqx.tree_at(lambda self: (self.data, self.weight), self, (batch, weight))

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def _check_scalars(self) -> None:
        """Meet at the door a likelihood of all data at once, which would be summed wrongly."""
        x = jax.ShapeDtypeStruct((self.dim,), jnp.zeros(()).dtype)
        datum = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.data
        )
        for label, value, of in (
            ("log_prior", jax.eval_shape(self.log_prior, x), "of one point"),
            ("log_likelihood", jax.eval_shape(self.log_likelihood, x, datum), "of one datum"),
        ):
            shape = getattr(value, "shape", None)
            if shape != ():
                raise TargetError(
                    f"The `{label}` of `{self.name}` must return a scalar, the log density {of}. "
                    f"Got {type(value).__name__ if shape is None else f'shape {shape}'} instead."
                )


def random_subset(key: PRNGKeyArray, total: int, size: int) -> Int[Array, " size"]:
    """A uniformly random subset of {0, …, total − 1}, without replacement, by Floyd's algorithm.

    For j = total − size … total − 1 draw t uniformly from {0, …, j} and take t, or j where t is
    taken already. It costs size² comparisons however large `total` is; a random permutation
    would sort all the data at every step.
    """
    first = total - size
    candidates = jax.random.randint(key, (size,), 0, jnp.arange(first, total) + 1)

    def take(i: Array, chosen: Int[Array, " size"]) -> Int[Array, " size"]:
        is_taken = jnp.any(chosen == candidates[i])
        return chosen.at[i].set(jnp.where(is_taken, first + i, candidates[i]))

    return jax.lax.fori_loop(0, size, take, jnp.full((size,), -1, dtype=candidates.dtype))


def _checked_data(data: PyTree) -> PyTree:
    try:
        arrays = jax.tree.map(jnp.asarray, data)
    except (TypeError, ValueError):
        checks.fail("data", "a tree of arrays", type(data).__name__)
    shapes = [leaf.shape for leaf in jax.tree.leaves(arrays)]
    lengths = {shape[0] if shape else 0 for shape in shapes}
    if len(lengths) != 1 or lengths == {0}:
        checks.fail("data", "arrays with a common leading axis, one entry for each datum", shapes)
    return arrays
