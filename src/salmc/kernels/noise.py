"""Standard normal noise for kernels, several times quicker on CPUs than `jax.random.normal`.

The bits are those of Threefry-2×32 with 20 rounds, JAX's own generator: counters 0, 1, 2, … are
enciphered with the key. JAX keeps the rounds in a loop on CPUs, which goes over memory once for
each of them, and keeps one of the two words that each counter gives. Written out, all rounds are
one pass, and both words are used.

Reference: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_FLOAT_ONE = np.uint32(0x3F800000)
"""The bits of 1.0: with 23 random bits as its mantissa it is a number in [1, 2)."""

Words = UInt32[Array, " n"]


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Independent N(0, 1) numbers; in double precision, or with keys of another kind, JAX's."""
    words = jax.random.key_data(key)
    if words.shape != (2,) or jnp.result_type(float) != jnp.float32:
        return jax.random.normal(key, shape)
    size = math.prod(shape)
    # The counter as the second word, as in JAX; a kernel never needs 2³³ numbers from one key.
    counter = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
    bits = jnp.concatenate(threefry(words[0], words[1], jnp.zeros_like(counter), counter))[:size]
    mantissa = (bits >> np.uint32(9)) | _FLOAT_ONE
    uniform = jax.lax.bitcast_convert_type(mantissa, jnp.float32) - np.float32(1.0)
    # On (−1, 1), symmetric but for the last bit, and never −1, whose inverse is infinite.
    low = np.nextafter(np.float32(-1.0), np.float32(0.0))
    symmetric = jnp.maximum(low, uniform * (1 - low) + low)
    return (np.float32(np.sqrt(2.0)) * jax.lax.erf_inv(symmetric)).reshape(shape)


def threefry(
    first_key: UInt32[Array, ""], second_key: UInt32[Array, ""], first: Words, second: Words
) -> tuple[Words, Words]:
    """Threefry-2×32 with 20 rounds, of every counter (first, second)."""
    schedule = (first_key, second_key, first_key ^ second_key ^ _PARITY)
    first, second = first + schedule[0], second + schedule[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            first = first + second
            second = (second << np.uint32(rotation)) | (second >> np.uint32(32 - rotation))
            second = second ^ first
        first = first + schedule[(group + 1) % 3]
        second = second + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return first, second
