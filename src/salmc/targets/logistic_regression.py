"""Bayesian logistic regression, the posteriors of the paper's second table.

    log p(w) = −|w|²/(2s²) + Σᵢ log σ(tᵢ w·zᵢ),   tᵢ = ±1 for labels 1 and 0,   i = 1 … N

zᵢ holds the standardised features of row i and, last, a 1 for the bias; all weights have the prior
N(0, s²), s = 1 in the paper. The rows tᵢ zᵢ are kept as one matrix A, so that the values at n
points cost one product and the gradients one more:

    log p = −|w|²/(2s²) − Σᵢ softplus(−(A w)ᵢ),   ∇ log p = −w/s² + Aᵀ σ(−A w)

A minibatch takes some rows and weighs them by N/n: an unbiased view, as in `Posterior`. Sums over
many data at many points go over the data in chunks: memory does not grow with their number.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc import checks
from salmc.datasets import tables
from salmc.datasets.tables import Standardisation
from salmc.target import AbstractTarget, Point, Points, Scalar, zero_where_invalid
from salmc.targets.posterior import random_subset
from salmc.targets.sums import sum_over_chunks

BATCH_SIZE = 64
"""Data in a minibatch, as in the paper."""


class LogisticRegression(AbstractTarget):
    """The posterior of the weights of a logistic regression, the bias last.

    Args:
        features: (N, k), raw; they are standardised here with their own mean and sd (ddof 0).
        labels: (N,), 0 or 1.
        prior_scale: s, the sd of the normal prior on every weight and the bias.
        batch_size: data in a minibatch, fewer if there are fewer; None for all of them.
        name: what tables and folders call it.
        feature_names: k names for the weights; x1 … xk where there are none.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> target = LogisticRegression(np.array([[0.0], [2.0]]), np.array([0, 1]))
        >>> target.dim, target.names
        (2, ('x1', 'bias'))
        >>> round(float(target.log_density(jnp.zeros(2))), 4)  # 2 log ½
        -1.3863
    """

    signed_rows: Float[Array, "N dim"]
    """A: each standardised row and its 1, times −1 where the label is 0."""
    weight: Float[Array, ""]
    """N/n: how many data each row held here stands for."""
    prior_scale: Float[Array, ""]
    feature_mean: Float[Array, " k"]
    feature_std: Float[Array, " k"]
    dim: int = eqx.field(static=True)
    batch_size: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True)
    _names: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        features: Any,
        labels: Any,
        *,
        prior_scale: float = 1.0,
        batch_size: int | None = BATCH_SIZE,
        name: str = "logistic-regression",
        feature_names: Sequence[str] | None = None,
    ):
        values, classes = _checked_data(features, labels)
        rows, columns = values.shape
        standardisation = Standardisation.of(values)
        design = _with_bias(standardisation.apply(values))
        self.signed_rows = jnp.asarray((2.0 * classes - 1.0)[:, None] * design)
        self.weight = jnp.ones(())
        self.prior_scale = jnp.asarray(
            checks.real("prior_scale", prior_scale, above=0.0), dtype=float
        )
        self.feature_mean = jnp.asarray(standardisation.mean)
        self.feature_std = jnp.asarray(standardisation.std)
        self.dim = columns + 1
        if batch_size is not None:
            batch_size = min(checks.integer("batch_size", batch_size, 1), rows)
        self.batch_size = batch_size
        self.name = name
        if feature_names is None:
            feature_names = [f"x{i}" for i in range(1, columns + 1)]
        if len(feature_names) != columns:
            checks.fail("feature_names", f"{columns} names, one for each feature", feature_names)
        self._names = (*feature_names, "bias")

    @classmethod
    def of_table(
        cls, table: tables.Table, *, name: str | None = None, **options: Any
    ) -> "LogisticRegression":
        """The posterior given a table; `options` as for the class."""
        return cls(
            table.features,
            table.labels,
            name=table.name if name is None else name,
            feature_names=table.feature_names,
            **options,
        )

    @classmethod
    def split(
        cls, name: str, seed: int, share: float = 0.8, **options: Any
    ) -> tuple["LogisticRegression", Float[np.ndarray, "n k"], Int[np.ndarray, " n"]]:
        """The posterior given a random `share` of a data set, and the rest to predict.

        Args:
            name: "heart", "australian" or "german".
            seed: which split; the same seed gives the same one.
            share: the part of the rows to train on.
            options: as for the class.

        Returns:
            The target of the training rows, the raw features of the test rows and their labels.
            `predict` standardises with the moments of the training rows: nothing of the test
            rows enters the posterior.
        """
        training, test = tables.split(tables.load(name), seed, share)
        # One name for all splits: what is compiled for one of them then serves the others.
        target = cls.of_table(training, name=f"{name}-split", **options)
        return target, test.features, test.labels

    @property
    def size(self) -> int:
        """The number of data held: N, or n in a minibatch."""
        return self.signed_rows.shape[0]

    def log_density(self, x: Point) -> Scalar:
        likelihood = -self.weight * jnp.sum(_softplus(-(self.signed_rows @ x)))
        return likelihood - 0.5 * jnp.sum((x / self.prior_scale) ** 2)

    def log_densities(self, points: Points) -> Float[Array, " n"]:
        def part(rows: Array) -> Array:
            return jnp.sum(_softplus(-(points @ rows.T)), axis=1)

        likelihood = -self.weight * sum_over_chunks(part, self.signed_rows, len(points))
        prior = -0.5 * jnp.sum((points / self.prior_scale) ** 2, axis=1)
        return zero_where_invalid(likelihood + prior)

    def gradients(self, points: Points) -> Points:
        def part(rows: Array) -> Array:
            return _sigmoid(-(points @ rows.T)) @ rows

        slope = sum_over_chunks(part, self.signed_rows, len(points))
        return self.weight * slope - points / self.prior_scale**2

    def minibatch(self, key: PRNGKeyArray) -> "LogisticRegression":
        if self.batch_size is None or self.batch_size == self.size:
            return self
        rows = self.signed_rows[random_subset(key, self.size, self.batch_size)]
        weight = self.weight * (self.size / self.batch_size)
        return eqx.tree_at(lambda self: (self.signed_rows, self.weight), self, (rows, weight))

    def predict(self, x: Points, features: Any) -> Float[Array, "n rows"]:
        """The probability of label 1 for each raw row of features, at each of n points."""
        rows = jnp.asarray(features, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != self.dim - 1:
            checks.fail("features", f"an array (rows, {self.dim - 1})", f"shape {rows.shape}")
        design = (rows - self.feature_mean) / self.feature_std
        return jax.nn.sigmoid(x[:, :-1] @ design.T + x[:, -1:])

    @property
    def names(self) -> tuple[str, ...]:
        return self._names


def Heart() -> LogisticRegression:  # noqa: N802, named as the target it makes
    """Statlog Heart, 270 rows, 13 features: is there heart disease?"""
    return LogisticRegression.of_table(tables.load("heart"))


def Australian() -> LogisticRegression:  # noqa: N802, named as the target it makes
    """Statlog Australian credit, 690 rows, 14 features: is the card approved?"""
    return LogisticRegression.of_table(tables.load("australian"))


def German() -> LogisticRegression:  # noqa: N802, named as the target it makes
    """Statlog German credit, 1000 rows, 24 features: is the credit bad?"""
    return LogisticRegression.of_table(tables.load("german"))


@jax.custom_jvp
def _softplus(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(1 + exp z) that neither overflows nor loses small values.

    `jax.nn.softplus` also minds infinities, which cannot arise here, and takes twice as long.
    """
    return jnp.maximum(z, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(z)))


@_softplus.defjvp
def _softplus_slope(primals: Any, tangents: Any) -> Any:
    return _softplus(primals[0]), _sigmoid(primals[0]) * tangents[0]


def _sigmoid(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """σ(z) by tanh, which compiles to quicker code than an exponential and a division.

    It is as accurate for a sum of many terms; where the small value itself matters, as in
    `predict`, there is `jax.nn.sigmoid`.
    """
    return 0.5 + 0.5 * jnp.tanh(0.5 * z)


def _with_bias(rows: Float[np.ndarray, "N k"]) -> Float[np.ndarray, "N dim"]:
    return np.concatenate([rows, np.ones((len(rows), 1))], axis=1)


def _checked_data(features: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    values = np.asarray(checks.real("features", features), dtype=np.float64)
    if values.ndim != 2:
        checks.fail("features", "an array of shape (N, k)", f"shape {values.shape}")
    classes = np.asarray(checks.real("labels", labels), dtype=np.float64)
    if classes.shape != values.shape[:1] or not np.all(np.isin(classes, (0.0, 1.0))):
        given = f"shape {classes.shape} with the values {np.unique(classes)[:5].tolist()}"
        checks.fail("labels", f"{len(values)} labels, each 0 or 1", given)
    return values, classes
