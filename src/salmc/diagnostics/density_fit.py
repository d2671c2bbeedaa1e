"""A tractable density fitted to points: a kernel density estimate or one Gaussian.

    q(x) = Σ_j a_j N(x; m_j, b² Σ),   Σ the (weighted) covariance of the points.

The bandwidth b is chosen from a grid by leave-one-out likelihood. One Gaussian N(mean, Σ), with
the number of its parameters held against it (AIC), takes the place of the estimate where it is
likelier: that is what high dimension asks for, and what modes and rings rule out.
"""

import dataclasses
import functools

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import (
    Points,
    PointsLike,
    Values,
    ValuesLike,
    as_points,
    row_blocks,
    squared_distances,
    subset,
)
from salmc.diagnostics.stein_kernel import natural_length

_CENTRES = 1000
"""Centres of an estimate at most: enough for a few modes, and fast."""

_BANDWIDTHS = np.geomspace(0.02, 0.8, 10)
"""Bandwidths tried, in units of the points' own spread."""

_LEAST_EFFECTIVE_SHARE = 0.1
"""Importance weights are tempered until they are worth this share of the points."""

_RIDGE = 1e-6
"""Of the mean variance, added to the covariance: points on a line or in one place stay usable."""


@dataclasses.dataclass(frozen=True, eq=False)
class FittedDensity:
    """A mixture of equal Gaussians at weighted centres, with its score.

    Attributes:
        location, factor: the points are (x − location) factor⁻ᵀ in whitened coordinates.
        centres: (m, dim), whitened.
        log_weights: (m,), of the centres.
        bandwidth: of the whitened kernel.
    """

    location: Float[np.ndarray, " dim"]
    factor: Float[np.ndarray, "dim dim"]
    centres: Float[np.ndarray, "m dim"]
    log_weights: Float[np.ndarray, " m"]
    bandwidth: float

    @property
    def scale(self) -> Float[np.ndarray, " dim"]:
        """Standard deviation of each coordinate of the points it was fitted to."""
        return np.sqrt(np.sum(self.factor**2, axis=1))

    @functools.cached_property
    def length(self) -> float:
        """Width of its features in units of `scale`: the length of a Stein kernel for it."""
        _, scores = self.log_density_and_score(self.sample(500))
        return natural_length(scores * self.scale)

    def sample(self, n: int, seed: int = 0) -> Points:
        """n draws from q."""
        generator = np.random.default_rng(seed)
        chosen = generator.choice(len(self.centres), size=n, p=np.exp(self.log_weights))
        noise = self.bandwidth * generator.normal(size=(n, len(self.location)))
        return (self.centres[chosen] + noise) @ self.factor.T + self.location

    def log_density_and_score(self, x: PointsLike) -> tuple[Values, Points]:
        """log q and ∇ log q at each of n points."""
        white = np.linalg.solve(self.factor, (as_points("x", x, at_least=1) - self.location).T).T
        dim, b2 = white.shape[1], self.bandwidth**2
        constant = -0.5 * dim * np.log(2 * np.pi * b2)
        constant -= np.sum(np.log(np.diagonal(self.factor)))
        values, scores = np.empty(len(white)), np.empty_like(white)
        for rows in row_blocks(len(white), len(self.centres)):
            logits = self.log_weights - squared_distances(white[rows], self.centres) / (2 * b2)
            top = np.max(logits, axis=1, keepdims=True)
            shares = np.exp(logits - top)
            total = np.sum(shares, axis=1, keepdims=True)
            values[rows] = (np.log(total) + top)[:, 0] + constant
            scores[rows] = (shares @ self.centres / total - white[rows]) / b2
        return values, np.linalg.solve(self.factor.T, scores.T).T


def fit_density(
    points: PointsLike, log_density_values: ValuesLike | None = None, *, seed: int = 0
) -> FittedDensity:
    """Fit q to points; with values of log p there, to p as far as the points cover it.

    Args:
        points: (n, dim). At most 1000 of them, at random, become centres.
        log_density_values: log p at the points, up to a constant. Given, each centre is weighted
            by p over the density of the points, tempered so that the weights keep a tenth of the
            points' worth. So a union of clouds, good and bad, gives an estimate of p.
        seed: of the choice of centres.
    """
    sample = as_points("points", points)
    chosen = subset(len(sample), _CENTRES, np.random.default_rng(seed))
    sample = sample[chosen]
    uniform = np.full(len(sample), 1.0 / len(sample))
    if log_density_values is None:
        return _fit_weighted(sample, uniform)
    log_p = np.asarray(log_density_values, dtype=np.float64)[chosen]
    finite = np.isfinite(log_p)
    if np.sum(finite) < 2:
        return _fit_weighted(sample, uniform)
    log_nu, _ = _fit_weighted(sample, uniform).log_density_and_score(sample)
    weights = np.zeros(len(sample))
    weights[finite] = _tempered(log_p[finite] - log_nu[finite])
    kept = weights > 1e-8 * np.max(weights)
    if np.sum(kept) < 2:
        return _fit_weighted(sample, uniform)
    return _fit_weighted(sample[kept], weights[kept] / np.sum(weights[kept]))


def _fit_weighted(points: Points, weights: Values) -> FittedDensity:
    dim = points.shape[1]
    location = weights @ points
    deviations = points - location
    covariance = (deviations * weights[:, None]).T @ deviations
    smallest = np.finfo(float).tiny ** 0.5 + (1e-7 * np.max(np.abs(points))) ** 2
    covariance += (_RIDGE * np.trace(covariance) / dim + smallest) * np.eye(dim)
    factor = np.linalg.cholesky(covariance)
    white = np.linalg.solve(factor, deviations.T).T

    distances = squared_distances(white, white)
    np.fill_diagonal(distances, np.inf)
    likelihoods = [_leave_one_out(distances, weights, dim, b) for b in _BANDWIDTHS]
    effective = 1.0 / np.sum(weights**2)
    parameters = dim + dim * (dim + 1) / 2
    gaussian = -0.5 * (weights @ np.sum(white**2, axis=1) + dim * np.log(2 * np.pi))
    if gaussian - parameters / effective >= max(likelihoods):
        return FittedDensity(location, factor, np.zeros((1, dim)), np.zeros(1), 1.0)
    best = float(_BANDWIDTHS[int(np.argmax(likelihoods))])
    return FittedDensity(location, factor, white, np.log(weights), best)


def _leave_one_out(distances: np.ndarray, weights: Values, dim: int, bandwidth: float) -> float:
    """Σ_i a_i log q_{−i}(x_i), each term held above that of a point 6 bandwidths from all."""
    with np.errstate(under="ignore"):
        sums = np.exp(-distances / (2 * bandwidth**2)) @ weights
    values = np.log(np.maximum(sums / (1.0 - weights), np.exp(-18.0) * np.mean(weights)))
    return float(weights @ values - 0.5 * dim * np.log(2 * np.pi * bandwidth**2))


def _tempered(log_weights: Values) -> Values:
    """Weights w^α, α ≤ 1 as large as the least effective share allows."""

    def weights(alpha: float) -> Values:
        values = np.exp(alpha * (log_weights - np.max(log_weights)))
        return values / np.sum(values)

    def enough(alpha: float) -> bool:
        effective = 1.0 / float(np.sum(weights(alpha) ** 2))
        return effective >= _LEAST_EFFECTIVE_SHARE * len(log_weights)

    low, high = 0.0, 1.0
    if enough(high):
        return weights(high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    return weights(low)
