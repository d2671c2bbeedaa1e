"""Are draws copies of training images? Distances to the nearest one, beside held-out images'.

Real images that training never saw have some distance to their nearest training image: as near as
that is not copying. A draw counts as a copy when both

- its distance to the nearest training image is below the 1 % quantile of the held-out images', and
- the ratio of that distance to the one to the second nearest is below the 1 % quantile of theirs:

nearer than real images are, and to one image in particular. The second part is there because
draws that are merely smoother than real images lie nearer to all of them. Of the held-out images
at most 1 % are copies in this sense, so a kernel copies if significantly more of its draws are.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from salmc import checks

QUANTILE = 0.01
_BLOCK = 2_000
"""Rows and columns of a block of distances: 16 MB."""


class Neighbours(NamedTuple):
    """The nearest training images of some images; distances are of pixels from 0 to 1."""

    nearest: Int[np.ndarray, " n"]
    """Which training image is the nearest."""
    distance: Float[np.ndarray, " n"]
    """Euclidean, to the nearest."""
    ratio: Float[np.ndarray, " n"]
    """Of that to the distance to the second nearest."""


class CopyCheck(NamedTuple):
    """What the neighbours of draws and of held-out images say."""

    draws: Neighbours
    held_out: Neighbours
    share: float
    """Of the draws that count as copies."""
    held_out_share: float
    """Of the held-out images that would; at most 0.01 by construction."""
    limit: float
    """A share above this is more than chance: 0.01 and three standard errors."""

    @property
    def copies(self) -> bool:
        """Whether the kernel copies training images."""
        return self.share > self.limit

    def figures(self) -> dict[str, Any]:
        """The numbers, by name."""
        return {
            "draws": len(self.draws.distance),
            "held_out": len(self.held_out.distance),
            "median_distance_of_draws": float(np.median(self.draws.distance)),
            "median_distance_of_held_out": float(np.median(self.held_out.distance)),
            "smallest_distance_of_draws": float(self.draws.distance.min()),
            "smallest_distance_of_held_out": float(self.held_out.distance.min()),
            "share_of_copies": self.share,
            "share_of_copies_held_out": self.held_out_share,
            "limit": self.limit,
            "copies": self.copies,
        }


def check_for_copies(draws: np.ndarray, held_out: np.ndarray, training: np.ndarray) -> CopyCheck:
    """Compare the distances of draws to their nearest training images with held-out images'.

    Args:
        draws, held_out, training: bytes (n, height, width, channels); a training set larger than
            memory may be a memory map.
    """
    real = nearest_neighbours(held_out, training)
    drawn = nearest_neighbours(draws, training)
    near = float(np.quantile(real.distance, QUANTILE))
    alone = float(np.quantile(real.ratio, QUANTILE))
    error = math.sqrt(QUANTILE * (1 - QUANTILE) / len(drawn.distance))
    return CopyCheck(
        draws=drawn,
        held_out=real,
        share=float(np.mean((drawn.distance < near) & (drawn.ratio < alone))),
        held_out_share=float(np.mean((real.distance < near) & (real.ratio < alone))),
        limit=QUANTILE + 3 * error,
    )


def nearest_neighbours(images: np.ndarray, training: np.ndarray) -> Neighbours:
    """The two nearest training images of each image, by blocks of matrix products.

        |x − y|² = |x|² + |y|² − 2 x·y

    The order is found in single precision; the distances are then taken exactly from the pixels.
    """
    if images.dtype != np.uint8 or training.dtype != np.uint8:
        checks.fail("images", "bytes", f"{images.dtype} and {training.dtype}")
    if images.shape[1:] != training.shape[1:] or not len(images) or len(training) < 2:
        checks.fail("images", f"of shape {training.shape[1:]}", images.shape)
    nearest = np.concatenate(
        [_two_nearest(images[i : i + _BLOCK], training) for i in range(0, len(images), _BLOCK)]
    )
    first, second = (_distances(images, training, nearest[:, i]) for i in (0, 1))
    # Single precision may have swapped two that are as good as equal.
    nearest = np.where((first <= second)[:, None], nearest, nearest[:, ::-1])
    first, second = np.minimum(first, second), np.maximum(first, second)
    # An exact copy is the nearest of all, also where the training set has it twice.
    ratio = np.divide(first, second, out=np.zeros_like(first), where=second > 0)
    return Neighbours(nearest[:, 0], first, ratio)


def _two_nearest(images: np.ndarray, training: np.ndarray) -> Int[np.ndarray, "n 2"]:
    vectors = _vectors(images)
    rows = np.arange(len(vectors))[:, None]
    best = np.full((len(vectors), 2), np.inf, np.float32)
    which = np.zeros((len(vectors), 2), np.int64)
    for start in range(0, len(training), _BLOCK):
        block = _vectors(training[start : start + _BLOCK])
        # |x|² is the same for all of them, so it does not matter for the order.
        squares = np.sum(block * block, axis=1) - 2.0 * (vectors @ block.T)
        # The smallest twice is many times as fast as a partial sort.
        for _ in range(min(2, len(block))):
            column = np.argmin(squares, axis=1)[:, None]
            distances = np.concatenate([best, squares[rows, column]], axis=1)
            indices = np.concatenate([which, column + start], axis=1)
            order = np.argsort(distances, axis=1, kind="stable")[:, :2]
            best, which = distances[rows, order], indices[rows, order]
            squares[rows, column] = np.inf
    return which


def _distances(images: np.ndarray, training: np.ndarray, which: np.ndarray) -> np.ndarray:
    parts = []
    for start in range(0, len(images), _BLOCK):
        rows = slice(start, start + _BLOCK)
        difference = _vectors(images[rows]) - _vectors(training[which[rows]])
        parts.append(np.sqrt(np.sum(difference * difference, axis=1, dtype=np.float64)))
    return np.concatenate(parts)


def _vectors(images: np.ndarray) -> Float[np.ndarray, "n dim"]:
    return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)
