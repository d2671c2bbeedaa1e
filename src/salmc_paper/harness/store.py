"""Results of jobs on the disk.

    <folder>/<experiment>/<key>.json          figures, arguments, and digests of the files beside
    <folder>/<experiment>/<key>.npz           arrays, without pickle
    <folder>/<experiment>/<key>.<suffix>      further files, such as a trained kernel
    <folder>/<experiment>/<key>.failed.json   why the last try gave nothing

The JSON file is written last, beside its place and then renamed: where it is, the result is whole.
A file that is damaged, or that no longer has its digest, counts as missing, so that the job is
computed again.
"""

import abc
import dataclasses
import hashlib
import json
import os
import platform
import time
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from salmc.json_values import plain, to_text
from salmc.sampling.files.atomic import new_file, output_errors, write_file
from salmc_paper.harness.jobs import Context, Job, Product, Record

FORMAT = 1
_ARRAYS = "npz"


class AbstractStore(abc.ABC):
    """Where results are kept; what the runner needs of it."""

    @abc.abstractmethod
    def context(self, job: Job, needed: tuple[Record, ...]) -> Context:
        """What the job's function may use."""

    @abc.abstractmethod
    def read(self, job: Job) -> Record:
        """The result; a record without one if it is missing, damaged or was never made."""

    @abc.abstractmethod
    def write(
        self, job: Job, product: Product | dict[str, Any], seconds: float, cpu_seconds: float = 0.0
    ) -> Record:
        """Keep a result, and what it took.

        Raises:
            OutputError: if it cannot be written.
        """

    @abc.abstractmethod
    def write_failure(self, job: Job, status: str, sentence: str) -> Record:
        """Why there is no result; the job is tried again the next time."""


class Store(AbstractStore):
    """A folder with a file for each result, and others beside it.

    Args:
        folder: made when the first result is written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def place(self, job: Job, suffix: str) -> Path:
        """Where a file of a job is."""
        return self.folder / job.experiment / f"{job.key}.{suffix}"

    def context(self, job: Job, needed: tuple[Record, ...]) -> Context:
        folder = self.folder / job.experiment
        with output_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return Context(dict(job.arguments), needed, lambda suffix: self.place(job, suffix))

    def read(self, job: Job) -> Record:
        content = read_json(self.place(job, "json"))
        if content is not None and content.get("arguments") == plain(job.arguments):
            record = self._whole(job, content)
            if record is not None:
                return record
        failure = read_json(self.place(job, "failed.json"))
        if failure is None:
            return Record(job)
        return Record(
            job,
            status=str(failure.get("status", "failed")),
            sentence=str(failure.get("sentence", "")),
            when=str(failure.get("when", "")),
        )

    def write(
        self, job: Job, product: Product | dict[str, Any], seconds: float, cpu_seconds: float = 0.0
    ) -> Record:
        if not isinstance(product, Product):
            product = Product(product)
        files = list(product.files)
        with output_errors(self.folder):
            self.place(job, "json").parent.mkdir(parents=True, exist_ok=True)
        if product.arrays:
            with new_file(self.place(job, _ARRAYS)) as file:
                # Without names that could be mistaken for arguments of `savez`.
                named: dict[str, Any] = {f"a/{n}": a for n, a in product.arrays.items()}
                np.savez_compressed(file, **named)
            files.append(_ARRAYS)
        content = {
            "format": FORMAT,
            "experiment": job.experiment,
            "name": job.name,
            "version": job.version,
            "arguments": plain(job.arguments),
            "settings": plain(job.settings),
            "needs": [f"{need.experiment}/{need.key}" for need in job.needs],
            "figures": plain(product.figures),
            "files": {suffix: _digest(self.place(job, suffix)) for suffix in files},
            "seconds": round(seconds, 3),
            "cpu_seconds": round(cpu_seconds, 3),
            "when": time.strftime("%Y-%m-%d"),
            "made_by": machine(),
        }
        _write_json(self.place(job, "json"), content)
        self.place(job, "failed.json").unlink(missing_ok=True)
        record = self._whole(job, json.loads(json.dumps(content)))
        assert record is not None
        return record

    def write_failure(self, job: Job, status: str, sentence: str) -> Record:
        content = {"status": status, "sentence": sentence, "when": time.strftime("%Y-%m-%d")}
        with output_errors(self.folder):
            self.place(job, "json").parent.mkdir(parents=True, exist_ok=True)
        _write_json(self.place(job, "failed.json"), content)
        return Record(job, status=status, sentence=sentence, when=content["when"])

    def _whole(self, job: Job, content: dict[str, Any]) -> Record | None:
        """The record, or None if the content or a file beside it is not as it was written."""
        try:
            if content["format"] != FORMAT:
                return None
            places = {str(suffix): self.place(job, suffix) for suffix in content["files"]}
            for suffix, place in places.items():
                if _digest(place) != content["files"][suffix]:
                    return None
            arrays = _read_arrays(places[_ARRAYS]) if _ARRAYS in places else {}
            return Record(
                job,
                status="done",
                figures=dict(content["figures"]),
                arrays=arrays,
                folder_files=places,
                seconds=float(content["seconds"]),
                cpu_seconds=float(content.get("cpu_seconds", 0.0)),
                when=str(content["when"]),
                made_by=dict(content["made_by"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile):
            return None


def machine() -> dict[str, Any]:
    """What a figure was measured with."""
    return {
        "salmc": version("salmc"),
        "jax": version("jax"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def write_text(path: Path, text: str) -> Path:
    """A text file, in full or not at all."""
    with output_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode())
    return path


def without_arrays(record: Record) -> Record:
    """The same record, light."""
    return dataclasses.replace(record, arrays={})


def _write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, to_text(content, indent=1))


def read_json(path: Path) -> dict[str, Any] | None:
    """A JSON file; None if it is missing or damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as archive:
        return {name.removeprefix("a/"): archive[name] for name in archive.files}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
