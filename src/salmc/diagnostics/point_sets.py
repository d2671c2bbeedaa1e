"""Sets of points, as all diagnostics take them: types, distances in blocks, scales, subsets.

Diagnostics compute in NumPy and in double precision. They run once, after the sampling, on
shapes that differ from call to call, so compilation would cost more than it saves; and
discrepancies are small differences of large sums, which single precision would drown.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from salmc import checks

AnyArray = np.ndarray | jax.Array
PointsLike = Float[AnyArray, "n dim"]
ValuesLike = Float[AnyArray, " n"]
ChainsLike = Float[AnyArray, "chain draw k"]
FlagsLike = Bool[AnyArray, "chain draw"]
LabelsLike = Int[AnyArray, " n"]

Cloud = Float[np.ndarray, "_ _"]
Numbers = Float[np.ndarray, " _"]
"""Of any length each, where several lengths meet in one function."""

Points = Float[np.ndarray, "n dim"]
Values = Float[np.ndarray, " n"]

_BLOCK_ENTRIES = 500_000
"""Entries of a pairwise matrix held at once: 4 MB stay in caches, whatever the number of points."""

_MEDIAN_PAIRS = 100_000
"""Pairs that estimate a median distance: relative error about 0.3 %."""


class StatisticWithFloor(NamedTuple):
    """A discrepancy and its floor, the 95 % quantile it would have if the sample were exact.

    One exact sample in twenty lies above the floor by chance; `ratio` tells how far above.
    """

    value: float
    floor: float

    @property
    def ratio(self) -> float:
        """value / floor; infinite where the floor is zero."""
        if self.floor > 0:
            return self.value / self.floor
        return float("inf") if self.value > 0 else 0.0

    @property
    def above(self) -> bool:
        """Whether the value lies above its floor, or is not a number."""
        return not self.value <= self.floor


def with_one(points: Cloud) -> Cloud:
    """With a column of ones at the end: for what is affine in points."""
    return np.concatenate([points, np.ones((len(points), 1))], axis=1)


def as_points(name: str, values: Any, at_least: int = 2) -> Points:
    """A finite double precision array of shape (n, dim)."""
    points = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or len(points) < at_least:
        checks.fail(name, f"an array (n, dim) of at least {at_least} points", points.shape)
    if not np.all(np.isfinite(points)):
        checks.fail(name, "finite everywhere", "NaN or infinite entries")
    return points


def as_chains(name: str, values: Any, at_least: int = 1) -> Float[np.ndarray, "chain draw k"]:
    """A double precision array of shape (chain, draw, k)."""
    chains = np.asarray(values, dtype=np.float64)
    if chains.ndim != 3 or chains.shape[1] < at_least:
        checks.fail(name, f"an array (chain, draw, k) of at least {at_least} draws", chains.shape)
    return chains


def row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Slices over the rows of a rows × columns matrix, each of bounded memory."""
    size = max(1, _BLOCK_ENTRIES // max(columns, 1))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def squared_distances(
    x: Float[np.ndarray, "n dim"], y: Float[np.ndarray, "m dim"]
) -> Float[np.ndarray, "n m"]:
    """|x_i − y_j|² by one matrix product. Centre the points first: large squares lose digits."""
    # In place: fresh memory for each term would cost more than the arithmetic.
    distances = x @ y.T
    distances *= -2.0
    distances += np.sum(x**2, axis=1)[:, None]
    distances += np.sum(y**2, axis=1)[None, :]
    return np.maximum(distances, 0.0, out=distances)


def median_squared_distance(points: Points) -> float:
    """Median of |x_i − x_j|², i ≠ j, over a fixed random subset of pairs."""
    count = len(points)
    if count * (count - 1) // 2 <= _MEDIAN_PAIRS:
        first, second = np.triu_indices(count, k=1)
    else:
        generator = np.random.default_rng(0)
        first = generator.integers(count, size=_MEDIAN_PAIRS)
        second = (first + generator.integers(1, count, size=_MEDIAN_PAIRS)) % count
    return float(np.median(np.sum((points[first] - points[second]) ** 2, axis=1)))


def safe_scale(points: Points) -> Float[np.ndarray, " dim"]:
    """Standard deviation of each coordinate; 1 where all points agree."""
    deviation = np.std(points, axis=0)
    negligible = 1e-12 * np.max(np.abs(points), axis=0)
    return np.where(deviation > negligible, deviation, 1.0)


def subset(count: int, size: int, generator: np.random.Generator) -> Int[np.ndarray, " m"]:
    """At most `size` of `count` indices, in order, without repetition."""
    if count <= size:
        return np.arange(count)
    return np.sort(generator.choice(count, size=size, replace=False))
