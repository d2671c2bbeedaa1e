"""What a mixture that adapts begins from: a Gaussian at some scales, and places to climb from.

And what is left of it, where a budget ends at the beginning.
"""

import numpy as np
from jaxtyping import Float
from scipy.spatial import cKDTree

from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.weighted_draws import Archive, tempered
from salmc.movers.cover import FIRST_SCALES

NEIGHBOURS = 10
"""Draws around each, than which it may be likelier."""

_COUNTING_EACH = 2.0
"""Draws that count, for each coordinate, in what is left of a search."""


def climbs_from(
    points: Float[np.ndarray, "m dim"],
    values: Float[np.ndarray, " m"],
    generator: np.random.Generator,
    climbs: int,
) -> Float[np.ndarray, "n dim"]:
    """Places to climb from: draws that are likelier than their neighbours, and any others.

    Args:
        points, values: draws of a wide proposal, and log p there.
        generator: of all randomness.
        climbs: of each kind, at most so many.
    """
    usable = values > -np.inf
    points, values = points[usable], values[usable]
    middle, unit = np.median(points, axis=0), np.std(points, axis=0)
    near = min(NEIGHBOURS, len(points))
    tree = cKDTree((points - middle) / np.where(unit > 0.0, unit, 1.0))
    neighbours = tree.query(tree.data, near)[1].reshape(len(points), near)
    # A narrow mode shows in one draw that is likelier than all around it.
    peaks = np.flatnonzero(values >= np.max(values[neighbours], axis=1))
    peaks = peaks[np.argsort(-values[peaks])]
    others = generator.permutation(len(points))
    rows = np.concatenate([peaks[:climbs], others[:climbs]])
    return points[rows]


def at_scales(mean: np.ndarray, factor: np.ndarray) -> Mixture:
    """One Gaussian at several scales at once."""
    factors = np.stack([scale * factor for scale in FIRST_SCALES])
    means = np.repeat(mean[None], len(factors), axis=0)
    return Mixture.of_gaussians(np.ones(len(factors)), means, factors)


def moments(points: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and triangular factor of weighted points, their correlations shrunk a little."""
    shares = weights / np.sum(weights)
    mean = shares @ points
    centred = points - mean
    covariance = (centred * shares[:, None]).T @ centred
    deviation = np.sqrt(np.maximum(np.diag(covariance), np.finfo(np.float64).tiny))
    correlation = 0.9 * covariance / np.outer(deviation, deviation)
    np.fill_diagonal(correlation, 1.0 + 1e-4)
    return mean, deviation[:, None] * np.linalg.cholesky(correlation)


def so_far(archive: Archive) -> tuple[Mixture | None, float]:
    """One Gaussian of what was drawn so far, and its efficiency; None where nothing was found."""
    if not np.any(archive.values > -np.inf):
        return None, 0.0
    weights, _ = tempered(archive.log_weights(), _COUNTING_EACH * archive.dim)
    mean, factor = moments(archive.points, weights)
    found = Mixture.of_gaussians(np.ones(1), mean[None], factor[None])
    return found, min(1.0, archive.efficiency(found))  # of few draws it may come out above one
