"""The density of a mixture of heavy-tailed Gaussians, on the host: nothing to compile.

    q(x) = Σ_k w_k Σ_j s_j f_j(|L_k⁻¹(x − m_k)|²) / |L_k|

with the radial laws f_j of `kernels.mixture`, which all components share.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from salmc.kernels.mixture import DEGREES, gaussian_shares, widths

_CHUNK = 2_000_000
"""Numbers that one evaluation may hold at a time."""


class Mixture(NamedTuple):
    """Weights, means, triangular factors L of C = L Lᵀ, and shares of the radial laws."""

    weights: Float[np.ndarray, " k"]
    means: Float[np.ndarray, "k dim"]
    factors: Float[np.ndarray, "k dim dim"]
    shares: Float[np.ndarray, " laws"]

    @classmethod
    def of_gaussians(cls, weights: np.ndarray, means: np.ndarray, factors: np.ndarray) -> "Mixture":
        """Given Gaussians, with as much of the heavier laws as every mixture has."""
        return cls(weights / np.sum(weights), means, factors, gaussian_shares())

    def log_density(self, points: np.ndarray) -> Float[np.ndarray, " n"]:
        """log q, normalised."""
        size = max(1, _CHUNK // self.means.size)
        parts = [points[i : i + size] for i in range(0, len(points), size)]
        return np.concatenate([log_total(log_parts(self, part)[0]) for part in parts])

    def sample(self, generator: np.random.Generator, count: int) -> Float[np.ndarray, "n dim"]:
        """Independent draws."""
        which = generator.choice(len(self.weights), count, p=self.weights)
        law = generator.choice(len(DEGREES), count, p=self.shares)
        noise = generator.standard_normal((count, self.means.shape[1]))
        for j, (degrees, width) in enumerate(zip(DEGREES, widths(noise.shape[1]), strict=True)):
            rows = law == j
            noise[rows] *= width
            if np.isfinite(degrees):
                chi = generator.chisquare(degrees, np.sum(rows))
                noise[rows] *= np.sqrt(degrees / chi)[:, None]
        draws = np.empty_like(noise)
        for k, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            rows = which == k
            draws[rows] = mean + noise[rows] @ factor.T
        return draws

    def apart_from(self, others: "Mixture") -> "Mixture | None":
        """The components whose mean is near none of the others': within one standard deviation, or
        in many dimensions within half of one in each."""
        inverses = np.linalg.inv(others.factors)
        away = np.einsum("kij,knj->kni", inverses, self.means - others.means[:, None])
        new = np.all(np.sum(away**2, axis=2) > max(1.0, 0.25 * away.shape[2]), axis=0)
        if not np.any(new):
            return None
        weights = self.weights[new] / np.sum(self.weights[new])
        return Mixture(weights, self.means[new], self.factors[new], self.shares)

    def beside(self, other: "Mixture") -> "Mixture":
        """The components of both, all alike in weight."""
        count = len(self.weights) + len(other.weights)
        means = np.concatenate([self.means, other.means])
        factors = np.concatenate([self.factors, other.factors])
        return Mixture(np.full(count, 1.0 / count), means, factors, self.shares)

    def in_units(self, middle: np.ndarray, unit: np.ndarray) -> "Mixture":
        """Of (x − middle) / unit instead of x."""
        return self._replace(
            means=(self.means - middle) / unit, factors=self.factors / unit[:, None]
        )

    def widened(self, by: float) -> "Mixture":
        """With all factors so many times as large."""
        return self._replace(factors=by * self.factors)


def log_parts(mixture: Mixture, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log of each part of q by (component, law, point), and the squared radii."""
    dim = points.shape[1]
    inverses = np.linalg.inv(mixture.factors)
    noise = (points - mixture.means[:, None]) @ np.swapaxes(inverses, 1, 2)
    squares = np.einsum("kni,kni->kn", noise, noise)
    log_volumes = np.sum(np.log(np.abs(np.diagonal(mixture.factors, axis1=1, axis2=2))), axis=1)
    with np.errstate(divide="ignore"):
        log_weights, log_shares = np.log(mixture.weights), np.log(mixture.shares)
    laws = np.stack(
        [
            _log_radial(squares / width**2, dim, degrees) - dim * np.log(width)
            for degrees, width in zip(DEGREES, widths(dim), strict=True)
        ],
        axis=1,
    )
    laws += ((log_weights - log_volumes)[:, None] + log_shares)[:, :, None]
    return laws, squares


def log_total(parts: np.ndarray) -> np.ndarray:
    """log Σ exp over components and laws."""
    top = np.max(parts, axis=(0, 1))
    return top + np.log(np.sum(np.exp(parts - top), axis=(0, 1)))


def _log_radial(squares: np.ndarray, dim: int, degrees: float) -> np.ndarray:
    """log density of a radial law in `dim` dimensions at squared radii, of unit scale."""
    if not np.isfinite(degrees):
        return -0.5 * squares - 0.5 * dim * np.log(2.0 * np.pi)
    constant = gammaln(0.5 * (degrees + dim)) - gammaln(0.5 * degrees)
    constant -= 0.5 * dim * np.log(degrees * np.pi)
    return constant - 0.5 * (degrees + dim) * np.log1p(squares / degrees)
