"""Chains of a kernel: a block of steps in one compiled scan.

    x_{t+1} = G(x_t, ξ_t)                       forward passes
    x_{t+1} = G(x_t, ξ_t) or x_t                with a Metropolis step, see `metropolis`

The kernel sees whitened points; what comes out is in the target's own coordinates. The key of a
step depends on its number alone, so the draws of a seed do not depend on how they are divided into
blocks, and a longer run begins with the shorter one. Kernel, whitening and target are arguments of
the compiled function: trained weights, seeds and blocks share one trace.
"""

from typing import Any, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray

from salmc.kernels.base import AbstractKernel, AbstractTractableKernel
from salmc.kernels.whitening import Whitening
from salmc.sampling.metropolis import (
    ChainState,
    LogDensity,
    Noise,
    Steps,
    hastings,
    independence,
)
from salmc.target import AbstractTarget, Points

_LARGEST = 1e19
"""Whitened coordinates beyond it count as infinite; within, no squares or products overflow."""


@eqx.filter_jit
def step_noise(
    key: PRNGKeyArray, first: Int[Array | np.ndarray, ""], length: int, rows: int, chains: int
) -> Noise:
    """The randomness of `length` steps from step number `first` on.

    Apart from `advance`, because random numbers take long to compile: all kernels share this.
    """

    def one(number: Array) -> tuple[Array, Array]:
        propose_key, accept_key = jax.random.split(jax.random.fold_in(key, number))
        # 1 − U lies in (0, 1], so that the logarithm is finite.
        return propose_key, jnp.log1p(-jax.random.uniform(accept_key, (rows, chains)))

    return Noise(*jax.vmap(one)(jnp.asarray(first) + jnp.arange(length)))


@eqx.filter_jit
def advance(
    kernel: AbstractKernel,
    whitening: Whitening,
    target: AbstractTarget | None,
    state: ChainState,
    noise: Noise,
    metropolis: bool,
    tries: int,
    densities: bool,
) -> tuple[ChainState, Steps]:
    """One step for each key of the noise; the steps' points are no longer whitened."""
    wanted = target if metropolis or densities else None
    log_density = _whitened_log_density(whitening, wanted)
    if not metropolis:
        state, steps = _forward(kernel, state, noise.keys)
        flat = log_density(steps.points.reshape(-1, steps.points.shape[-1]))
        steps = steps._replace(log_density=flat.reshape(steps.log_density.shape))
    elif proposes_ahead(kernel):
        state, steps = independence(kernel, log_density, state, noise, tries)
    else:
        state, steps = hastings(kernel, log_density, state, noise)
    return state, steps._replace(points=whitening.colour(steps.points))


@eqx.filter_jit
def start_state(
    kernel: AbstractKernel,
    whitening: Whitening,
    target: AbstractTarget | None,
    points: Points,
    metropolis: bool,
) -> ChainState:
    """The state of chains at whitened points; densities only where a Metropolis step needs them."""
    nothing = jnp.zeros(len(points))
    if not metropolis:
        return ChainState(points, nothing, nothing)
    log_p = _whitened_log_density(whitening, target)(points)
    log_q = kernel.log_densities(points, points) if proposes_ahead(kernel) else nothing
    return ChainState(points, log_p, log_p - log_q)


def proposes_ahead(kernel: AbstractKernel) -> TypeGuard[AbstractTractableKernel]:
    """Whether all proposals can be made before the first is judged."""
    return isinstance(kernel, AbstractTractableKernel) and not kernel.looks_at_state


def _whitened_log_density(whitening: Whitening, target: AbstractTarget | None) -> LogDensity:
    if target is None:
        return lambda points: jnp.full(len(points), jnp.nan)
    return lambda points: target.log_densities(whitening.colour(points))


def _forward(
    kernel: AbstractKernel, state: ChainState, keys: Key[Array, " steps"]
) -> tuple[ChainState, Steps]:
    """Every proposal is taken, unless it is not finite: then the chain stays."""
    inputs: Any
    if proposes_ahead(kernel):
        inputs, propose = kernel.propose_ahead(keys, len(state.points))[0], lambda new, _: new
    else:
        inputs, propose = kernel.forward_passes(keys, len(state.points))

    def step(points: Points, given: Any) -> tuple[Points, tuple[Array, Array]]:
        new = propose(given, points)
        valid = jnp.all(jnp.abs(new) < _LARGEST, axis=-1)
        points = jnp.where(valid[:, None], new, points)
        return points, (points, valid)

    last, (points, valid) = jax.lax.scan(step, state.points, inputs)
    steps = Steps(points, jnp.zeros(valid.shape), valid, jnp.sum(~valid))
    return state._replace(points=last), steps
