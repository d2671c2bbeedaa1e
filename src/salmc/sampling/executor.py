"""How chains are run: divided into groups, block by block, by an `Executor`.

A compiled scan goes from step to step on one core, however many chains it moves. So chains are
divided into groups, each in a scan of its own, and an executor decides who works them off and when:

    Threads     one thread for each group: a CPU
    InTurn      one group after the other: an accelerator, or programs that must not meet

An executor changes speed and never draws: randomness belongs to a chain, groups follow from the
number of chains alone, and a group's blocks come one after the other wherever they are computed.
"""

import abc
import dataclasses
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Integer, Key

from salmc.programs import compiled_to_run_long
from salmc.sampling.chain_states import ChainState, Steps
from salmc.sampling.chains import Transition

BLOCK_PROPOSALS = 8192
"""Proposals of a group in one block: enough for full speed on a CPU, few enough for its caches, for
progress and for Ctrl-C."""

_FULL_BLOCKS = 4
"""All groups together have at most so many times as many proposals in a block."""

_WASTE = 0.1
"""Steps that may be computed in vain, as a share of those asked for, to share a trace."""

_MOST_GROUPS, _FEWEST_CHAINS = 8, 16
"""Groups that chains run in, at most, and chains of a group, at least."""

_MUST_NOT_MEET = re.compile(
    r"callback|stablehlo\.(custom_call|fft|cholesky|triangular_solve|convolution|sort)"
)
"""Operations that keep programs from running at the same time. XLA's CPU client has one pool of
threads: a LAPACK call or an FFT inside a program waits for that pool while it holds a thread of it,
and two such programs wait for each other for ever. A black box may not bear two calls at once."""


Item = TypeVar("Item")
"""What groups give, one after the other: blocks."""


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Draws of some steps on the host, in the target's own coordinates.

    Attributes:
        positions: (step, chain, dim).
        log_density: (step, chain).
        accepted: (step, chain) of bool; without a Metropolis step, whether a proposal was finite.
        invalid: how many proposals were not finite.
        states: of each group of chains after the last step, to go on from there another time.
    """

    positions: np.ndarray
    log_density: np.ndarray
    accepted: np.ndarray
    invalid: int = 0
    states: tuple[ChainState, ...] = ()

    def __len__(self) -> int:
        return len(self.positions)

    def only(self, steps: Any) -> "Block":
        """Some of the steps, by a slice or a mask."""
        return Block(self.positions[steps], self.log_density[steps], self.accepted[steps])

    @staticmethod
    def join(blocks: "Sequence[Block]", axis: int = 0) -> "Block":
        """One after the other, or, along axis 1, the same steps of several groups of chains."""
        if len(blocks) == 1:
            return blocks[0]
        return Block(
            np.concatenate([block.positions for block in blocks], axis),
            np.concatenate([block.log_density for block in blocks], axis),
            np.concatenate([block.accepted for block in blocks], axis),
            sum(block.invalid for block in blocks),
            blocks[-1].states if axis == 0 else tuple(s for block in blocks for s in block.states),
        )


class AbstractExecutor(abc.ABC):
    """Works off groups of chains."""

    @abc.abstractmethod
    def run(self, groups: list[Iterator[Item]]) -> Iterator[list[Item]]:
        """The next block of each group, one list after the other, until they end.

        No group may be worked on by two threads at a time.
        """


class InTurn(AbstractExecutor):
    """One group after the other, on the thread of whoever asks."""

    def run(self, groups: list[Iterator[Item]]) -> Iterator[list[Item]]:
        return map(list, zip(*groups, strict=True))


class Threads(AbstractExecutor):
    """A thread for each group.

    While a list of blocks is looked at, the next is under way. An error in one group is raised
    here; what the others still do is not waited for, so that Ctrl-C is answered at once.
    """

    def run(self, groups: list[Iterator[Item]]) -> Iterator[list[Item]]:
        workers = [ThreadPoolExecutor(1, "salmc-chains") for _ in groups]

        def begin() -> list[Future[Item | None]]:
            pairs = zip(workers, groups, strict=True)
            return [worker.submit(next, group, None) for worker, group in pairs]

        try:
            pending = begin()
            while True:
                items = [future.result() for future in pending]
                found = [item for item in items if item is not None]
                if len(found) < len(items):
                    return
                pending = begin()
                yield found
        finally:
            for worker in workers:
                worker.shutdown(wait=False, cancel_futures=True)


class ChainRun:
    """Chains that are ready to run: compiled, and divided into groups.

    Compiled here and not by the first block, on the thread of whoever asks: JAX's settings belong
    to a thread, and what is compiled here does not count as time of sampling.

    Args:
        transition: what a step does.
        start: where the chains begin.
        keys: of the chains.
        draws: steps to take.
        executor: who works the groups off; by default threads on a CPU, where programs may meet.
    """

    def __init__(
        self,
        transition: Transition,
        start: ChainState,
        keys: Key[Array, " chains"],
        draws: int,
        executor: AbstractExecutor | None = None,
    ) -> None:
        self.transition, self.draws, self.chains = transition, draws, len(start.points)
        self.dim, self.dtype = start.points.shape[1], np.dtype(start.points.dtype)
        on_cpu = jax.default_backend() == "cpu"
        self.groups = group_count(self.chains) if on_cpu else 1
        self.length = block_length(self.chains, draws, transition.width, self.groups)
        self.start = start
        self._done, self._starts = 0, self._in_groups(start)
        self._keys = [keys[part] for part in self._parts()]
        # NumPy arrays among the fields would be read in the precision of the thread that runs.
        self._fixed = jax.tree.map(
            lambda leaf: jnp.asarray(leaf) if isinstance(leaf, np.ndarray) else leaf, transition
        )
        self._program, may_meet = self._compile()
        if executor is None:
            executor = Threads() if may_meet and on_cpu and self.groups > 1 else InTurn()
        self.executor = executor if may_meet else InTurn()

    def state_of(self, arrays: Sequence[np.ndarray]) -> ChainState:
        """A state from its parts, if they are of the shapes that states of these chains have.

        Raises:
            ValueError: if they are not.
        """
        for name, found, like in zip(ChainState._fields, arrays, self.start, strict=True):
            if found.shape != like.shape or found.dtype != like.dtype:
                raise ValueError(f"{name} of shape {found.shape}")
        return ChainState(*map(jnp.asarray, arrays))

    def go_on(self, state: ChainState, done: int) -> None:
        """Begin after `done` steps, in the state that chains had then."""
        self._done, self._starts = done, self._in_groups(state)

    def _parts(self) -> list[slice]:
        size = self.chains // self.groups
        return [slice(group * size, (group + 1) * size) for group in range(self.groups)]

    def _in_groups(self, state: ChainState) -> list[ChainState]:
        return [ChainState(*(values[part] for values in state)) for part in self._parts()]

    def blocks(self) -> Iterator[Block]:
        """The draws. The next block is under way while the last is looked at."""
        pairs = zip(self._starts, self._keys, strict=True)
        groups = [self._group(state, keys) for state, keys in pairs]
        return (Block.join(blocks, axis=1) for blocks in self.executor.run(groups))

    def _group(self, state: ChainState, keys: Key[Array, " chains"]) -> Iterator[Block]:
        pending: tuple[Steps, int, ChainState] | None = None
        for first in range(self._done, self.draws, self.length):
            state, steps = self._program(
                self._fixed, state, keys, np.array(first, np.uint32), self.length
            )
            if pending is not None:
                yield _fetch(*pending)
            pending = steps, min(self.length, self.draws - first), state
        if pending is not None:
            yield _fetch(*pending)

    def _compile(self) -> tuple[Any, bool]:
        """The program of a block, and whether several of it may run at a time."""
        config: Any = jax.config  # its type does not tell of its settings
        if config.jax_disable_jit:
            return _block, False
        program: Any = _block  # nor does this one of `lower`
        lowered = program.lower(
            self._fixed, self._starts[0], self._keys[0], np.array(0, np.uint32), self.length
        )
        watched = config.jax_debug_nans or config.jax_debug_infs
        return lowered.compile(), not watched and not _MUST_NOT_MEET.search(lowered.as_text())


def group_count(chains: int) -> int:
    """Groups for so many chains, all of one size.

    As many as there are cores on many machines; a scan over fewer than `_FEWEST_CHAINS` is no
    quicker.
    """
    most = min(_MOST_GROUPS, max(1, chains // _FEWEST_CHAINS))
    return max(count for count in range(1, most + 1) if chains % count == 0)


def block_length(chains: int, draws: int, tries: int = 1, groups: int | None = None) -> int:
    """Steps of one block: a power of two, so that runs of any length share a few traces.

    The longest that fits `BLOCK_PROPOSALS` and computes at most a tenth in vain.
    """
    counted = max(chains // (groups or group_count(chains)), chains // _FULL_BLOCKS)
    longest = max(1, BLOCK_PROPOSALS // (counted * tries))
    length = 1 << (longest.bit_length() - 1)
    while length > 1 and -draws % length > _WASTE * draws:
        length //= 2
    return length


@compiled_to_run_long
def _block(
    transition: Transition,
    state: ChainState,
    keys: Key[Array, " chains"],
    first: Integer[Array | np.ndarray, ""],
    length: int,
) -> tuple[ChainState, Steps]:
    """Weights, seeds and blocks share one trace: all of them are arguments."""
    return transition.block(state, keys, first, length)


def _fetch(steps: Steps, count: int, reached: ChainState) -> Block:
    """To the host, without the steps beyond the end of the run."""
    positions, log_density, accepted = (np.asarray(array)[:count] for array in steps[:3])
    return Block(positions, log_density, accepted, int(steps.invalid), (reached,))
