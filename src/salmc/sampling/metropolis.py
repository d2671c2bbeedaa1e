"""Metropolis-Hastings over vectorised chains, in whitened coordinates.

A proposal x' ~ q(·|x) is taken with probability

    min{1, p(x') q(x|x') / (p(x) q(x'|x))}                                          `hastings`

which leaves p invariant whatever q is. If q does not look at x, the proposals of many steps come
from one batch and only a tiny scan over their weights w = p/q is left. With k tries for each step,
one of them is picked with probability w_j / W, W = Σ w, and taken with probability

    min{1, W / (W − w_j + w(x))}                                                 `independence`

which is exact for every k (multiple-try Metropolis with independent proposals) and the ratio above
for k = 1. A volume-preserving kernel, which moves (x, v) with v ~ N(0, I), has the exact ratio

    min{1, p(x') N(v') / (p(x) N(v))}.

A kernel with neither leaves q out,

    min{1, p(x') / p(x)},

the ratio that the paper reports; it is not exact unless q happens to be symmetric.

A proposal that is not finite, or whose own density is not, is rejected and counted. The same pair
of points is rejected in both directions, so this keeps the chain exact.

Reference: Liu, Liang and Wong, "The multiple-try method and local optimization in Metropolis
sampling", JASA 2000; Martino, "A review of multiple try MCMC", 2018.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    AbstractVolumePreservingKernel,
)
from salmc.target import Points

LogDensity = Callable[[Points], Float[Array, " n"]]
"""log p up to a constant, at n whitened points; −inf where it is zero or not defined."""


class ChainState(NamedTuple):
    """Where the chains are."""

    points: Float[Array, "chains dim"]
    """Whitened."""
    log_density: Float[Array, " chains"]
    log_weight: Float[Array, " chains"]
    """log p − log q; only kernels that do not look at the state use it."""


class Noise(NamedTuple):
    """The randomness of some steps."""

    keys: Key[Array, " steps"]
    """For the kernel."""
    log_uniform: Float[Array, "steps rows chains"]
    """For the Metropolis step: one row to accept, and one for each try if there are several."""


class Steps(NamedTuple):
    """What the chains did, step by step."""

    points: Float[Array, "steps chains dim"]
    log_density: Float[Array, "steps chains"]
    accepted: Bool[Array, "steps chains"]
    invalid: Int[Array, ""]
    """Proposals that were not finite."""


def hastings(
    kernel: AbstractKernel, log_density: LogDensity, state: ChainState, noise: Noise
) -> tuple[ChainState, Steps]:
    """One step for each key of the noise; q is computed both ways where the kernel knows it."""

    def step(
        state: ChainState, noise: Noise
    ) -> tuple[ChainState, tuple[Array, Array, Array, Array]]:
        new, correction, valid = _propose(kernel, noise.keys, state.points)
        log_p = log_density(new)
        ratio = log_p - state.log_density + correction
        accepted = valid & (noise.log_uniform[0] <= ratio)
        state = ChainState(
            jnp.where(accepted[:, None], new, state.points),
            jnp.where(accepted, log_p, state.log_density),
            state.log_weight,
        )
        return state, (state.points, state.log_density, accepted, jnp.sum(~valid))

    state, (points, values, accepted, invalid) = jax.lax.scan(step, state, noise)
    return state, Steps(points, values, accepted, jnp.sum(invalid))


def independence(
    kernel: AbstractTractableKernel,
    log_density: LogDensity,
    state: ChainState,
    noise: Noise,
    tries: int,
) -> tuple[ChainState, Steps]:
    """All proposals of all steps in one batch, then the accept scan."""
    chains, dim = state.points.shape
    new, log_q = kernel.propose_ahead(noise.keys, tries * chains)
    new, log_q = new.reshape(-1, tries, chains, dim), log_q.reshape(-1, tries, chains)
    log_p = log_density(new.reshape(-1, dim)).reshape(log_q.shape)
    valid = jnp.all(jnp.isfinite(new), axis=-1) & jnp.isfinite(log_q)
    log_w = jnp.where(valid, log_p - log_q, -jnp.inf)
    total, picked = _pick(log_w, noise.log_uniform[:, 1:])
    others = jax.nn.logsumexp(jnp.where(jnp.arange(tries)[:, None] == picked, -jnp.inf, log_w), 1)
    point = jnp.take_along_axis(new, picked[..., None], axis=1)[:, 0]
    point_p, point_w = (jnp.take_along_axis(v, picked, axis=1)[:, 0] for v in (log_p, log_w))

    def step(
        carry: tuple[Array, Array], inputs: tuple[Array, ...]
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        log_weight, origin = carry
        number, weight, total, others, threshold = inputs
        # Where the weights are all zero this is NaN or −inf: rejected.
        accepted = threshold <= total - jnp.logaddexp(others, log_weight)
        log_weight = jnp.where(accepted, weight, log_weight)
        origin = jnp.where(accepted, number, origin)
        return (log_weight, origin), (origin, accepted)

    # The scan, whose every step costs more than its arithmetic, only finds at which step the point
    # of each chain was proposed; 0 is where it began.
    numbers = jnp.arange(1, len(point) + 1)
    inputs = (numbers, point_w, total, others, noise.log_uniform[:, 0])
    start = (state.log_weight, jnp.zeros(state.log_weight.shape, numbers.dtype))
    (log_weight, _), (origin, accepted) = jax.lax.scan(step, start, inputs)
    points, values = (
        jnp.take_along_axis(jnp.concatenate([first[None], ahead]), rows, axis=0)
        for first, ahead, rows in (
            (state.points, point, origin[..., None]),
            (state.log_density, point_p, origin),
        )
    )
    state = ChainState(points[-1], values[-1], log_weight)
    return state, Steps(points, values, accepted, jnp.sum(~valid))


def _pick(
    log_w: Float[Array, "steps tries chains"], log_uniform: Float[Array, "steps rows chains"]
) -> tuple[Float[Array, "steps chains"], Int[Array, "steps 1 chains"]]:
    """log W, and a try with probability w_j / W."""
    if log_w.shape[1] == 1:
        return log_w[:, 0], jnp.zeros((len(log_w), 1, log_w.shape[2]), int)
    # The largest of log w_j plus Gumbel noise, −log(−log U).
    picked = jnp.argmax(log_w - jnp.log(-log_uniform), axis=1, keepdims=True)
    return jax.nn.logsumexp(log_w, axis=1), picked


def _propose(
    kernel: AbstractKernel, key: PRNGKeyArray, points: Points
) -> tuple[Points, Float[Array, " n"], Bool[Array, " n"]]:
    """Proposals, log q(x|x') − log q(x'|x) or what stands for it, and which can be used."""
    if isinstance(kernel, AbstractVolumePreservingKernel):
        new, correction = kernel.propose_with_correction(key, points)
        return new, correction, jnp.all(jnp.isfinite(new), axis=-1) & jnp.isfinite(correction)
    if not isinstance(kernel, AbstractTractableKernel):
        new = kernel.propose_batch(key, points)
        return new, jnp.zeros(len(points)), jnp.all(jnp.isfinite(new), axis=-1)
    new, forward = kernel.propose_with_log_density(key, points)
    backward = kernel.log_densities(points, new)
    valid = jnp.all(jnp.isfinite(new), axis=-1) & jnp.isfinite(forward) & (backward < jnp.inf)
    return new, backward - forward, valid
