"""A job: the smallest piece of an experiment that is computed, kept and never computed again.

A job is named by its arguments, which are JSON values. Its result is kept under a key, made of the
arguments and of all else that decides the result: the version of its code, the settings it rests
on, and the jobs it needs, such as the training of a kernel. So a new default makes a new training
and new chains of it, and what the old one gave is not shown any more. A job's function gets a
`Context` and returns figures (JSON), with arrays or files beside them where numbers are many. Two
experiments that need the same job share one result.
"""

import dataclasses
import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from salmc.errors import SalmcError

_LONGEST_WORDS = 60
"""Characters of a key that are for people; the digest behind them tells keys apart."""


class NotAvailableError(SalmcError):
    """What a job needs is not part of this installation: a method, a target, a package, data."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much of an experiment is run.

    Attributes:
        quick: a smoke run: fewer steps, chains and seeds, whose numbers mean little.
        seeds: trainings for each row; the experiment's own number where None.
        runs: random splits or repetitions; likewise.
        rival_seeds, rival_runs: the same for A-NICE-MC, whose training is expensive.
    """

    quick: bool = False
    seeds: int | None = None
    runs: int | None = None
    rival_seeds: int | None = None
    rival_runs: int | None = None

    def number(self, name: str, full: int, quick: int) -> int:
        """The number that was asked for, or the default of the full or the quick run."""
        asked = getattr(self, name)
        if asked is not None:
            return int(asked)
        return quick if self.quick else full


@dataclasses.dataclass(frozen=True, eq=False)
class Product:
    """What a job's function returns.

    Attributes:
        figures: JSON values; NumPy numbers and small arrays are converted.
        arrays: what is too large for JSON, by name.
        files: suffixes of files that the function wrote at `Context.place(suffix)`.
    """

    figures: dict[str, Any]
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """One piece of work.

    Attributes:
        experiment: the folder of its result.
        name: for a person.
        arguments: JSON values; what the function gets, and how results are found.
        function: what is done; see the module's text.
        version: of that function: a higher one makes kept results void.
        needs: jobs that must be done before.
        settings: the library's defaults that the function takes without being told; JSON values.
        seconds: about what it takes on one quiet core, for the estimate at the start.
        support: whether results of the same target are judged by it, so that it is run with them.
        entry: where its figures stand in a file of several jobs; no part of the key.
    """

    experiment: str
    name: str
    arguments: dict[str, Any]
    function: Callable[["Context"], Product | dict[str, Any]]
    version: int = 1
    needs: tuple["Job", ...] = ()
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: int | float = 10.0
    support: bool = False
    entry: tuple[str, ...] | None = None

    @property
    def file_entry(self) -> tuple[str, ...]:
        """Its entry, or its name where it has none."""
        return (self.name,) if self.entry is None else self.entry

    @functools.cached_property
    def key(self) -> str:
        """Readable words, and a digest of all that decides the result."""
        needed = [(need.experiment, need.key) for need in self.needs]
        told = json.dumps([self.version, self.arguments, self.settings, needed], sort_keys=True)
        words = "-".join(_word(name, value) for name, value in self.arguments.items())
        stem = re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")[:_LONGEST_WORDS]
        return f"{stem}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"


@dataclasses.dataclass(frozen=True, eq=False)
class Record:
    """What became of a job.

    Attributes:
        job: its arguments, name and so on.
        status: "done", "failed", "not available" or "not run".
        figures: of a job that is done.
        arrays: likewise.
        folder_files: files that it wrote, by suffix.
        sentence: why there is no result.
        seconds: what it took.
        cpu_seconds: of processor time, which other work on the machine hardly changes.
        when: the day.
        made_by: versions and machine, as the store wrote them.
    """

    job: Job
    status: str = "not run"
    figures: dict[str, Any] = dataclasses.field(default_factory=dict)
    arrays: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    folder_files: dict[str, Path] = dataclasses.field(default_factory=dict)
    sentence: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    when: str = ""
    made_by: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.status == "done"

    def figure(self, name: str) -> float:
        """A number; NaN where it is missing or was not finite."""
        value = self.figures.get(name)
        return float("nan") if value is None else float(value)


@dataclasses.dataclass(frozen=True, eq=False)
class Context:
    """What a job's function may use.

    Attributes:
        arguments: of the job.
        needed: records of the jobs it needs, in order; all of them done.
        place: suffix ↦ where a file of this job goes.
    """

    arguments: dict[str, Any]
    needed: tuple[Record, ...]
    place: Callable[[str], Path]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]


class Results:
    """The records of one experiment, found by their arguments."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = tuple(records)

    def done(self, **arguments: Any) -> list[Record]:
        """Those with a result whose arguments have these values."""
        return [record for record in self.having(**arguments) if record.done]

    def having(self, **arguments: Any) -> list[Record]:
        """All whose arguments have these values."""
        wanted = arguments.items()
        return [r for r in self.records if all(r.job.arguments.get(n) == v for n, v in wanted)]

    def first(self, **arguments: Any) -> Record | None:
        """The first with a result, or None."""
        found = self.done(**arguments)
        return found[0] if found else None

    def values(self, figure: str, **arguments: Any) -> list[float]:
        """A figure of each that is done, where it is a number."""
        numbers = [record.figure(figure) for record in self.done(**arguments)]
        return [value for value in numbers if math.isfinite(value)]

    @property
    def any_done(self) -> bool:
        """Whether anything can be shown."""
        return any(record.done for record in self.records)


def not_interrupted(warnings: Iterable[str]) -> None:
    """Training and sampling end in good order on Ctrl-C; their half is worth nothing to a job.

    Raises:
        KeyboardInterrupt: if a warning tells of it.
    """
    if any(warning.startswith("Interrupted") for warning in warnings):
        raise KeyboardInterrupt


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Every job once, each after those it needs."""
    ordered: dict[tuple[str, str], Job] = {}

    def add(job: Job) -> None:
        for need in job.needs:
            add(need)
        ordered.setdefault((job.experiment, job.key), job)

    for job in jobs:
        add(job)
    return list(ordered.values())


def chosen(jobs: Iterable[Job], only: Iterable[str]) -> list[Job]:
    """Jobs that have a word of each entry among their arguments' values, and what supports them.

    Args:
        jobs: of an experiment.
        only: entries such as "ring,mog2": words of one entry are alternatives.
    """
    wanted = [{word.strip() for word in entry.split(",") if word.strip()} for entry in only]
    everything = list(jobs)

    def fits(job: Job) -> bool:
        words = {str(value) for value in job.arguments.values()}
        return all(words & entry for entry in wanted)

    targets = {job.arguments.get("target") for job in everything if fits(job)}
    return [j for j in everything if fits(j) or (j.support and j.arguments["target"] in targets)]


def _word(name: str, value: Any) -> str:
    """A word of the key: the value where it speaks for itself."""
    if value is None:
        return ""
    return str(value) if isinstance(value, str) else f"{name}{value}"
