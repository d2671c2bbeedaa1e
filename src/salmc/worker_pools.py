"""Pools of workers, as they differ: how parts are sent and collected, and what a death means.

`submit` (processes, Dask, MPI) gives futures, `apply_async` (`multiprocessing`, Ray) gives results
to wait for. Dask sends again what a dead worker had; MPI ends with it. A process pool is broken by
a death, and Ray's keeps the dead actor: such a pool is made anew. `multiprocessing` replaces the
worker, and never answers for what that had: it is waited for only while the same workers live.

Without JAX, which workers need not import.
"""

import concurrent.futures
import contextlib
import multiprocessing.pool
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from salmc.errors import TargetError

_LOOK, _TOLD_WITHIN = 0.5, 60.0
"""Seconds between looks at whether the workers of `multiprocessing` still live; and that a pool has
for calling back."""

_RAY_DEATHS = frozenset({"RayActorError", "WorkerCrashedError"})
"""Ray is not imported here; its errors are known by name."""


class WorkersDiedError(Exception):
    """Some of what was sent will never be answered."""


def speaks(executor: Any) -> bool:
    """Whether it is a pool at all."""
    return hasattr(executor, "submit") or hasattr(executor, "apply_async")


def workers_of(executor: Any) -> int:
    """How many workers a pool has, as far as it tells; as many as there are cores if not."""
    for name in ("_max_workers", "_processes"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    actors: Sequence[Any] | None = getattr(executor, "_actor_pool", None)
    if actors:
        return len(actors)
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        return max(1, sum(client.nthreads().values()))
    return os.cpu_count() or 1


class Pending:
    """One part that was sent.

    Args:
        executor: the pool.
        then: told the answer as soon as it is here, in any thread.
        function, arguments: what to compute.

    Raises:
        WorkersDiedError: if the pool takes nothing any more.
    """

    def __init__(
        self,
        executor: Any,
        then: Callable[[Any], None],
        function: Callable[..., Any],
        *arguments: Any,
    ):
        self._executor, self._workers = executor, _living(executor)
        self._told = threading.Event()

        def tell(answer: Any) -> None:
            try:
                then(answer)
            finally:
                self._told.set()

        with _deaths():
            if hasattr(executor, "submit"):
                self._future = executor.submit(function, *arguments)
                self._future.add_done_callback(partial(_tell, tell))
            else:
                self._future = executor.apply_async(function, arguments, callback=tell)

    def answer(self) -> Any:
        """What was computed; waits for it.

        Raises:
            WorkersDiedError: if nobody will compute it.
        """
        with _deaths():
            if self._workers is not None:
                while not self._future.ready():
                    self._future.wait(_LOOK)
                    if not self._future.ready() and _living(self._executor) != self._workers:
                        raise WorkersDiedError
            has_result = hasattr(self._future, "result")
            answer = self._future.result() if has_result else self._future.get()
        # Pools wake those who wait before they call back: what is returned has been kept.
        self._told.wait(_TOLD_WITHIN)
        return answer

    def cancel(self) -> None:
        """It is no longer wanted."""
        if hasattr(self._future, "cancel"):
            self._future.cancel()


def _tell(then: Callable[[Any], None], future: Any) -> None:
    if not future.cancelled() and future.exception() is None:
        then(future.result())


def renewed(broken: Any) -> Any:
    """A pool like one whose workers died; the same one where it has replaced them itself.

    Raises:
        TargetError: if it cannot be made anew from here.
    """
    if isinstance(broken, concurrent.futures.ProcessPoolExecutor):
        return concurrent.futures.ProcessPoolExecutor(
            broken._max_workers,  # type: ignore[attr-defined]
            broken._mp_context,
            broken._initializer,
            broken._initargs,
        )
    if isinstance(broken, multiprocessing.pool.Pool):
        return broken
    if hasattr(broken, "_actor_pool"):
        made = type(broken)(
            workers_of(broken),
            broken._initializer,
            broken._initargs,
            broken._maxtasksperchild,
            ray_remote_args=broken._ray_remote_args,
        )
        broken.terminate()
        return made
    raise TargetError(
        "The workers of the `executor` died, and it cannot be started again from here. Start it "
        "anew and go on from a checkpoint."
    )


def _living(executor: Any) -> frozenset[int] | None:
    """Ids of the workers of `multiprocessing`; None of others, which tell of deaths themselves."""
    if not isinstance(executor, multiprocessing.pool.Pool) or isinstance(
        executor, multiprocessing.pool.ThreadPool
    ):
        return None
    if executor._maxtasksperchild is not None:  # type: ignore[attr-defined]
        return None  # its workers end by themselves
    return frozenset(worker.pid for worker in executor._pool)  # type: ignore[attr-defined]


@contextlib.contextmanager
def _deaths() -> Iterator[None]:
    """Turns what pools raise at a death into one error."""
    try:
        yield
    except Exception as error:
        names = {parent.__name__ for parent in type(error).__mro__}
        if isinstance(error, concurrent.futures.BrokenExecutor) or names & _RAY_DEATHS:
            raise WorkersDiedError from error
        raise
