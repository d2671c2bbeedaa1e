"""The randomness of kernels, several times quicker on CPUs than `jax.random.normal`.

The bits are those of Threefry-2×32 with 20 rounds, JAX's own generator: counters 0, 1, 2, … are
enciphered with the key. JAX keeps the rounds in a loop on CPUs, which goes over memory once for
each of them, and keeps one of the two words that each counter gives. Written out, all rounds are
one pass, and both words are used.

In a chain, the randomness of a step depends on the chain's own key and the step's number alone:
neither how many other chains there are, nor who computes them, nor how steps are divided matters.

Reference: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, Key, PRNGKeyArray, UInt32

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_FLOAT_ONE = np.uint32(0x3F800000)
"""The bits of 1.0: with 23 random bits as its mantissa it is a number in [1, 2)."""


_SMALLEST_RHO, _LARGEST_RHO = 0.05, 0.8
"""Of local moves: from what is accepted nearly everywhere to half-way to an independent draw."""


def normal(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Independent N(0, 1) numbers; in double precision, or with keys of another kind, JAX's."""
    words = jax.random.key_data(key)
    if words.shape != (2,) or jnp.result_type(float) != jnp.float32:
        return jax.random.normal(key, shape)
    size = math.prod(shape)
    # The counter as the second word, as in JAX; a kernel never needs 2³³ numbers from one key.
    counter = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
    bits = jnp.concatenate(threefry(words[0], words[1], jnp.zeros_like(counter), counter))[:size]
    return _to_normal(bits).reshape(shape)


def log_q(noise: Float[Array, "*n noise_dim"], log_scale: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """log q(x) = log N(ξ; 0, I) + log |det ∂ξ/∂x|, of x = T(ξ)."""
    constant = 0.5 * noise.shape[-1] * math.log(2.0 * math.pi)
    return log_scale - 0.5 * jnp.sum(noise * noise, axis=-1) - constant


def local_noise(
    noise: Float[Array, "*n noise_dim"],
    fresh: Float[Array, "*n noise_dim"],
    share: Float[Array, "*n"],
) -> Float[Array, "*n noise_dim"]:
    """√(1 − ρ²) ξ + ρ ε, with ρ by a uniform `share` of the way."""
    rho = local_length(share)[..., None]
    return jnp.sqrt(1.0 - rho * rho) * noise + rho * fresh


def local_length(share: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """ρ, log-uniform between two bounds by a uniform `share` of the way."""
    return _SMALLEST_RHO * (_LARGEST_RHO / _SMALLEST_RHO) ** share


def step_keys(
    keys: Key[Array, " chains"], first: Integer[Array | np.ndarray, ""], length: int
) -> Key[Array, "length chains"]:
    """The key of each step of each chain: `fold_in` of the chain's key and the step's number."""
    numbers = jnp.asarray(first, jnp.uint32) + jnp.arange(length, dtype=jnp.uint32)
    words = jax.random.key_data(keys)
    if words.shape[1:] != (2,):
        return jax.vmap(lambda number: jax.vmap(jax.random.fold_in, (0, None))(keys, number))(
            numbers
        )
    counter = jnp.broadcast_to(numbers[:, None], (length, len(keys)))
    folded = threefry(words[:, 0], words[:, 1], jnp.zeros_like(counter), counter)
    return jax.random.wrap_key_data(jnp.stack(folded, axis=-1), impl=jax.random.key_impl(keys))


def step_noise(
    keys: Key[Array, "*n"], size: int, rows: int = 1
) -> tuple[Float[Array, "*n size"], Float[Array, "*n rows"]]:
    """The randomness of a step, from its key alone: ξ ~ N(0, I), and log U of uniform numbers."""
    words = jax.random.key_data(keys)
    if words.shape[keys.ndim :] != (2,) or jnp.result_type(float) != jnp.float32:

        def one(key: PRNGKeyArray) -> tuple[Array, Array]:
            uniform = jax.random.uniform(jax.random.fold_in(key, 1), (rows,))
            return jax.random.normal(jax.random.fold_in(key, 0), (size,)), jnp.log1p(-uniform)

        noise, log_uniform = jax.vmap(one)(keys.reshape(-1))
        return noise.reshape(*keys.shape, size), log_uniform.reshape(*keys.shape, rows)
    first, second = words[..., :1], words[..., 1:]
    # Counters of ξ begin with the word 0, those of U with 1.
    counter = jnp.arange((size + 1) // 2, dtype=jnp.uint32)
    bits = jnp.concatenate(threefry(first, second, jnp.zeros_like(counter), counter), axis=-1)
    rest = jnp.arange(rows, dtype=jnp.uint32)
    uniform = _uniform(threefry(first, second, jnp.ones_like(rest), rest)[0])
    # 1 − U lies in (0, 1], so that the logarithm is finite.
    return _to_normal(bits[..., :size]), jnp.log1p(-uniform)


def threefry(
    first_key: UInt32[Array, "..."],
    second_key: UInt32[Array, "..."],
    first: UInt32[Array, "..."],
    second: UInt32[Array, "..."],
) -> tuple[UInt32[Array, "..."], UInt32[Array, "..."]]:
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


def _uniform(bits: UInt32[Array, "..."]) -> Float[Array, "..."]:
    """Numbers in [0, 1) of 23 random bits."""
    mantissa = (bits >> np.uint32(9)) | _FLOAT_ONE
    return jax.lax.bitcast_convert_type(mantissa, jnp.float32) - np.float32(1.0)


def _to_normal(bits: UInt32[Array, "..."]) -> Float[Array, "..."]:
    # On (−1, 1), symmetric but for the last bit, and never −1, whose inverse is infinite.
    low = np.nextafter(np.float32(-1.0), np.float32(0.0))
    symmetric = jnp.maximum(low, _uniform(bits) * (1 - low) + low)
    return np.float32(np.sqrt(2.0)) * jax.lax.erf_inv(symmetric)
