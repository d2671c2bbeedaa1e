"""RBF algebra shared by the Stein movers, as matrix products and in blocks.

With κ(x, y) = exp(−|x − y|²/h), every pairwise sum of the Stein methods is a product K V of the
kernel matrix with a few columns. For instance

    Σ_j ω_j ∇_{x_j} κ(x_i, x_j) = (2/h) Σ_j ω_j κ_ij (x_i − x_j)
                                = (2/h) [x_i (K ω)_i − (K (ω x))_i],

so no array of shape (M, M, d) is ever made, and K itself is made in blocks of rows: memory grows
with M, not M².
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.target import Points

_BLOCK_ENTRIES = 4_000_000
"""Entries of K held at once (16 MB): all of it up to M = 2000, and room to spare in caches."""

_PAIRS = 4096
"""Pairs that estimate a quantile: the median's relative error is about 1.5 %."""


def squared_distances(x: Float[Array, "n d"], y: Float[Array, "m d"]) -> Float[Array, "n m"]:
    """|x_i − y_j|² by one matrix product.

    The points should be centred near 0: far from it the difference of large squares loses digits.
    """
    squares = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None, :]
    return jnp.maximum(squares - 2.0 * x @ y.T, 0.0)


def quantile(values: Float[Array, " n"], share: float) -> Float[Array, ""]:
    """The value below which a `share` of the values lies, by bisection.

    A sort of a few thousand numbers costs more than the rest of a step; thirty counts do not.
    """

    def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        below = jnp.mean(values < middle) >= share
        return jnp.where(below, low, middle), jnp.where(below, middle, high)

    low, high = jax.lax.fori_loop(0, 30, halve, (jnp.min(values), jnp.max(values)))
    return 0.5 * (low + high)


def quantile_of_squared_distances(points: Points, share: float) -> Float[Array, ""]:
    """A quantile of |x_i − x_j|² over i ≠ j, from a fixed random subset of pairs."""
    count = len(points)
    if count < 2:
        return jnp.ones(())
    if count * (count - 1) // 2 <= _PAIRS:
        first, second = np.triu_indices(count, k=1)
    else:
        generator = np.random.default_rng(0)
        first = generator.integers(count, size=_PAIRS)
        second = (first + generator.integers(1, count, size=_PAIRS)) % count
    distances = jnp.sum((points[first] - points[second]) ** 2, axis=1)
    # Particles that have all met in one point would make a bandwidth of zero, and NaN of 0/0.
    smallest = jnp.finfo(distances.dtype).tiny * 1e6
    # On the log scale, because the distances within modes and between them differ by magnitudes.
    return jnp.exp(quantile(jnp.log(jnp.maximum(distances, smallest)), share))


def median_squared_distance(points: Points) -> Float[Array, ""]:
    """Median of |x_i − x_j|² over i ≠ j: the usual unit of bandwidths."""
    return quantile_of_squared_distances(points, 0.5)


def map_rows(
    function: Callable[..., Float[Array, "b k"]], rows: tuple[Array, ...], columns: int
) -> Float[Array, "n k"]:
    """`function` of all rows, called on blocks of them so that block × columns stays small."""
    results = map_blocks(function, rows, columns)
    return results.reshape(-1, results.shape[2])[: len(rows[0])]


def map_blocks(
    function: Callable[..., Float[Array, "b k"]], rows: tuple[Array, ...], columns: int
) -> Float[Array, "blocks b k"]:
    """As `map_rows`, but the blocks stay apart; the last may be filled up with rows of zeros."""
    count = len(rows[0])
    blocks = -(-count * columns // _BLOCK_ENTRIES)
    if blocks <= 1:
        return function(*rows)[None]
    # Equal blocks: rounding up from the target size would pad almost a whole block.
    block_size = -(-count // blocks)

    def cut(array: Array) -> Array:
        padding = ((0, blocks * block_size - count),) + ((0, 0),) * (array.ndim - 1)
        return jnp.pad(array, padding).reshape(blocks, block_size, *array.shape[1:])

    return jax.lax.map(lambda block: function(*block), tuple(cut(array) for array in rows))


def kernel_product(
    rows: Float[Array, "n d"],
    columns: Float[Array, "m d"],
    bandwidth: Float[Array, ""],
    values: Float[Array, "m k"],
) -> Float[Array, "n k"]:
    """K V with K_ij = exp(−|rows_i − columns_j|²/h), made in blocks of rows."""

    def product(block: Float[Array, "b d"]) -> Float[Array, "b k"]:
        return jnp.exp(-squared_distances(block, columns) / bandwidth) @ values

    return map_rows(product, (rows,), len(columns))


def stein_direction(
    points: Points,
    scores: Points,
    bandwidth: Float[Array, ""],
    weights: Float[Array, " n"] | None = None,
) -> Points:
    """φ_i = Σ_j ω_j [κ(x_i, x_j) s_j + ∇_{x_j} κ(x_i, x_j)], with Σ_j ω_j = 1.

    With s = −∇U and ω_j = 1/M it is the direction of SVGD, eq. 2 of the paper; with s = ∇log ν
    and ω = ν/p that of AG-SVGD, eq. 12.
    """
    count, dim = points.shape
    weights = jnp.full(count, 1.0 / count) if weights is None else weights
    points = points - jnp.mean(points, axis=0)
    column = weights[:, None]
    stacked = jnp.concatenate([column * scores, column * points, column], axis=1)
    products = kernel_product(points, points, bandwidth, stacked)
    attraction, weighted, total = jnp.split(products, [dim, 2 * dim], axis=1)
    return attraction + (2.0 / bandwidth) * (points * total - weighted)
