"""Training checkpoints: a run that was killed goes on where it was, to the same end.

One NumPy archive (.npz) without pickle: the arrays of the state in tree order, whitening and start
cloud, and a JSON header with history, counters and what the run is. It is written beside its place
and renamed, so that there is always one whole checkpoint.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import numpy as np

from salmc.errors import OutputError
from salmc.json_values import plain
from salmc.kernels.layers import Whitening
from salmc.learning.engine import Record
from salmc.sampling.files.archive import damaged, numbers, read_arrays, real, require, words
from salmc.sampling.files.atomic import final_place, new_file, output_errors
from salmc.sampling.files.coordinates import arrays_of_whitening, in_coordinates, whitening_of
from salmc.sampling.files.kernel_file import array_leaves, with_leaves
from salmc.target import AbstractTarget

FORMAT = "salmc-training"
FORMAT_VERSION = 3
_UNSAVED = "The checkpoint could not be written"

State = TypeVar("State", bound=eqx.Module)
"""Of training: a tree of arrays."""


@dataclasses.dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where the states of one run are saved.

    Attributes:
        path: of the file.
        identity: settings, seed, kernel and target of the run: a run resumes its own states only.
        whitening, start: made before the first step.
        coordinates: of the target, where edges or funnels were found, as arrays.
    """

    path: Path
    identity: dict[str, Any]
    whitening: Whitening
    start: np.ndarray
    coordinates: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def try_write(self, state: eqx.Module, record: Record, done: int) -> None:
        """As `write`; a checkpoint that cannot be written costs the chance to resume, and not the
        training: a warning tells, once."""
        try:
            self.write(state, record)
        except OutputError as error:
            if not any(sentence.startswith(_UNSAVED) for sentence in record.warnings):
                record.warnings.append(f"{_UNSAVED} at step {done}; training went on. {error}")

    def write(self, state: eqx.Module, record: Record) -> None:
        """Replace the checkpoint; the old one is there until the new one is whole.

        Raises:
            OutputError: if it cannot be written.
        """
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "identity": self.identity,
            "record": dataclasses.asdict(record),
        }
        leaves = enumerate(array_leaves(state))
        arrays: dict[str, Any] = {f"state/{i}": np.asarray(leaf) for i, leaf in leaves}
        arrays |= arrays_of_whitening(self.whitening)
        arrays |= self.coordinates | {"header": np.array(json.dumps(header)), "start": self.start}
        place = final_place(self.path)
        with output_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
        with new_file(place) as file:
            np.savez(file, **arrays)


class Restored:
    """A checkpoint that was read.

    Args:
        path: of the file.
        identity: of the run that wants to go on.

    Raises:
        OutputError: if the file is damaged or of another run.
    """

    def __init__(self, path: str | Path, identity: dict[str, Any]) -> None:
        self.path = final_place(path)
        unreadable = (
            f"{self.path} cannot be read as a training checkpoint: it is damaged or something "
            "else. Remove it, or choose another place."
        )
        try:
            self._arrays = read_arrays(self.path)
            header = json.loads(str(self._arrays["header"]))
            ours = (header["format"], header["format_version"]) == (FORMAT, FORMAT_VERSION)
            stored, record = header["identity"], header["record"]
        # A damaged archive fails in as many ways as it has bytes: any of them means the same here.
        except Exception as error:
            raise OutputError(unreadable) from error
        if not ours:
            raise OutputError(f"{self.path} was written by another version of salmc. Remove it.")
        # Through JSON, as the stored one went.
        mine = json.loads(json.dumps(plain(identity)))
        differing = [name for name in mine if mine[name] != stored.get(name)]
        if differing:
            raise OutputError(
                f"{self.path} is the checkpoint of another run: {', '.join(differing)} differ. "
                "Resume with the same arguments, or choose another place."
            )
        try:
            self.record = _record(record)
            dim = self._arrays["whitening/mean"].size
            self.whitening = whitening_of(self._arrays, dim)
            start = self._arrays["start"]
            self.start = numbers(start, None, dim) if start.ndim > 1 else numbers(start, 0)
        except Exception as error:
            raise OutputError(unreadable) from error

    def target(self, target: AbstractTarget) -> AbstractTarget:
        """A target in the coordinates of the run."""
        with damaged(self.path):
            found = in_coordinates(target, self._arrays, target.dim)
        assert found is not None
        return found

    def state(self, like: State) -> State:
        """The stored state, in the tree of another."""
        leaves = array_leaves(like)
        stored = [self._arrays.get(f"state/{i}") for i in range(len(leaves))]
        fits = all(
            array is not None and array.shape == leaf.shape and array.dtype == leaf.dtype
            for array, leaf in zip(stored, leaves, strict=True)
        )
        if not fits:
            raise OutputError(f"{self.path} does not fit this run's kernel, pool or precision.")
        return with_leaves(like, stored)


def _record(content: dict[str, Any]) -> Record:
    """The record, each part of the kind that it should be."""
    record = Record(**content)
    for name, default in dataclasses.asdict(Record()).items():
        value = getattr(record, name)
        if name == "figure_kind":
            require(value is None or isinstance(value, str), name)
        elif name == "best":
            require(value is None or isinstance(value, (int, float)), name)
        else:
            require(type(value) is type(default), name)
    words(record.warnings)
    for seconds in record.seconds.values():
        real(seconds)
    for figures in record.history.values():
        require(isinstance(figures, list), "history")
        require(all(isinstance(figure, (int, float)) for figure in figures), "history")
    require(len(record.trajectory) in (0, 2), "trajectory")
    require(all(real(number) > 0.0 for number in record.trajectory), "trajectory")
    return record
