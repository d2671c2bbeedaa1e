"""Chains that are ready to run, block by block.

A scan goes from step to step on one core, however many chains it moves. So chains are divided into
groups, each in a scan of its own and, where nothing speaks against it, on a thread of its own.
How they are divided follows from their number alone: a seed gives the same draws everywhere.
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.whitening import Whitening
from salmc.sampling.block import Block, fetch
from salmc.sampling.chain import advance, step_noise
from salmc.sampling.metropolis import ChainState, Noise
from salmc.sampling.side_by_side import side_by_side
from salmc.target import AbstractTarget

BLOCK_PROPOSALS = 8192
"""Proposals of a group in one block: enough for full speed on a CPU, few enough for its caches, for
progress and for Ctrl-C."""

_FULL_BLOCKS = 4
"""All groups together have at most so many times as many proposals in a block."""

_WASTE = 0.1
"""Steps that may be computed in vain, as a share of those asked for, to share a trace."""

_MOST_GROUPS, _FEWEST_CHAINS = 8, 16
"""Groups that chains run in, at most, and chains of a group, at least."""


class _Prepared(NamedTuple):
    """What was made ahead of the first block."""

    make_noise: Any
    advance: Any
    things: tuple[Any, ...]
    """Kernel, whitening and target."""
    starts: list[ChainState]
    """Of each group."""
    keys: list[PRNGKeyArray]
    threads: bool


@dataclasses.dataclass(frozen=True, eq=False)
class Chains:
    """Chains that are ready to run.

    Attributes:
        kernel, whitening, target: what moves the chains; without a target there is no Metropolis
            step, and log densities are NaN.
        metropolis: whether proposals may be rejected.
        tries: proposals for each step, of which one may be taken.
        densities: whether draws of forward passes have their log density; NaN if not.
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
    draws: int
    start: ChainState
    key: PRNGKeyArray

    @property
    def groups(self) -> int:
        """How many groups the chains run in."""
        return group_count(len(self.start.points))

    @property
    def length(self) -> int:
        """Steps of one block."""
        return block_length(len(self.start.points), self.draws, self.tries)

    @property
    def threads(self) -> bool:
        """Whether groups run at the same time, and not in turn."""
        return self._prepared.threads

    def compile(self) -> None:
        """Make what a block needs ahead of its first run; quick if it was compiled before."""
        _ = self._prepared

    def blocks(self) -> Iterator[Block]:
        """The draws. The next block is under way while the last is looked at."""
        prepared = self._prepared
        pairs = zip(prepared.starts, prepared.keys, strict=True)
        groups = [self._group(prepared, *pair) for pair in pairs]
        if prepared.threads:
            yield from map(Block.beside, side_by_side(groups))
        else:
            yield from (Block.beside(list(blocks)) for blocks in zip(*groups, strict=True))

    def _group(self, prepared: _Prepared, state: ChainState, key: PRNGKeyArray) -> Iterator[Block]:
        pending, left = None, 0
        for first in range(0, self.draws, self.length):
            noise = prepared.make_noise(*self._noise_arguments(key, first))
            state, steps = prepared.advance(*self._block_arguments(prepared.things, state, noise))
            if pending is not None:
                yield fetch(pending, left)
            pending, left = steps, min(self.length, self.draws - first)
        if pending is not None:
            yield fetch(pending, left)

    @functools.cached_property
    def _prepared(self) -> _Prepared:
        """All that groups share, made here and not by their first block.

        JAX's settings belong to a thread: on another one the same call might be traced anew, and in
        another precision. And what is compiled here does not count as time of sampling.
        """
        size = len(self.start.points) // self.groups
        starts = [
            ChainState(*(values[group * size :][:size] for values in self.start))
            for group in range(self.groups)
        ]
        keys = [self.key]
        if self.groups > 1:
            keys = [jax.random.fold_in(self.key, group) for group in range(self.groups)]
        things = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf,
            (self.kernel, self.whitening, self.target),
        )
        config: Any = jax.config  # its type does not tell of its settings
        if config.jax_disable_jit:
            return _Prepared(step_noise, advance, things, starts, keys, threads=False)
        noise_program: Any = step_noise  # nor do these of `lower`
        block_program: Any = advance
        noise_arguments = self._noise_arguments(keys[0], 0)
        make_noise = noise_program.lower(*noise_arguments).compile()
        noise = make_noise(*noise_arguments)
        lowered = block_program.lower(*self._block_arguments(things, starts[0], noise))
        watched = config.jax_debug_nans or config.jax_debug_infs
        threads = self.groups > 1 and not watched and _never_calls_python(lowered)
        return _Prepared(make_noise, lowered.compile(), things, starts, keys, threads)

    def _noise_arguments(self, key: PRNGKeyArray, first: int) -> tuple[Any, ...]:
        rows = self.tries + 1 if self.tries > 1 else 1
        size = len(self.start.points) // self.groups
        return key, np.array(first, np.int32), self.length, rows, size

    def _block_arguments(
        self, things: tuple[Any, ...], state: ChainState, noise: Noise
    ) -> tuple[Any, ...]:
        return (*things, state, noise, self.metropolis, self.tries, self.densities)


def group_count(chains: int) -> int:
    """Groups for so many chains, all of one size.

    As many as there are cores on many machines; a scan over fewer than `_FEWEST_CHAINS` is no
    quicker.
    """
    most = min(_MOST_GROUPS, max(1, chains // _FEWEST_CHAINS))
    return max(count for count in range(1, most + 1) if chains % count == 0)


def block_length(chains: int, draws: int, tries: int = 1) -> int:
    """Steps of one block: a power of two, so that runs of any length share a few traces.

    The longest that fits `BLOCK_PROPOSALS` and computes at most a tenth in vain.
    """
    counted = max(chains // group_count(chains), chains // _FULL_BLOCKS)
    longest = max(1, BLOCK_PROPOSALS // (counted * tries))
    length = 1 << (longest.bit_length() - 1)
    while length > 1 and -draws % length > _WASTE * draws:
        length //= 2
    return length


def _never_calls_python(lowered: Any) -> bool:
    """Whether a program may run twice at a time, which a black box might not bear."""
    return "callback" not in lowered.as_text()
