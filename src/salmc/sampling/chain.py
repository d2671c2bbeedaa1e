"""Chains of a kernel, advanced block by block in one compiled scan.

    x_{t+1} = G(x_t, ξ_t)                       forward passes
    x_{t+1} = G(x_t, ξ_t) or x_t                with a Metropolis step, see `metropolis`

The kernel sees whitened points; what comes out is in the target's own coordinates. The key of a
step depends on its number alone, so the draws of a seed do not depend on how they are divided into
blocks, and a longer run begins with the shorter one. Kernel, whitening and target are arguments of
the compiled function: trained weights, seeds and blocks share one trace.

A scan goes from step to step on one core, however many chains it moves. So chains run in groups,
each in a scan and on a thread of its own (`side_by_side`).
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, TypeGuard

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PRNGKeyArray

from salmc.kernels.base import AbstractKernel, AbstractTractableKernel
from salmc.kernels.whitening import Whitening
from salmc.sampling.block import Block, fetch
from salmc.sampling.metropolis import (
    ChainState,
    LogDensity,
    Noise,
    Steps,
    hastings,
    independence,
)
from salmc.sampling.side_by_side import side_by_side
from salmc.target import AbstractTarget, Points

BLOCK_PROPOSALS = 8192
"""Proposals of one block: enough for full speed on a CPU, few enough for its caches, for progress
and for Ctrl-C."""

_LARGEST = 1e19
"""Whitened coordinates beyond it count as infinite; within, no squares or products overflow."""

_MOST_GROUPS, _FEWEST = 8, 16
"""Groups that chains run in, at most, and chains of a group, at least."""

_WASTE = 0.1
"""Steps that may be computed in vain, as a share of those asked for, to share a trace."""


@dataclasses.dataclass(frozen=True, eq=False)
class Chains:
    """Chains that are ready to run.

    Attributes:
        kernel, whitening, target: what moves the chains; without a target there is no Metropolis
            step, and log densities are NaN.
        metropolis: whether proposals may be rejected.
        tries: proposals for each step, of which one may be taken.
        densities: whether draws of forward passes have their log density; NaN if not.
        groups: how many groups the chains run in; a divisor of their number.
        length: steps of one block.
        draws: steps to take.
        start: where the chains begin.
        key: of all steps.
    """

    kernel: AbstractKernel
    whitening: Whitening
    target: AbstractTarget | None
    metropolis: bool
    tries: int
    densities: bool
    groups: int
    length: int
    draws: int
    start: ChainState
    key: PRNGKeyArray

    def compile(self) -> None:
        """Compile what a block needs ahead of its first run; quick if it was compiled before."""
        _ = self._programs

    def blocks(self) -> Iterator[Block]:
        """The draws. The next block is under way while the last is looked at."""
        self.compile()
        parts = [self._group(number) for number in range(self.groups)]
        if len(parts) == 1:
            yield from parts[0]
        else:
            yield from map(Block.beside, side_by_side(parts))

    def _group(self, number: int) -> Iterator[Block]:
        make_noise, advance_block = self._programs
        state, key, pending, left = self._start(number), self._key(number), None, 0
        for first in range(0, self.draws, self.length):
            noise = make_noise(*self._noise_arguments(key, first))
            state, steps = advance_block(*self._block_arguments(state, noise))
            if pending is not None:
                yield fetch(pending, left)
            pending, left = steps, min(self.length, self.draws - first)
        if pending is not None:
            yield fetch(pending, left)

    @functools.cached_property
    def _programs(self) -> tuple[Any, Any]:
        """What makes the noise of a block, and what advances it: all groups share them.

        Compiled here and not by their first call: JAX's settings belong to a thread, so that on
        another one the same call might be traced anew, and in another precision.
        """
        noise_program: Any = step_noise  # their types do not tell of `lower`
        block_program: Any = advance
        arguments = self._noise_arguments(self._key(0), 0)
        noise = step_noise(*arguments)
        return (
            noise_program.lower(*arguments).compile(),
            block_program.lower(*self._block_arguments(self._start(0), noise)).compile(),
        )

    def _key(self, group: int) -> PRNGKeyArray:
        return self.key if self.groups == 1 else jax.random.fold_in(self.key, group)

    def _start(self, group: int) -> ChainState:
        size = len(self.start.points) // self.groups
        return ChainState(*(values[group * size :][:size] for values in self.start))

    def _noise_arguments(self, key: PRNGKeyArray, first: int) -> tuple[Any, ...]:
        rows = self.tries + 1 if self.tries > 1 else 1
        size = len(self.start.points) // self.groups
        return key, np.array(first, np.int32), self.length, rows, size

    def _block_arguments(self, state: ChainState, noise: Noise) -> tuple[Any, ...]:
        things = (self.kernel, self.whitening, self.target, state, noise)
        return (*things, self.metropolis, self.tries, self.densities)


@eqx.filter_jit
def step_noise(
    key: PRNGKeyArray, first: Int[Array, ""], length: int, rows: int, chains: int
) -> Noise:
    """The randomness of `length` steps from step number `first` on.

    Apart from `advance`, because random numbers take long to compile: all kernels share this.
    """

    def one(number: Array) -> tuple[Array, Array]:
        propose_key, accept_key = jax.random.split(jax.random.fold_in(key, number))
        # 1 − U lies in (0, 1], so that the logarithm is finite.
        return propose_key, jnp.log1p(-jax.random.uniform(accept_key, (rows, chains)))

    return Noise(*jax.vmap(one)(first + jnp.arange(length)))


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


def block_length(chains: int, draws: int, tries: int = 1) -> int:
    """Steps of one block: a power of two, so that runs of any length share a few traces.

    The longest that fits `BLOCK_PROPOSALS` and computes at most a tenth in vain.
    """
    longest = max(1, BLOCK_PROPOSALS // (chains * tries))
    length = 1 << (longest.bit_length() - 1)
    while length > 1 and -draws % length > _WASTE * draws:
        length //= 2
    return length


def group_count(chains: int) -> int:
    """Groups for so many chains, all of one size and the same on every machine.

    As many as there are cores on many machines; a scan over fewer chains than `_FEWEST` is no
    quicker.
    """
    most = min(_MOST_GROUPS, max(1, chains // _FEWEST))
    return max(count for count in range(1, most + 1) if chains % count == 0)


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
