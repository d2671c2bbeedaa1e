"""Batches of points through a black box: at once, one by one, or by the workers of a pool.

A pool is anything that speaks `concurrent.futures` (`submit`: a process pool, Dask's
`client.get_executor()`, `mpi4py.futures`), or the way of `multiprocessing` (`apply_async`: its own
pool, and Ray's). It changes speed and never values. A batch is cut into parts that take about a
tenth of a second each, by what points have cost so far: long enough that sending them does not
matter, short enough that no worker waits long for another.

A part counts when its values are here, once. If a worker of a process pool dies, the parts that
are lost, and no others, go to a new pool.
"""

import concurrent.futures
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from salmc.errors import ArgumentError, TargetError

PART_SECONDS = 0.1
"""What one part should take."""

FIRST_PARTS = 4
"""For each worker, while nobody knows what a point costs."""

MOST_DEATHS = 3
"""Of pools in a row from which no value came: then it is the points that kill them."""


class Answer(NamedTuple):
    """What a worker gives back for one part."""

    values: np.ndarray
    seconds: float
    trouble: str = ""
    """Why there are no values, in words: exceptions of users cannot always be sent."""


class Evaluation:
    """n points (n, dim) ↦ n values of log p; safe to call from several threads.

    Args:
        function: of a batch of points, or of one.
        vectorized: whether it is of a batch.
        executor: a pool, or None to call the function here.
    """

    def __init__(self, function: Any, *, vectorized: bool = True, executor: Any = None):
        _require(
            callable(function), "log_prob", "a function of a batch of points, or of one", function
        )
        _require(isinstance(vectorized, bool), "vectorized", "True or False", vectorized)
        pool = "a pool with `submit` or `apply_async`, such as a ProcessPoolExecutor"
        _require(executor is None or _speaks(executor), "executor", pool, executor)
        self.function, self.vectorized = function, vectorized
        self.executor = executor
        self.count = 0
        self._cost: float | None = None
        self._lock = threading.Lock()

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The values, in the order of the points.

        Raises:
            TargetError: if the function fails at a point, returns what it should not, or cannot be
                sent to the workers.
        """
        if self.executor is None:
            values = (
                checked(self.function(points), len(points))
                if self.vectorized
                else _values(work(self.function, points, False))
            )
        else:
            values = self._spread(points)
        with self._lock:
            self.count += len(points)
        return values

    def parts(self, count: int) -> list[slice]:
        """How a batch of so many points is cut."""
        workers = workers_of(self.executor)
        size = -(-count // (FIRST_PARTS * workers))
        if self._cost is not None:
            size = int(np.clip(PART_SECONDS / max(self._cost, 1e-9), 1, -(-count // workers)))
        size = max(size, 1)
        return [slice(first, min(first + size, count)) for first in range(0, count, size)]

    def _spread(self, points: np.ndarray) -> np.ndarray:
        values = np.empty(len(points))
        missing, deaths = self.parts(len(points)), 0
        while missing:
            executor = self.executor
            futures: dict[Any, slice] = {}
            lost: list[slice] = []
            try:
                for part in missing:
                    futures[_submit(executor, self.function, points[part], self.vectorized)] = part
            except concurrent.futures.BrokenExecutor:
                lost += missing[len(futures) :]
            try:
                for future, part in futures.items():
                    try:
                        answer = _answer(future)
                    except concurrent.futures.BrokenExecutor:
                        lost.append(part)
                        continue
                    values[part] = _values(answer)
                    self._learn(answer.seconds / len(answer.values))
            finally:
                for future in futures:
                    if hasattr(future, "cancel"):
                        future.cancel()
            deaths = deaths + 1 if len(lost) == len(missing) else 0
            if lost:
                self._renew(executor, deaths)
            missing = lost
        return values

    def _learn(self, cost: float) -> None:
        """Seconds for one point: the newest measurement counts for a fifth."""
        with self._lock:
            self._cost = cost if self._cost is None else 0.8 * self._cost + 0.2 * cost

    def _renew(self, broken: Any, deaths: int) -> None:
        """A new pool like one that broke; only one of several threads makes it."""
        with self._lock:
            if self.executor is not broken:
                return
            if deaths >= MOST_DEATHS or not isinstance(
                broken, concurrent.futures.ProcessPoolExecutor
            ):
                raise TargetError(
                    "The workers of the `executor` died, and again with every new pool: the log "
                    "density ends its process at some point, or takes more memory than there is."
                    if deaths >= MOST_DEATHS
                    else "The workers of the `executor` died, and it cannot be started again from "
                    "here. Start it anew and go on from a checkpoint."
                )
            self.executor = concurrent.futures.ProcessPoolExecutor(
                broken._max_workers,  # type: ignore[attr-defined]
                broken._mp_context,
                broken._initializer,
                broken._initargs,
            )


def work(function: Callable[..., Any], points: np.ndarray, vectorized: bool) -> Answer:
    """What a worker does with one part."""
    began = time.perf_counter()
    nothing = np.full(len(points), np.nan)
    if vectorized:
        try:
            values = checked(function(points), len(points))
        except Exception as error:
            return Answer(nothing, time.perf_counter() - began, _told(error))
        return Answer(values, time.perf_counter() - began)
    values = nothing
    for number, point in enumerate(points):
        try:
            values[number] = _number(function(point))
        except Exception as error:
            place = np.array2string(point, precision=6, threshold=8, separator=", ")
            trouble = f"The log density failed at x = {place}: {_told(error)}"
            return Answer(values, time.perf_counter() - began, trouble)
    return Answer(values, time.perf_counter() - began)


def checked(values: Any, count: int) -> np.ndarray:
    """What a function of a batch returned, if it is one number for each point."""
    try:
        array = None if values is None or np.iscomplexobj(values) else np.asarray(values, float)
    except (TypeError, ValueError):
        array = None
    if array is None or array.shape != (count,):
        got = type(values).__name__ if array is None else f"shape {array.shape}"
        raise TargetError(
            f"The log density must return an array of shape ({count},) for {count} points. Got "
            f"{got} instead. For a function of one point, pass vectorized=False."
        )
    return array


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


def _require(met: bool, name: str, expectation: str, given: Any) -> None:
    """As `salmc.checks`, which would import JAX in every worker."""
    if not met:
        raise ArgumentError(f"The `{name}` argument must be {expectation}. Got {given!r} instead.")


def _speaks(executor: Any) -> bool:
    return hasattr(executor, "submit") or hasattr(executor, "apply_async")


def _submit(executor: Any, *arguments: Any) -> Any:
    if hasattr(executor, "submit"):
        return executor.submit(work, *arguments)
    return executor.apply_async(work, arguments)


def _answer(future: Any) -> Answer:
    try:
        return future.result() if hasattr(future, "result") else future.get()
    except (concurrent.futures.BrokenExecutor, KeyboardInterrupt):
        raise
    # Whatever else a pool raises, it is not the function's: `work` lets none through.
    except Exception as error:
        raise TargetError(
            f"The log density could not be computed by the `executor`: {_told(error)}. A process "
            "pool needs a function at the top of a module that workers can import, and no lambda."
        ) from error


def _values(answer: Answer) -> np.ndarray:
    if answer.trouble:
        raise TargetError(answer.trouble)
    return answer.values


def _number(value: Any) -> float:
    array = np.asarray(value, dtype=float)
    if array.size != 1:
        raise TargetError(
            f"it returned shape {array.shape} for one point, and must return one number. For a "
            "function of a batch of points, pass vectorized=True"
        )
    return float(array.reshape(()))


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return (
        text if isinstance(error, TargetError) else f"{type(error).__name__}: {text}".rstrip(": ")
    )
