"""Results of all jobs of a benchmark in one JSON file, which is part of the repository.

    <folder>/<experiment>.json    the command, the machine, the figures of each job, and of which
                                  job, day and machine they are

The figures of a job stand under its `entry`. Files that were written before jobs were told of in
them count: figures without a key are of the job whose entry they stand at, until that is run again.
There is room for figures alone: a job with arrays or files belongs into a `Store`.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from salmc.json_values import plain, to_text
from salmc_paper.harness.jobs import Context, Job, Product, Record
from salmc_paper.harness.store import AbstractStore, machine, read_json, write_text

_MACHINE = ("cores", "python", "jax")
_HEADER = ("command", "when", *_MACHINE)
_JOBS, _OLDER = "jobs", "older"
"""What is told of each job by its key; and the header of figures that came before."""


class OneFileStore(AbstractStore):
    """Where the results of benchmarks are kept.

    Args:
        folder: of the files.
        command: of an experiment's name, what makes its results.
    """

    def __init__(self, folder: str | Path, command: Callable[[str], str]) -> None:
        self.folder = Path(folder)
        self._command = command

    def place(self, experiment: str) -> Path:
        """The file of a benchmark."""
        return self.folder / f"{experiment}.json"

    def context(self, job: Job, needed: tuple[Record, ...]) -> Context:
        return Context(dict(job.arguments), needed, _no_place)

    def read(self, job: Job) -> Record:
        content = read_json(self.place(job.experiment)) or {}
        figures = _at(content, job.file_entry)
        told = content.get(_JOBS, {})
        others = [key for key, one in told.items() if one["entry"] == list(job.file_entry)]
        if not figures or (others and job.key not in others):
            return Record(job)
        made = told.get(job.key, {})
        header = content.get(_OLDER, content)
        return Record(
            job,
            status="done",
            figures=figures,
            seconds=float(made.get("seconds", 0.0)),
            cpu_seconds=float(made.get("cpu_seconds", 0.0)),
            when=str(made.get("when", header.get("when", ""))),
            made_by=dict(made.get("made_by") or {n: header.get(n) for n in _MACHINE}),
        )

    def write(
        self, job: Job, product: Product | dict[str, Any], seconds: float, cpu_seconds: float = 0.0
    ) -> Record:
        if isinstance(product, Product):
            if product.arrays or product.files:
                raise ValueError(f"{job.name} has arrays or files, and here is room for figures.")
            product = product.figures
        before = read_json(self.place(job.experiment)) or {}
        told = before.pop(_JOBS, None)
        header = {name: before.pop(name) for name in _HEADER if name in before}
        older = before.pop(_OLDER, header if told is None else None)
        told = {
            key: one for key, one in (told or {}).items() if one["entry"] != list(job.file_entry)
        }
        made_by, when = machine(), time.strftime("%Y-%m-%d")
        told[job.key] = {
            "entry": list(job.file_entry),
            "seconds": round(seconds, 3),
            "cpu_seconds": round(cpu_seconds, 3),
            "when": when,
            "made_by": made_by,
        }
        figures = _with(before, job.file_entry, plain(product))
        content = {
            "command": self._command(job.experiment),
            "when": when,
            **{name: made_by[name] for name in _MACHINE},
            **figures,
            **({_OLDER: older} if older else {}),
            _JOBS: told,
        }
        write_text(self.place(job.experiment), to_text(content, indent=2))
        return self.read(job)

    def write_failure(self, job: Job, status: str, sentence: str) -> Record:
        """Told, and not kept: results that are there stay."""
        return Record(job, status=status, sentence=sentence, when=time.strftime("%Y-%m-%d"))


def _no_place(suffix: str) -> Path:
    raise ValueError(f"A benchmark keeps figures alone, and no file {suffix}.")


def _at(content: dict[str, Any], entry: tuple[str, ...]) -> dict[str, Any]:
    """The figures at an entry; empty if there are none."""
    found: Any = {n: v for n, v in content.items() if n not in (*_HEADER, _JOBS, _OLDER)}
    for name in entry:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _with(
    content: dict[str, Any], entry: tuple[str, ...], figures: dict[str, Any]
) -> dict[str, Any]:
    """The content with other figures at an entry."""
    if not entry:
        return figures
    first, *rest = entry
    return {**content, first: _with(content.get(first, {}), tuple(rest), figures)}
