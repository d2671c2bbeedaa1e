"""Steps of Markov chains: the random numbers that they take, and the Metropolis-Hastings rule.

A step has noise ξ ~ N(0, I), of which a kernel makes its proposal x', and uniform numbers U. It is
taken with probability

    min{1, p(x') r / p(x)},   r = q(x|x') / q(x'|x),

that is where U is no more, which leaves p invariant whatever q is. A symmetric proposal has r = 1;
a map of volume 1 that moves (x, v) has r = N(v')/N(v) (see `kernels.base`). A proposal that is not
finite, or whose correction is not, is rejected: the same pair of points is rejected in both
directions, so this stays exact.

In a chain, the randomness of a step depends on the chain's own key and the step's number alone:
neither how many other chains there are, nor who computes them, nor how steps are divided matters.
The bits are those of Threefry-2×32 with 20 rounds, JAX's own generator: counters 0, 1, 2, … are
enciphered with the key. JAX keeps the rounds in a loop on CPUs, which goes over memory once for
each of them, and keeps one of the two words that each counter gives. Written out, all rounds are
one pass, several times quicker than `jax.random.normal`, and both words are used.

Reference: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

import math

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Integer, Key, PRNGKeyArray, UInt32

Values = Float[Array, "*n"]
Points = Float[Array, "n dim"]

_STUCK, _STUCK_SHARE, _ENOUGH_TAKEN, _LOCAL_STEPS = 0.05, 0.005, 0.4, 1
"""A chain is stuck where it takes fewer proposals than that; of the pool so much may be so, and in
the mean so many proposals must be taken, for chains without local steps."""

_LONGEST_STAY, _RUN = 100.0, 64_000
"""Steps at one point that are too many, wherever a run of so many draws would come."""

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_FLOAT_ONE = np.uint32(0x3F800000)
"""The bits of 1.0: with 23 random bits as its mantissa it is a number in [1, 2)."""

_SMALLEST_RHO, _LARGEST_RHO = 0.05, 0.8
"""Of local moves: from what is accepted nearly everywhere to half-way to an independent draw."""


def log_ratio(
    new_log_density: Values,
    old_log_density: Values,
    log_correction: Values | float = 0.0,
    finite: Bool[Array, "*n"] | bool = True,
) -> Values:
    """log of p(x') r / p(x); −inf for what must not be taken.

    Args:
        new_log_density, old_log_density: log p(x') and log p(x).
        log_correction: log r; +inf or NaN where it is not defined.
        finite: whether x' is.
    """
    gain = new_log_density - old_log_density + log_correction
    # From zero density (−inf − (−inf) is NaN) any proposal of positive density is taken.
    gain = jnp.where(old_log_density > -jnp.inf, gain, jnp.inf)
    defined = jnp.asarray(log_correction < jnp.inf) & (new_log_density > -jnp.inf)
    return jnp.where(defined & finite & ~jnp.isnan(gain), gain, -jnp.inf)


def acceptance(log_ratio: Values) -> Values:
    """min{1, ratio}."""
    return jnp.exp(jnp.minimum(log_ratio, 0.0))


def taken(log_uniform: Values, log_ratio: Values) -> Bool[Array, "*n"]:
    """Whether to take each proposal, given log U of uniform numbers U in (0, 1]."""
    return log_uniform <= log_ratio


def mean_jump(probability: Float[Array, " n"], old: Points, new: Points) -> Float[Array, ""]:
    """E[α min{|x' − x|², 2d}] / 2d, in whitened coordinates.

    Args:
        probability: α, with which each proposal is taken; 0 where it is not finite.
        old, new: x and x'.
    """
    longest = 2.0 * old.shape[1]
    squares = jnp.minimum(jnp.sum((new - old) ** 2, axis=1), longest)
    return jnp.mean(jnp.where(probability > 0.0, probability * squares, 0.0)) / longest


def local_steps_needed(at_pool: np.ndarray, at_proposals: np.ndarray, *, dear: bool = False) -> int:
    """How many local steps follow each independent one.

    From x an independent proposal is taken with probability α(x) = E min{1, w(x')/w(x)}, so that a
    chain stays there for 1/α(x) steps. None are needed where proposals are mostly taken, from
    nearly everywhere, and the longest stay of a run is short: local steps cost time.

    Args:
        at_pool, at_proposals: log w at places of the pool, and at proposals.
        dear: whether evaluations count, of which a local step takes one more for each draw: one
            long stay costs less.
    """
    usable = at_pool[np.isfinite(at_pool)]
    ordered = np.sort(at_proposals[at_proposals > -np.inf])
    if not len(ordered) or not len(usable):
        return 0
    # E min{1, w'/w}: those above w count 1, those below w'/w.
    below = np.searchsorted(ordered, usable)
    # Sums of logs, as the weights may lie further apart than numbers reach.
    sums = np.concatenate([[-np.inf], np.logaddexp.accumulate(ordered)])
    taken = (len(ordered) - below) + np.exp(np.minimum(sums[below] - usable, np.log(below + 1.0)))
    probability = np.clip(taken / len(at_proposals), 1e-9, 1.0)
    stuck = float(np.mean(probability < _STUCK))
    enough = float(np.mean(probability)) > _ENOUGH_TAKEN and stuck < _STUCK_SHARE
    short = dear or _largest_of(1.0 / probability, _RUN) < _LONGEST_STAY
    return 0 if enough and short else _LOCAL_STEPS


def _largest_of(values: np.ndarray, count: int) -> float:
    """About the largest of so many numbers, by some of them: beyond the largest of these, a power
    law of Hill's exponent. A hundredth of a pool may lie where chains stay for long; one place in a
    thousand is as bad for the chain that comes there."""
    ordered = np.sort(values)
    far = ordered[-max(2, round(3.0 * np.sqrt(len(ordered)))) :]
    power = float(np.mean(np.log(far[1:] / far[0])))
    beyond = far[0] * (len(far) * max(count / len(values), 1.0)) ** power
    return max(float(far[-1]), float(beyond))


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


def choice(logits: Float[Array, " k"], numbers: Float[Array, " n"]) -> Int[Array, " n"]:
    """One of k by its weight for each normal number, by its place in the normal distribution."""
    edges = jnp.cumsum(jax.nn.softmax(logits))[:-1]
    return jnp.sum(jax.scipy.special.ndtr(numbers)[:, None] > edges, axis=1)


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
