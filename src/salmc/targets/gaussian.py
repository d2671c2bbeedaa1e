"""The Gaussian of any mean and covariance.

    log p(x) = −½ |W (x − μ)|² + log |det W| − d/2 · log 2π,   Σ = L Lᵀ,   W = L⁻¹

L is the Cholesky factor of the covariance Σ. Exact draws: x = μ + L z with z ~ N(0, I).
Both factors are found once in double precision, so that an ill-conditioned Σ stays accurate.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.target import AbstractTarget, Point, Points, Scalar


class Gaussian(AbstractTarget):
    """N(mean, covariance).

    Args:
        mean: array (dim,).
        covariance: array (dim, dim), symmetric and positive definite.
        name: what tables and folders call it.
    """

    location: Float[Array, " dim"]
    factor: Float[Array, "dim dim"]
    whitening: Float[Array, "dim dim"]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    can_sample = True

    def __init__(self, mean: Any, covariance: Any, *, name: str = "gaussian"):
        location = np.asarray(checks.real("mean", mean), dtype=float)
        if location.ndim != 1:
            checks.fail("mean", "an array of shape (dim,)", f"shape {location.shape}")
        factor = cholesky("covariance", covariance, len(location))
        self.location = jnp.asarray(location)
        self.factor = jnp.asarray(factor)
        self.whitening = jnp.asarray(np.linalg.inv(factor))
        self.dim = len(location)
        self.name = name

    @classmethod
    def with_condition_number(
        cls, dim: int, condition_number: float, *, name: str = "gaussian"
    ) -> "Gaussian":
        """A centred Gaussian whose variances run from 1 to `condition_number`, all correlated.

        The principal variances are evenly spaced in the logarithm, and their axes are those of
        the reflection I − 2uuᵀ/|u|², u = (1, …, d): no coordinate is an axis of the Gaussian.
        """
        checks.integer("dim", dim, 1)
        checks.real("condition_number", condition_number, at_least=1.0)
        variances = np.geomspace(1.0, condition_number, dim)
        u = np.arange(1.0, dim + 1)
        axes = np.eye(dim) - 2 * np.outer(u, u) / (u @ u)
        return cls(np.zeros(dim), (axes * variances) @ axes.T, name=name)

    def log_density(self, x: Point) -> Scalar:
        z = self.whitening @ (x - self.location)
        log_determinant = jnp.sum(jnp.log(jnp.diagonal(self.whitening)))
        return -0.5 * jnp.sum(z**2) + log_determinant - self.dim / 2 * math.log(2 * math.pi)

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        return self.location + jax.random.normal(key, (n, self.dim)) @ self.factor.T

    @property
    def mean(self) -> Point:
        return self.location

    @property
    def std(self) -> Point:
        return jnp.sqrt(jnp.sum(self.factor**2, axis=1))


def cholesky(name: str, covariance: Any, dim: int) -> np.ndarray:
    """The Cholesky factor in double precision, or a sentence on why there is none."""
    matrix = np.asarray(checks.real(name, covariance), dtype=float)
    if matrix.shape != (dim, dim):
        checks.fail(name, f"an array of shape ({dim}, {dim})", f"shape {matrix.shape}")
    asymmetry = np.max(np.abs(matrix - matrix.T))
    # Covariances that users bring have often been through single precision.
    if asymmetry > 1e-5 * np.max(np.abs(matrix)):
        checks.fail(name, "symmetric", f"entries that differ by {asymmetry:.3g} from their mirror")
    eigenvalues = np.linalg.eigvalsh((matrix + matrix.T) / 2)
    if eigenvalues[0] <= 1e-12 * eigenvalues[-1]:
        checks.fail(name, "positive definite", f"a smallest eigenvalue of {eigenvalues[0]:.3g}")
    return np.linalg.cholesky((matrix + matrix.T) / 2)
