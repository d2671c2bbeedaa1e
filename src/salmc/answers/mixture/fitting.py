"""A mixture of heavy-tailed Gaussians (`density`), fitted to weighted points on the host.

Shares of the radial laws are fitted too, and none of them falls to nothing: tails that q must not
lack cost it little where the target has none. Fitted by expectation-maximisation, from beginnings
anywhere and at modes that are known; how many components there are, and how firmly these are held
to their modes, is decided by the likelihood of points that were left out.

Reference: Peel & McLachlan, "Robust mixture modelling using the t distribution", 2000.
"""

import numpy as np
from jaxtyping import Float

from salmc.answers.mixture.density import Mixture, log_parts, log_total
from salmc.kernels.mixture import DEGREES, LEAST_SHARES, widths

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

_FEWEST_TOGETHER, _SHAPING = 5, 12
"""Points for each coordinate that have a shape in common, and rounds that find it."""

_TINY = np.finfo(np.float64).tiny


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

    inner = scaled[~left_out], weights[~left_out]
    best, found, worse = 1, -np.inf, 0
    for count in _COUNTS:
        if count > 1 and effective < _FEWEST_EACH * count * (dim + 1):
            break
        if near is not None and 2 * count < near:
            continue
        tried = _expect_maximise(*inner, count, generator)
        reached = likelihood(tried)
        if reached > found + _WORTH:
            best, found, worse = count, reached, 0
        else:
            worse += 1
            if worse == 2:
                break
    shape, common = None, _shape(scaled, weights)
    for count in {1, best}:
        if common is None:
            break
        reached = likelihood(_expect_maximise(*inner, count, generator, common))
        if reached > found + _WORTH:
            best, found, shape = count, reached, common
    begin, firmly = None, 0.0
    for held_by in _HELD_BY:
        if known is None:
            break
        tried = _expect_maximise_from(known, *inner, shape, held_by * dim)
        reached = likelihood(tried)
        if reached > found + _WORTH:
            begin, firmly, found = known, held_by * dim, reached
    if begin is None:
        mixture = _expect_maximise(scaled, weights, best, generator, shape)
    else:
        mixture = _expect_maximise_from(begin, scaled, weights, shape, firmly)
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


def _shape(points: np.ndarray, weights: np.ndarray) -> Float[np.ndarray, "dim dim"] | None:
    """A triangular factor of how all points of unit scale lie together, whatever their tails; None
    of too few.

    The scatter that is likeliest under Student's law with one degree of freedom (Kent, Tyler and
    Vardi, 1994), made as wide as half of the points lie.
    """
    dim = points.shape[1]
    middle, factor = np.zeros(dim), np.eye(dim)
    if np.sum(weights) ** 2 / np.sum(weights**2) < _FEWEST_TOGETHER * dim:
        return None
    shares = weights / np.sum(weights)
    for _ in range(_SHAPING):
        squares = np.sum(np.linalg.solve(factor, (points - middle).T) ** 2, axis=0)
        pulls = shares * (1.0 + dim) / (1.0 + squares)
        pulls /= np.sum(pulls)
        middle = pulls @ points
        centred = points - middle
        found = _cholesky((centred * pulls[:, None]).T @ centred)
        if found is None:
            return None
        factor = found
    order = np.argsort(squares)
    half = squares[order][np.searchsorted(np.cumsum(shares[order]), 0.5)]
    return factor * np.sqrt(max(half, _TINY) / dim)


def _cholesky(covariance: np.ndarray) -> np.ndarray | None:
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None


def _expect_maximise(
    points: np.ndarray,
    point_weights: np.ndarray,
    count: int,
    generator: np.random.Generator,
    shape: np.ndarray | None = None,
) -> Mixture:
    """EM from spread-out beginnings; the points are of unit scale."""
    begin = _begin(points, point_weights / np.sum(point_weights), count, generator, shape)
    return _expect_maximise_from(begin, points, point_weights, shape)


def _expect_maximise_from(
    begin: Mixture,
    points: np.ndarray,
    point_weights: np.ndarray,
    shape: np.ndarray | None,
    held: float = 0.0,
) -> Mixture:
    """EM from a beginning, which each component is held to as by so many points."""
    count, dim = begin.means.shape
    # In units in which they are as many as count.
    point_weights = point_weights * np.sum(point_weights) / np.sum(point_weights**2)
    size = np.sum(point_weights)
    mixture, last = begin, -np.inf
    for _ in range(_ROUNDS):
        parts, squares = log_parts(mixture, points)
        total = log_total(parts)
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
            factors[k] = _factor(scatter / mass, mass, mixture.factors[k], shape)
        shares = np.maximum(np.sum(taken, axis=(0, 2)) / size, LEAST_SHARES)
        mixture = Mixture(weights / size, means, factors, shares / np.sum(shares))
    return mixture._replace(weights=mixture.weights / np.sum(mixture.weights))


def _begin(
    points: np.ndarray,
    shares: np.ndarray,
    count: int,
    generator: np.random.Generator,
    shape: np.ndarray | None,
) -> Mixture:
    """Means far apart (k-means++, on distances that do not favour strays), one common shape."""
    size, dim = points.shape
    held = np.clip(points, -4.0, 4.0)
    middle = shares @ held
    if shape is None:
        centred = held - middle
        shape = np.linalg.cholesky((centred * shares[:, None]).T @ centred + 1e-6 * np.eye(dim))
    chosen = [held[generator.choice(size, p=shares)]] if count > 1 else [middle]
    for _ in range(count - 1):
        distances = shares * np.min([np.sum((held - one) ** 2, axis=1) for one in chosen], axis=0)
        total = np.sum(distances)
        chosen.append(held[generator.choice(size, p=distances / total if total > 0 else shares)])
    means = np.array(chosen)
    factors = np.repeat(shape[None] * count ** (-1.0 / dim), count, axis=0)
    return Mixture.of_gaussians(np.full(count, 1.0 / count), means, factors)


def _factor(
    covariance: np.ndarray, mass: float, otherwise: np.ndarray, shape: np.ndarray | None
) -> np.ndarray:
    """A factor of a covariance of so many points, shrunk by how few they are.

    What is shrunk are correlations between coordinates, or between the axes of a shape that all
    points have in common: those between coordinates may be 0.9999, and mean it.
    """
    dim = len(covariance)
    shape = np.eye(dim) if shape is None else shape
    inverse = np.linalg.inv(shape)
    covariance = inverse @ covariance @ inverse.T
    variance = np.diag(covariance)
    if not np.all(np.isfinite(covariance)) or np.any(variance <= 1e-14) or mass < 2.0:
        return otherwise
    deviation = np.sqrt(variance)
    given = 0.5 * dim / (mass + dim)
    correlation = (1.0 - given) * covariance / np.outer(deviation, deviation)
    np.fill_diagonal(correlation, 1.0 + 1e-6)
    found = _cholesky(correlation)
    return otherwise if found is None else shape @ (deviation[:, None] * found)
