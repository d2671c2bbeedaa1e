"""Whitened coordinates: u = W (x − m), in which the pool has mean 0 and covariance I.

Critic and kernel see u alone, so that one set of defaults serves targets of any location, scale
and correlation. The directions are principal axes, the widest first.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.target import Points, Scalar

_NARROWEST = 1e-10
"""Variances below this share of the largest are raised to it: a flat cloud still has an inverse."""


_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)


class Whitening(eqx.Module):
    """The affine map between a target's own coordinates x and whitened ones u."""

    mean: Float[Array, " dim"]
    forward_matrix: Float[Array, "dim dim"]
    inverse_matrix: Float[Array, "dim dim"]

    @classmethod
    def fit(cls, points: Points, guess: np.ndarray | None = None) -> "Whitening":
        """From the mean and covariance of points; in double precision, whatever theirs is.

        Args:
            points: a cloud.
            guess: a covariance from elsewhere, such as Laplace's. In many dimensions that of the
                points errs by √(dim / n); as much of the guess is mixed in as makes one half of
                the points most likely, given the other half.
        """
        values = np.asarray(points, dtype=np.float64)
        covariance = np.cov(values.T).reshape(values.shape[1], -1)
        if guess is not None:
            share = _best_share(values, guess)
            covariance = (1.0 - share) * covariance + share * guess
        variances, axes = np.linalg.eigh(covariance)
        # A cloud of equal points has no width at all: any unit will do.
        widest = variances[-1] if variances[-1] > 0.0 else 1.0 / _NARROWEST
        variances = np.maximum(variances, _NARROWEST * widest)[::-1]
        axes = axes[:, ::-1]
        return cls(
            jnp.asarray(values.mean(axis=0), dtype=float),
            jnp.asarray(axes / np.sqrt(variances), dtype=float),
            jnp.asarray((axes * np.sqrt(variances)).T, dtype=float),
        )

    @classmethod
    def identity(cls, dim: int) -> "Whitening":
        """Coordinates as they are."""
        return cls(jnp.zeros(dim), jnp.eye(dim), jnp.eye(dim))

    def whiten(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """x ↦ u."""
        return (x - self.mean) @ self.forward_matrix

    def colour(self, u: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """u ↦ x."""
        return self.mean + u @ self.inverse_matrix

    @property
    def log_determinant(self) -> Scalar:
        """log |det ∂u/∂x|: log q(x'|x) = log q(u'|u) + this."""
        return jnp.linalg.slogdet(self.forward_matrix)[1]


def _best_share(values: np.ndarray, guess: np.ndarray) -> float:
    """The share of a guess at which a Gaussian of every other point likes the others best."""
    known, held = values[::2], values[1::2]
    centred, covariance = held - np.mean(known, axis=0), np.cov(known.T)
    found = []
    for share in _SHARES:
        try:
            factor = np.linalg.cholesky((1.0 - share) * covariance + share * guess)
        except np.linalg.LinAlgError:
            found.append(-np.inf)
            continue
        squares = np.sum(np.linalg.solve(factor, centred.T) ** 2) / len(held)
        found.append(-0.5 * squares - np.sum(np.log(np.diag(factor))))
    return _SHARES[int(np.argmax(found))]
