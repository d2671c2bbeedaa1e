"""How much mass lies around a place, and how many draws: the two must be in proportion.

Around a mode m, widths are measured by how far one has to go along each axis until log p has
fallen by a half, then all second differences at those distances: Laplace's Gaussian N(m, C), from
values alone and at the scale that matters. Within the ellipsoid E = {(x−m)ᵀ C⁻¹ (x−m) ≤ r²} the
mass

    M = ∫_E p(x) dx

is estimated by importance sampling from that Gaussian. For exact draws the number of them in E is
M · n/∫p for every E, so that n/∫p, found where draws are, foretells how many belong into any other
place: a mode that they lack, or have too many of, shows with its weight, however far away it is.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.host import HostDensity

_LADDER = 2.0 ** np.arange(-24, 7)
_WANTED_FALL = 0.5
_MOST_COUPLED = 60
"""Coordinates up to which second differences of pairs are taken."""

_STEP = 0.3
"""Of differences, in widths: coordinates that are bound to each other are narrower across."""

_SAMPLES, _MANY_SAMPLES, _MANY_DIMENSIONS = 2048, 8192, 20
_INSIDE = 0.9
_LEAST_EFFECTIVE = 0.01
_FEW_EFFECTIVE, _DOUBTED = 0.05, 1.5
"""Where so few of the samples count, the heaviest of all may not be among them: the error that they
show is taken for larger."""

_EPSILON = np.finfo(np.float64).eps
_MOST_ROUNDED = 0.1
"""Widths by which rounding may move places that weigh a region."""


class Region(NamedTuple):
    """An ellipsoid, and the mass in it."""

    centre: Float[np.ndarray, " dim"]
    factor: Float[np.ndarray, "dim dim"]
    """C = factor factorᵀ"""
    log_mass: float
    error: float
    """Relative standard error of the mass; infinite where it could not be told."""
    highest: float = -np.inf
    """The largest log p that was seen inside,"""
    summit: Float[np.ndarray, " dim"] | None = None
    """and where."""

    def units(self, points: Cloud) -> Cloud:
        """Cloud as N(m, C) has them."""
        return np.linalg.solve(self.factor, (points - self.centre).T).T

    def holds(self, points: Cloud) -> np.ndarray:
        """Which points lie inside."""
        return np.sum(self.units(points) ** 2, axis=1) <= _radius_squared(len(self.centre))


def _radius_squared(dim: int) -> float:
    return float(stats.chi2.ppf(_INSIDE, dim))


def mode_factor(
    density: HostDensity, mode: Float[np.ndarray, " dim"], unit: Float[np.ndarray, " dim"]
) -> np.ndarray | None:
    """A factor of Laplace's covariance at a mode; None where no width can be found.

    Args:
        density: of the mode.
        mode: a maximum of it, or nearly.
        unit: a length for each coordinate, from which 2⁻²⁴ to 2⁶ times are tried.
    """
    dim = len(mode)
    top = float(density.values(mode[None])[0])
    steps = _LADDER[:, None] * unit
    places = mode + np.concatenate([steps, -steps])[:, :, None] * np.eye(dim)
    values = density.values(places.reshape(-1, dim)).reshape(2, len(_LADDER), dim)
    falls = top - values
    # Both sides together; one side alone where the other is over an edge at once.
    mean_fall = np.where(np.all(np.isfinite(falls), axis=0), np.mean(falls, axis=0), np.inf)
    reached = np.argmax(mean_fall >= _WANTED_FALL, axis=0)
    never = ~np.any(mean_fall >= _WANTED_FALL, axis=0)
    if np.any(never) or np.any(reached == 0):
        return None
    columns = np.arange(dim)
    fall = mean_fall[reached, columns]
    # Over an edge there is no fall to go by: the step before it is the width.
    at = np.where(fall < 8.0, reached, reached - 1)
    fall = np.maximum(mean_fall[at, columns], _WANTED_FALL)
    width = steps[at, columns] / np.sqrt(2.0 * fall)
    if dim == 1:
        return np.diag(width)
    if density.target.differentiable:
        return _coupled(_bends_of_slopes(density, mode, width), width)
    if dim > _MOST_COUPLED:
        return np.diag(width)
    return _coupled(_second_differences(density, mode, width), width)


def _bends_of_slopes(
    density: HostDensity, mode: np.ndarray, width: np.ndarray
) -> Float[np.ndarray, "dim dim"]:
    """−∂²log p/∂y_i ∂y_j in units of the widths, by differences of gradients; 0 where these are
    not finite."""
    dim = len(mode)
    moves = _STEP * np.diag(width)
    slopes = density.gradients(mode + np.concatenate([moves, -moves])) * width
    with np.errstate(invalid="ignore"):
        bends = (slopes[dim:] - slopes[:dim]) / (2.0 * _STEP)
    bends = np.where(np.isfinite(bends), bends, 0.0)
    return 0.5 * (bends + bends.T)


def _second_differences(
    density: HostDensity, mode: np.ndarray, width: np.ndarray
) -> Float[np.ndarray, "dim dim"]:
    """The same of all pairs, by values alone."""
    rows, columns = np.triu_indices(len(mode), 1)
    eye = np.eye(len(mode))
    signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
    offsets = [_STEP * (a * eye[rows] + b * eye[columns]) for a, b in signs]
    values = density.values(mode + np.concatenate(offsets) * width).reshape(4, -1)
    with np.errstate(invalid="ignore"):
        mixed = (values[0] - values[1] - values[2] + values[3]) / (4.0 * _STEP**2)
    bends = np.zeros_like(eye)
    bends[rows, columns] = bends[columns, rows] = -np.where(np.isfinite(mixed), mixed, 0.0)
    return bends


def _coupled(bends: Float[np.ndarray, "dim dim"], width: np.ndarray) -> np.ndarray:
    """A factor of Laplace's covariance, from widths along axes and what couples these."""
    dim = len(width)
    curvature = bends.copy()
    np.fill_diagonal(curvature, 1.0)
    eigenvalues, axes = np.linalg.eigh(curvature)
    if eigenvalues[-1] <= 0.0:
        return np.diag(width)
    spread = 1.0 / np.sqrt(np.maximum(eigenvalues, 1e-4 * eigenvalues[-1]))
    # Widths of one axis alone bound the ridge: no direction is wider than all of them together.
    return width[:, None] * axes * np.minimum(spread, 3.0 * np.sqrt(dim))


def _resolved(density: HostDensity, places: Cloud, factor: np.ndarray) -> bool:
    """Whether rounding moves places by little, in widths of the ellipsoid.

    In the neck of a centred funnel all effects become equal to the last digit, where p grows
    without bound, and next to nothing lies around it: the numbers in between are lacking.
    """
    moved = places.astype(density.precision).astype(np.float64) - places
    # Not `lstsq`, which takes a second for some thousand right-hand sides of thirty dimensions.
    widths = moved @ np.linalg.pinv(factor, len(factor) * _EPSILON).T
    return bool(np.sqrt(np.mean(np.sum(widths**2, axis=1) / len(factor))) < _MOST_ROUNDED)


def region(
    density: HostDensity,
    centre: Float[np.ndarray, " dim"],
    factor: Float[np.ndarray, "dim dim"],
    generator: np.random.Generator,
) -> Region:
    """The mass in an ellipsoid, by importance sampling from its Gaussian."""
    dim = len(centre)
    samples = _SAMPLES if dim <= _MANY_DIMENSIONS else _MANY_SAMPLES
    noise = generator.normal(size=(density.share_of(samples, 200), dim))
    inside = np.sum(noise**2, axis=1) <= _radius_squared(dim)
    places = centre + noise[inside] @ factor.T
    if not _resolved(density, places, factor):
        return Region(centre, factor, -np.inf, np.inf)
    values = density.values(places)
    log_weights = values + 0.5 * np.sum(noise[inside] ** 2, axis=1)
    log_weights += 0.5 * dim * np.log(2.0 * np.pi) + np.linalg.slogdet(factor)[1]
    if not np.any(np.isfinite(log_weights)):
        return Region(centre, factor, -np.inf, np.inf)
    top = np.max(log_weights)
    weights = np.zeros(len(noise))
    weights[inside] = np.exp(log_weights - top)
    mean = np.mean(weights)
    error = np.std(weights) / (mean * np.sqrt(len(weights)))
    effective = np.sum(weights) ** 2 / np.sum(weights**2)
    if effective < _FEW_EFFECTIVE * len(weights):
        error *= _DOUBTED
    if effective < max(10.0, _LEAST_EFFECTIVE * len(weights)):
        error = np.inf
    best = int(np.argmax(np.where(np.isnan(values), -np.inf, values)))
    log_mass = float(np.log(mean) + top)
    return Region(centre, factor, log_mass, float(error), float(values[best]), places[best])
