"""Sums over many data: in bounded memory, and without losing digits.

Single precision has seven digits. Where hundreds of chunks are added one after the other, a log
density of −400,000 is off by 0.14, and a verdict took draws for those of another density. With
what rounding takes away carried along, it is off by no more than the result itself is rounded by.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree

MOST_AT_ONCE = 2**24
"""Numbers for pairs of a point and a datum at once: 64 MB in single precision."""


def sum_over_chunks(part: Callable[[PyTree], Array], data: PyTree, points: int) -> Array:
    """Σ part(chunk) over chunks of the data that keep points × data within a bound.

    Args:
        part: some of the data ↦ its part of a sum over all of them.
        data: a tree of arrays with a common leading axis.
        points: how many points `part` has, for each of which it holds a number for each datum.
    """
    total = jax.tree.leaves(data)[0].shape[0]
    length = max(1, MOST_AT_ONCE // max(points, 1))
    if total <= length:
        return part(data)
    whole, rest = divmod(total, length)

    def chunk(first: Array) -> Array:
        return part(
            jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, length), data)
        )

    def add(i: Array, sofar: tuple[Array, Array]) -> tuple[Array, Array]:
        # What rounding took from the sum is given to the next number (Kahan 1965).
        summed, lost = sofar
        new = chunk(i * length) - lost
        larger = summed + new
        return larger, (larger - summed) - new

    shape = jax.eval_shape(chunk, jnp.zeros((), int))
    zero = jnp.zeros(shape.shape, shape.dtype)
    summed, lost = jax.lax.fori_loop(0, whole, add, (zero, zero))
    if rest:
        summed = summed + (part(jax.tree.map(lambda leaf: leaf[whole * length :], data)) - lost)
    return summed
