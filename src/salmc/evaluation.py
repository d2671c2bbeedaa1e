"""Batches of points through a black box: at once, one by one, or by the workers of a pool.

A pool is anything that speaks `concurrent.futures` (`submit`: a process pool, Dask's
`client.get_executor()`, `mpi4py.futures`), or the way of `multiprocessing` (`apply_async`: its own
pool, and Ray's); see `salmc.worker_pools`. It changes speed and never values. A batch is cut into
parts that take about a tenth of a second each, by what points have cost so far: long enough that
sending them does not matter, short enough that no worker waits long for another.

A part counts when its values are here, once. If a worker dies, the parts that are lost, and no
others, are sent again. With `keep`, values are in a file as soon as they are here
(`salmc.kept_evaluations`), and are not computed a second time, in whatever process.
"""

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from salmc.errors import ArgumentError, OutputError, TargetError
from salmc.kept_evaluations import KeptEvaluations
from salmc.worker_pools import Pending, WorkersDiedError, renewed, speaks, workers_of

PART_SECONDS = 0.1
"""What one part should take."""

FIRST_PARTS = 4
"""For each worker, while nobody knows what a point costs."""

MOST_DEATHS = 3
"""Of pools in a row from which no value came: then it is the points that kill them."""

_SAME = 1e-6
"""Relative: by how much a value that was kept may differ from the same one computed again."""


class Answer(NamedTuple):
    """What a worker gives back for one part."""

    values: np.ndarray
    """Of its first points, as far as it came."""
    seconds: float
    trouble: str = ""
    """Why there are no more values, in words: exceptions of users cannot always be sent."""


class Evaluation:
    """n points (n, dim) ↦ n values of log p; safe to call from several threads.

    Args:
        function: of a batch of points, or of one.
        vectorized: whether it is of a batch.
        executor: a pool, or None to call the function here.
        keep: a file that values are kept in, and taken from; needs `dim`.
        dim: number of coordinates.

    Raises:
        ArgumentError: if an argument makes no sense, or the file has values of another function.
        OutputError: if the file cannot be used.
    """

    def __init__(
        self,
        function: Any,
        *,
        vectorized: bool = True,
        executor: Any = None,
        keep: Any = None,
        dim: int = 0,
    ):
        _require(
            callable(function), "log_prob", "a function of a batch of points, or of one", function
        )
        _require(isinstance(vectorized, bool), "vectorized", "True or False", vectorized)
        pool = "a pool with `submit` or `apply_async`, such as a ProcessPoolExecutor"
        _require(executor is None or speaks(executor), "executor", pool, executor)
        _require(keep is None or isinstance(keep, (str, Path)), "keep", "a path", keep)
        self.function, self.vectorized = function, vectorized
        self.executor = executor
        self.count = 0
        self._cost: float | None = None
        self._lock = threading.Lock()
        self._unkept: OutputError | None = None
        self._kept = None if keep is None else KeptEvaluations(keep, dim)
        if self._kept is not None and self._kept.last is not None:
            self._require_same(self._kept.last)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """The values, in the order of the points.

        Raises:
            TargetError: if the function fails at a point, returns what it should not, or cannot be
                sent to the workers.
        """
        if self._kept is None:
            return self._computed(points)
        with self._lock:
            values, known = self._kept.values(points)
        if not np.all(known):
            values[~known] = self._computed(points[~known])
        if self._unkept is not None:
            raise self._unkept
        return values

    def parts(self, count: int) -> list[slice]:
        """How a batch of so many points is cut."""
        workers = 1 if self.executor is None else workers_of(self.executor)
        size = -(-count // (FIRST_PARTS * workers))
        if self._cost is not None:
            size = int(np.clip(PART_SECONDS / max(self._cost, 1e-9), 1, -(-count // workers)))
        size = max(size, 1)
        return [slice(first, min(first + size, count)) for first in range(0, count, size)]

    def _computed(self, points: np.ndarray) -> np.ndarray:
        if self.executor is not None:
            values = self._spread(points)
        elif self.vectorized:
            values = checked(self.function(points), len(points))
            self._keep(points, Answer(values, 0.0))
        else:
            values = np.empty(len(points))
            for part in self.parts(len(points)):
                answer = work(self.function, points[part], False)
                self._keep(points[part], answer)
                values[part] = self._values(answer)
        with self._lock:
            self.count += len(points)
        return values

    def _spread(self, points: np.ndarray) -> np.ndarray:
        values = np.empty(len(points))
        missing, deaths = self.parts(len(points)), 0
        while missing:
            executor = self.executor
            sent: list[tuple[Pending, slice]] = []
            lost: list[slice] = []
            try:
                try:
                    for part in missing:
                        arguments = (work, self.function, points[part], self.vectorized)
                        kept = partial(self._keep, points[part])
                        sent.append((Pending(executor, kept, *arguments), part))
                except WorkersDiedError:
                    lost += missing[len(sent) :]
                for pending, part in sent:
                    try:
                        values[part] = self._values(_answer(pending))
                    except WorkersDiedError:
                        lost.append(part)
            finally:
                for pending, _ in sent:
                    pending.cancel()
            deaths = deaths + 1 if len(lost) == len(missing) else 0
            if lost:
                self._renew(executor, deaths)
            missing = lost
        return values

    def _keep(self, points: np.ndarray, answer: Answer) -> None:
        """What came of a part goes to the file, in whichever thread it arrives."""
        if self._kept is None or not len(answer.values):
            return
        with self._lock:
            try:
                self._kept.add(points[: len(answer.values)], answer.values)
            except OutputError as error:
                self._unkept = error  # pools would tell nobody

    def _values(self, answer: Answer) -> np.ndarray:
        """All of them; the newest measurement of what a point costs counts for a fifth."""
        if answer.trouble:
            raise TargetError(answer.trouble)
        cost = answer.seconds / len(answer.values)
        with self._lock:
            self._cost = cost if self._cost is None else 0.8 * self._cost + 0.2 * cost
        return answer.values

    def _renew(self, broken: Any, deaths: int) -> None:
        """A new pool like one that broke; only one of several threads makes it."""
        with self._lock:
            if self.executor is not broken:
                return
            if deaths >= MOST_DEATHS:
                raise TargetError(
                    "The workers of the `executor` died, and again with every new pool: the log "
                    "density ends its process at some point, or takes more memory than there is."
                )
            self.executor = renewed(broken)

    def _require_same(self, point: np.ndarray) -> None:
        """A file of another function would be believed, one value after the other."""
        assert self._kept is not None
        told = float(self._kept.values(point[None])[0][0])
        found = float(self._computed(point[None])[0])
        if not (found == told or abs(found - told) <= _SAME * (1.0 + abs(told))):
            raise ArgumentError(
                f"The `keep` argument must be a file of this log density: at a point where "
                f"{self._kept.path} has {told:.6g}, the function gives {found:.6g}. Give another "
                "path, or remove the file."
            )


def work(function: Callable[..., Any], points: np.ndarray, vectorized: bool) -> Answer:
    """What a worker does with one part."""
    began = time.perf_counter()
    if vectorized:
        try:
            values = checked(function(points), len(points))
        except Exception as error:
            return Answer(np.empty(0), time.perf_counter() - began, _told(error))
        return Answer(values, time.perf_counter() - began)
    values = np.empty(len(points))
    for number, point in enumerate(points):
        try:
            values[number] = _number(function(point))
        except Exception as error:
            place = np.array2string(point, precision=6, threshold=8, separator=", ")
            trouble = f"The log density failed at x = {place}: {_told(error)}"
            return Answer(values[:number], time.perf_counter() - began, trouble)
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


def _require(met: bool, name: str, expectation: str, given: Any) -> None:
    """As `salmc.checks`, which would import JAX in every worker."""
    if not met:
        raise ArgumentError(f"The `{name}` argument must be {expectation}. Got {given!r} instead.")


def _answer(pending: Pending) -> Answer:
    try:
        return pending.answer()
    except (WorkersDiedError, KeyboardInterrupt):
        raise
    # Whatever else a pool raises, it is not the function's: `work` lets none through.
    except Exception as error:
        raise TargetError(
            f"The log density could not be computed by the `executor`: {_told(error)}. A process "
            "pool needs a function at the top of a module that workers can import, and no lambda."
        ) from error


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
