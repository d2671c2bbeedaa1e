"""The Fréchet distance between two sets of feature vectors, each taken as a Gaussian.

    d² = |μ₁ − μ₂|² + tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½)

It is what "FID" is with the features of an Inception network (M. Heusel and others, 2017); here
the features are those of a classifier of the same data, so the numbers compare with each other and
not with published ones. Its estimate is biased upwards, by an amount that falls with the number of
vectors: it means something only beside the same distance between two sets of real images of the
same sizes, its floor.

The trace of the square root is taken from eigenvalues of a symmetric matrix, in double precision:
features that are always zero make covariances singular, where a general matrix square root fails.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc import checks


class FrechetDistance(NamedTuple):
    """Squared distances."""

    value: float
    """Of the draws to real images."""
    floor: float
    """Of other real images, as many as there are draws, to the same."""


def frechet_distance(
    first: Float[np.ndarray, "n features"], second: Float[np.ndarray, "m features"]
) -> float:
    """d² between two sets of vectors; covariances with n in the denominator."""
    (mean_1, covariance_1), (mean_2, covariance_2) = _moments(first), _moments(second)
    if mean_1.shape != mean_2.shape:
        checks.fail("second", f"vectors of {len(mean_1)} features", f"{len(mean_2)} features")
    values, vectors = np.linalg.eigh(covariance_1)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    inner = root @ covariance_2 @ root
    # Rounding leaves it a hair off symmetric, and eigenvalues a hair below zero.
    spectrum = np.linalg.eigvalsh((inner + inner.T) / 2)
    trace_of_root = np.sum(np.sqrt(np.maximum(spectrum, 0.0)))
    difference = mean_1 - mean_2
    traces = np.trace(covariance_1) + np.trace(covariance_2)
    return max(0.0, float(difference @ difference + traces - 2 * trace_of_root))


def frechet_with_floor(
    draws: Float[np.ndarray, "n features"],
    real: Float[np.ndarray, "m features"],
    other_real: Float[np.ndarray, "k features"],
    *,
    seed: int = 0,
) -> FrechetDistance:
    """The distance of draws to held-out real images, and that of training images to the same.

    Args:
        draws: features of draws.
        real: of held-out images.
        other_real: of training images; as many of them as there are draws are taken at random,
            so that both distances have the same bias.
        seed: of that choice.
    """
    if len(other_real) < len(draws):
        checks.fail("other_real", f"at least as many as the draws, {len(draws)}", len(other_real))
    chosen = np.random.default_rng(seed).permutation(len(other_real))[: len(draws)]
    floor = frechet_distance(other_real[chosen], real)
    return FrechetDistance(frechet_distance(draws, real), floor)


def principal_components(
    images: np.ndarray, count: int
) -> tuple[Float[np.ndarray, " dim"], Float[np.ndarray, "dim count"]]:
    """Mean and leading directions of images as vectors, a space for images without a classifier.

    Project with `(other.reshape(n, -1) / 255 - mean) @ directions`.
    """
    vectors = images.reshape(len(images), -1) / 255.0
    checks.integer("count", count, 1)
    if min(vectors.shape) < count:
        checks.fail("count", f"at most {min(vectors.shape)}, as there are images and pixels", count)
    mean = vectors.mean(axis=0)
    _, _, directions = np.linalg.svd(vectors - mean, full_matrices=False)
    return mean, directions[:count].T


def _moments(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) < 2 or not np.all(np.isfinite(vectors)):
        checks.fail("features", "at least two finite vectors (n, features)", vectors.shape)
    mean = vectors.mean(axis=0)
    centred = vectors - mean
    return mean, centred.T @ centred / len(vectors)
