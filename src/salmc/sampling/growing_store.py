"""A Zarr folder in the layout of `store` that grows along its draws."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from salmc.sampling.arviz_tree import to_arviz
from salmc.sampling.draws import Draws
from salmc.sampling.executor import Block, ChainRun

FORMAT = "salmc-stream-1"
PART_BYTES = 2**25
"""Positions that are written at once: one chunk of the array on disk."""


class GrowingStore:
    """Collects blocks to parts, and appends parts to the arrays on disk."""

    def __init__(self, folder: Path, run: ChainRun, common: dict[str, Any]):
        row = run.chains * run.dim * run.dtype.itemsize
        self._rows = max(1, min(run.draws, PART_BYTES // row))
        self._folder, self._common = folder, common
        self._metropolis = run.transition.metropolis
        self._pending: list[Block] = []
        self._written = 0

    def add(self, block: Block) -> None:
        """Keep a block; write as many whole parts as there are now."""
        self._pending.append(block)
        while sum(len(block) for block in self._pending) >= self._rows:
            self._write(self._rows)

    def finish(self, draws: int, seconds: float, warnings: tuple[str, ...]) -> None:
        """Write what is left, so that there are `draws` in all, and the record."""
        if draws > self._written:
            self._write(draws - self._written)
        root = zarr.open_group(self._folder, mode="r+")
        for array in _growing(root):
            # An interruption may have hit between two arrays of one part, or before its count.
            array.resize((array.shape[0], draws, *array.shape[2:]) if array.ndim > 1 else (draws,))
        attributes: dict[str, Any] = {"sampling_time": seconds, "warnings": list(warnings)}
        for group in (root, *(group for _, group in root.groups())):
            group.attrs.update(attributes)
        settings = self._common["settings"]
        record = {"settings": settings, "draws": draws, "seconds": seconds}
        root.create_group("salmc").attrs.update({"format": FORMAT, "record": json.dumps(record)})
        zarr.consolidate_metadata(self._folder, zarr_format=2)

    def _write(self, rows: int) -> None:
        """Write the next `rows` draws, in the layout of `store`."""
        whole = Block.join(self._pending)
        now, later = whole.only(slice(rows)), whole.only(slice(rows, None))
        part = Draws(
            positions=now.positions.swapaxes(0, 1),
            log_density=now.log_density.T,
            accepted=now.accepted.T if self._metropolis else None,
            seconds=0.0,
            **self._common,
        )
        tree = to_arviz(part, data=False)
        if self._written == 0:
            encoding = {
                f"/{name}": {
                    variable: {"chunks": _chunk(data.sizes, data.dims, self._rows)}
                    for variable, data in group.variables.items()
                    if "draw" in data.dims
                }
                for name, group in tree.children.items()
            }
            tree.to_zarr(
                self._folder, mode="w", zarr_format=2, consolidated=False, encoding=encoding
            )
        else:
            root = zarr.open_group(self._folder, mode="r+")
            for array in _growing(root):
                group, variable = array.path.split("/")
                values = np.asarray(tree[f"{group}/{variable}"])
                at = slice(self._written, self._written + rows)
                if array.ndim == 1:
                    array.resize((at.stop,))
                    array[at] = values + self._written
                else:
                    array.resize((array.shape[0], at.stop, *array.shape[2:]))
                    array[:, at] = values
        self._written, self._pending = self._written + rows, [later]


def _growing(root: zarr.Group) -> list[Any]:
    """The arrays that have a draw in their dimensions."""
    arrays: list[Any] = [array for _, group in root.groups() for _, array in group.arrays()]
    return [array for array in arrays if "draw" in array.attrs.get("_ARRAY_DIMENSIONS", ())]


def _chunk(sizes: Any, dims: Any, rows: int) -> tuple[int, ...]:
    return tuple(rows if dim == "draw" else max(1, sizes[dim]) for dim in dims)
