"""A mixture of heavy-tailed Gaussians, fitted to weighted points on the host: nothing to compile.

    q(x) = Σ_k w_k Σ_j s_j f_j(|L_k⁻¹(x − m_k)|²) / |L_k|

with the radial laws f_j of `kernels.mixture`, which all components share. Their shares s_j are
fitted too, and none of them falls to nothing: tails that q must not lack cost it little where the
target has none. Fitted by expectation-maximisation; how many components there are
is decided by the likelihood of points that were left out.

Reference: Peel & McLachlan, "Robust mixture modelling using the t distribution", 2000.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from salmc.kernels.mixture import DEGREES, LEAST_SHARES, gaussian_shares, widths

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
_ROUNDS = 40
_SETTLED = 1e-4
"""Gain in log likelihood for each point, below which nothing is to be had any more."""

_WORTH = 5e-3
"""Gain in held-out log likelihood for each point that more components must bring."""

_HELD_BY = (1.0, 8.0, 64.0)
"""Points for each coordinate by which a component may be held to the mode that it began at."""

_FEWEST_EACH = 3
"""Points for each coordinate of a component, in the mean, at least."""

_NEXT_TO_NONE = 1e-3
"""Share of the weight that is left out with the lightest points."""

_MOST_POINTS = 3000
_CHUNK = 2_000_000
"""Numbers that one evaluation may hold at a time."""

_TINY = np.finfo(np.float64).tiny


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
        return np.concatenate([_log_total(_log_parts(self, part)[0]) for part in parts])

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
        """The components whose mean is within one standard deviation of none of the others."""
        inverses = np.linalg.inv(others.factors)
        away = np.einsum("kij,knj->kni", inverses, self.means - others.means[:, None])
        new = np.all(np.sum(away**2, axis=2) > 1.0, axis=0)
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


def fit_mixture(
    points: Float[np.ndarray, "n dim"],
    weights: Float[np.ndarray, " n"],
    generator: np.random.Generator,
    near: int | None = None,
    modes: Mixture | None = None,
) -> Mixture:
    """A mixture of as many components as points that were left out call for.

    Args:
        points: of a finite spread in every coordinate.
        weights: of the points; they need not sum to 1.
        generator: of the beginnings and of what is left out.
        near: a guess at how many components there are; fewer than half of it are not tried.
        modes: Gaussians at modes that are known, from which to begin as well: of many modes a
            random beginning misses the light ones, and points around them are few.
    """
    points, weights = _heaviest(points, weights)
    dim = points.shape[1]
    middle, unit = _units(points, weights)
    scaled = (points - middle) / unit
    left_out = generator.permutation(len(scaled)) % 2 == 0
    inside = weights * ~left_out
    effective = np.sum(inside) ** 2 / max(np.sum(inside**2), _TINY)
    known = None if modes is None else modes.in_units(middle, unit)
    held = weights[left_out]

    def likelihood(tried: Mixture) -> float:
        return float(tried.log_density(scaled[left_out]) @ held / np.sum(held))

    best, found, worse = 1, -np.inf, 0
    for count in _COUNTS:
        if count > 1 and effective < _FEWEST_EACH * count * (dim + 1):
            break
        if near is not None and 2 * count < near:
            continue
        tried = _expect_maximise(scaled[~left_out], weights[~left_out], count, generator)
        reached = likelihood(tried)
        if reached > found + _WORTH:
            best, found, worse = count, reached, 0
        else:
            worse += 1
            if worse == 2:
                break
    begin, firmly = None, 0.0
    for held_by in _HELD_BY:
        if known is None:
            break
        tried = _expect_maximise_from(known, scaled[~left_out], weights[~left_out], held_by * dim)
        reached = likelihood(tried)
        if reached > found + _WORTH:
            begin, firmly, found = known, held_by * dim, reached
    if begin is None:
        mixture = _expect_maximise(scaled, weights, best, generator)
    else:
        mixture = _expect_maximise_from(begin, scaled, weights, firmly)
    return mixture.in_units(-middle / unit, 1.0 / unit)


def _heaviest(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the points that are next to no weight together; of many, as many as teach enough."""
    order = np.argsort(-weights)
    share = np.cumsum(weights[order]) / np.sum(weights)
    count = min(int(np.searchsorted(share, 1.0 - _NEXT_TO_NONE)) + 1, len(order))
    order = order[:count]
    if count > _MOST_POINTS:
        # Evenly along the order of weights, with what was left out given to what is kept.
        kept = order[:: -(-count // _MOST_POINTS)]
        return points[kept], weights[kept]
    return points[order], weights[order]


def _units(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle and spread of each coordinate, which a few points far out do not turn."""
    levels = np.empty((3, points.shape[1]))
    for i, column in enumerate(points.T):
        order = np.argsort(column)
        share = np.cumsum(weights[order]) / np.sum(weights)
        levels[:, i] = column[order][
            np.searchsorted(share, [0.16, 0.5, 0.84]).clip(0, len(order) - 1)
        ]
    spread = 0.5 * (levels[2] - levels[0])
    spread = np.where(spread > 0.0, spread, np.std(points, axis=0))
    return levels[1], np.where(spread > 0.0, spread, 1.0)


def _log_parts(mixture: Mixture, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _log_total(parts: np.ndarray) -> np.ndarray:
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


def _expect_maximise(
    points: np.ndarray, point_weights: np.ndarray, count: int, generator: np.random.Generator
) -> Mixture:
    """EM from spread-out beginnings; the points are of unit scale."""
    begin = _begin(points, point_weights / np.sum(point_weights), count, generator)
    return _expect_maximise_from(begin, points, point_weights)


def _expect_maximise_from(
    begin: Mixture, points: np.ndarray, point_weights: np.ndarray, held: float = 0.0
) -> Mixture:
    """EM from a beginning, which each component is held to as by so many points."""
    count, dim = begin.means.shape
    # In units in which they are as many as count.
    point_weights = point_weights * np.sum(point_weights) / np.sum(point_weights**2)
    size = np.sum(point_weights)
    mixture, last = begin, -np.inf
    for _ in range(_ROUNDS):
        parts, squares = _log_parts(mixture, points)
        total = _log_total(parts)
        likelihood = float(total @ point_weights / size)
        if likelihood < last + _SETTLED:
            break
        last = likelihood
        taken = point_weights * np.exp(parts - total)
        weights = np.maximum(np.sum(taken, axis=(1, 2)), _TINY)
        # What lies far out counts less for place and shape, under a law that expects it there.
        pulls = np.zeros_like(squares)
        for j, (degrees, width) in enumerate(zip(DEGREES, widths(dim), strict=True)):
            pull = (degrees + dim) / (degrees + squares) if np.isfinite(degrees) else width**-2
            pulls += taken[:, j] * pull
        masses = np.maximum(np.sum(pulls, axis=1), _TINY)
        means = (pulls @ points + held * begin.means) / (masses[:, None] + held)
        factors = np.empty((count, dim, dim))
        for k in range(count):
            centred, moved = points - means[k], begin.means[k] - means[k]
            scatter = (centred * pulls[k][:, None]).T @ centred
            scatter += held * (begin.factors[k] @ begin.factors[k].T + np.outer(moved, moved))
            mass = weights[k] + held
            factors[k] = _factor(scatter / mass, mass, mixture.factors[k])
        shares = np.maximum(np.sum(taken, axis=(0, 2)) / size, LEAST_SHARES)
        mixture = Mixture(weights / size, means, factors, shares / np.sum(shares))
    return mixture._replace(weights=mixture.weights / np.sum(mixture.weights))


def _begin(
    points: np.ndarray, shares: np.ndarray, count: int, generator: np.random.Generator
) -> Mixture:
    """Means far apart (k-means++, on distances that do not favour strays), one common shape."""
    size, dim = points.shape
    held = np.clip(points, -4.0, 4.0)
    middle = shares @ held
    centred = held - middle
    covariance = (centred * shares[:, None]).T @ centred + 1e-6 * np.eye(dim)
    chosen = [held[generator.choice(size, p=shares)]] if count > 1 else [middle]
    for _ in range(count - 1):
        distances = shares * np.min([np.sum((held - one) ** 2, axis=1) for one in chosen], axis=0)
        total = np.sum(distances)
        chosen.append(held[generator.choice(size, p=distances / total if total > 0 else shares)])
    means = np.array(chosen)
    factor = np.linalg.cholesky(covariance) * count ** (-1.0 / dim)
    weights = np.full(count, 1.0 / count)
    return Mixture.of_gaussians(weights, means, np.repeat(factor[None], count, axis=0))


def _factor(covariance: np.ndarray, mass: float, otherwise: np.ndarray) -> np.ndarray:
    """A factor of a covariance of so many points, its correlations shrunk by how few they are."""
    dim = len(covariance)
    variance = np.diag(covariance)
    if not np.all(np.isfinite(covariance)) or np.any(variance <= 1e-14) or mass < 2.0:
        return otherwise
    deviation = np.sqrt(variance)
    given = 0.5 * dim / (mass + dim)
    correlation = (1.0 - given) * covariance / np.outer(deviation, deviation)
    np.fill_diagonal(correlation, 1.0 + 1e-6)
    try:
        return deviation[:, None] * np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return otherwise
