"""A Zarr folder in the layout of `store` that grows along its draws, and is whole at any moment.

A part of the draws is on disk when three things are: its chunks, the new shapes of the arrays, and
the file `.zmetadata`, which repeats the shapes of all arrays in one place and is replaced in one
step. Readers of the folder (ArviZ, xarray, `zarr.open_group`) go by the latter: they see all of a
part or nothing of it, in all arrays alike, whenever the writer was killed.
"""

import contextlib
import json
import shutil
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr

from salmc.json_values import to_text
from salmc.sampling.arviz_tree import to_arviz
from salmc.sampling.draws import Draws
from salmc.sampling.executor import Block, ChainRun
from salmc.sampling.files.atomic import flush_file, flush_folder, write_file

FORMAT = "salmc-stream-1"
PART_BYTES = 2**22
"""Positions that are written at once: one chunk of the array on disk. Zarr packs chunks on threads,
whose heaps keep what they once had: with 32 MB the process grew for 10⁸ draws."""

PART_SECONDS = 10.0
"""Draws that are slow to come are written after this time, chunk or not."""

KEPT = "resume"
"""A folder in the folder, with what is needed to go on; it is removed when all draws are there."""

_DESCRIPTIONS = (".zarray", ".zgroup", ".zattrs")


class Part(NamedTuple):
    """Draws that are in memory alone: of each chain the number before them, and their own."""

    first: int
    length: int = 0


class GrowingStore:
    """Collects blocks to parts, and appends parts to the arrays on disk.

    Args:
        folder: where; it is there.
        run: whose draws they are.
        common: fields that all `Draws` of this run share.
        written: draws that are on disk already. Whatever else is there is removed.
    """

    def __init__(self, folder: Path, run: ChainRun, common: dict[str, Any], written: int = 0):
        row = run.chains * run.dim * run.dtype.itemsize
        rows = max(1, min(run.draws, PART_BYTES // row))
        # Whole blocks, where they fit, as chains can go on between blocks only.
        self._rows = max(rows - rows % run.length, min(run.length, run.draws))
        self._folder, self._common = folder, common
        self._metropolis = run.transition.metropolis
        # One place for all parts. Blocks of their own, thousands of them and freed at one go, would
        # leave the heap in pieces, and a process that grows for as long as it runs.
        most = self._rows + run.length
        self._room = Block(
            np.empty((most, run.chains, run.dim), run.dtype),
            np.empty((most, run.chains), run.dtype),
            np.empty((most, run.chains), bool),
        )
        self._part = Part(written)
        self._since = time.monotonic()
        self._arrays: list[Any] = []
        self._clean(written)

    def add(self, block: Block) -> None:
        """Keep a block, for the next part."""
        first, length = self._part
        at = slice(length, length + len(block))
        self._room.positions[at] = block.positions
        self._room.log_density[at] = block.log_density
        self._room.accepted[at] = block.accepted
        self._part = Part(first, at.stop)

    def is_due(self, draws: int) -> bool:
        """Whether it is time to write, after so many draws."""
        late = time.monotonic() - self._since > PART_SECONDS
        return late or draws // self._rows > self._part.first // self._rows

    def write(self, draws: int, seconds: float, told: tuple[str, ...] = ()) -> None:
        """Have so many draws on disk, in the layout of `store`, and the warnings that are told."""
        first = self._part.first
        if draws > first:
            now = self._room.only(slice(draws - first))
            part = Draws(
                positions=now.positions.swapaxes(0, 1),
                log_density=now.log_density.T,
                accepted=now.accepted.T if self._metropolis else None,
                seconds=0.0,
                **self._common,
            )
            if first == 0:
                self._begin(to_arviz(part, data=False))
            else:
                self._append(to_arviz(part, data=False), first, draws)
        self._commit(draws, seconds, told)
        self._part, self._since = Part(draws), time.monotonic()

    def _begin(self, tree: Any) -> None:
        self._clean(0)
        encoding = {
            f"/{name}": {
                variable: {"chunks": _chunk(data.sizes, data.dims, self._rows)}
                for variable, data in group.variables.items()
                if "draw" in data.dims
            }
            for name, group in tree.children.items()
        }
        with warnings.catch_warnings():
            # Zarr warns of every folder that it did not write itself.
            warnings.filterwarnings("ignore", "Object at .* is not recognized")
            tree.to_zarr(
                self._folder, mode="a", zarr_format=2, consolidated=False, encoding=encoding
            )
        zarr.open_group(self._folder, mode="r+", use_consolidated=False).create_group("salmc")
        self._arrays = self._growing()

    def _append(self, tree: Any, first: int, draws: int) -> None:
        at = slice(first, draws)
        for array in self._arrays:
            group, variable = array.path.split("/")
            values = np.asarray(tree[f"{group}/{variable}"])
            if array.ndim == 1:
                array.resize((draws,))
                array[at] = values + first
            else:
                array.resize((array.shape[0], draws, *array.shape[2:]))
                array[:, at] = values

    def _commit(self, draws: int, seconds: float, told: tuple[str, ...]) -> None:
        root: Any = zarr.open_group(self._folder, mode="r+", use_consolidated=False)
        attributes = {"sampling_time": seconds, "warnings": list(told)}
        for name in ("", *self._groups()):
            (root[name] if name else root).attrs.update(attributes)
        record = {"settings": self._common["settings"], "draws": draws, "seconds": seconds}
        root["salmc"].attrs.update({"format": FORMAT, "record": json.dumps(record)})
        self._flush(draws)
        # Not by looking through the folder, whose chunks are more from part to part.
        groups = [self._folder, *(self._folder / name for name in (*self._groups(), "salmc"))]
        arrays = [entry for group in groups[1:] for entry in group.iterdir() if entry.is_dir()]
        described = {
            str(file.relative_to(self._folder)): json.loads(file.read_bytes())
            for folder in sorted([*groups, *arrays])
            for file in (folder / name for name in _DESCRIPTIONS)
            if file.is_file()
        }
        content = {"zarr_consolidated_format": 1, "metadata": described}
        write_file(self._folder / ".zmetadata", to_text(content).encode())

    def _flush(self, draws: int) -> None:
        """The chunks of the part on the disk, before anything says that they are there."""
        chunks = range(self._part.first // self._rows, -(-draws // self._rows))
        for array in self._arrays:
            folder = self._folder / array.path
            for number in chunks:
                places = [str(number)] if array.ndim == 1 else ["0", str(number)]
                places += ["0"] * (array.ndim - 2)
                # Zarr leaves out chunks of zeros.
                with contextlib.suppress(FileNotFoundError):
                    flush_file(folder / ".".join(places))
            flush_folder(folder)

    def _clean(self, written: int) -> None:
        """Remove what a run that was killed had not finished."""
        if written == 0:
            for entry in self._folder.iterdir():
                if entry.name != KEPT:
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            return
        # The folder is locked: whatever has such a name is of a run that has ended.
        for pattern in ("*.partial", ".*.tmp-*"):
            for unfinished in self._folder.rglob(pattern):
                unfinished.unlink()
        self._arrays = self._growing()
        for array in self._arrays:
            if array.ndim == 1:
                array.resize((written,))
            else:
                array.resize((array.shape[0], written, *array.shape[2:]))

    def _groups(self) -> list[str]:
        return [
            entry.name
            for entry in sorted(self._folder.iterdir())
            if (entry / ".zgroup").is_file() and entry.name != "salmc"
        ]

    def _growing(self) -> list[Any]:
        """The arrays that have a draw in their dimensions."""
        root: Any = zarr.open_group(self._folder, mode="r+", use_consolidated=False)
        arrays = [array for name in self._groups() for _, array in root[name].arrays()]
        return [array for array in arrays if "draw" in array.attrs.get("_ARRAY_DIMENSIONS", ())]


def _chunk(sizes: Any, dims: Any, rows: int) -> tuple[int, ...]:
    return tuple(rows if dim == "draw" else max(1, sizes[dim]) for dim in dims)
