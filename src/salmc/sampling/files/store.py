"""Draws on disk: a Zarr folder with the groups of `arviz_tree`, which ArviZ reads.

The group `salmc` of a stored folder holds the raw arrays of every kept step and a record in JSON,
so that `load_draws` gives back exactly what was saved. Nothing is pickled.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from salmc import checks
from salmc.errors import OutputError
from salmc.json_values import printable
from salmc.sampling.arviz_tree import stored_groups, to_arviz
from salmc.sampling.draws import Draws
from salmc.sampling.files.archive import damaged, numbers, real, require, words
from salmc.sampling.files.atomic import new_folder
from salmc.sampling.files.zarr_arrays import read_group
from salmc.sampling.variables import Variables, stored_variables
from salmc.target import AbstractTarget

FORMAT = "salmc-draws-1"
_ARRAYS = {
    "positions": ("particle", "kept_step", "coordinate_index"),
    "log_density": ("particle", "kept_step"),
    "accepted": ("particle", "kept_step"),
    "steps": ("kept_step",),
    "seen": ("seen_point", "coordinate_index"),
}
_MOST_NAMED = 64
"""Times the size of the positions that the user's variables of a folder may have."""

_RECORDED = ("seconds", "kind", "method", "settings", "burn_in", "compile_seconds", "warnings")


def save_draws(draws: Draws, path: str | Path) -> Path:
    """Write draws to a new Zarr folder: `xarray.open_datatree(path, engine="zarr")` reads it.

    Returns:
        The folder's path.

    Raises:
        OutputError: if the folder exists already or cannot be written.
    """
    with new_folder(path) as working:
        write_zarr(draws, working)
    return Path(path)


def write_zarr(draws: Draws, folder: Path) -> None:
    """Write into an empty or absent folder, with no care for what a crash would leave."""
    # Half a second to import, which only those who store draws should wait for.
    import xarray

    tree = to_arviz(draws)
    arrays = {name: getattr(draws, name) for name in _ARRAYS}
    arrays = {name: np.asarray(value) for name, value in arrays.items() if value is not None}
    known: dict[str, Any] = {name: getattr(draws, name) for name in _RECORDED}
    known["variables"] = list(draws.variables.values)  # a folder forgets their order
    record = json.dumps(known)
    checksums = {name: _checksum(value) for name, value in arrays.items()}
    checksums["record"] = _text_checksum(record)
    attributes = {
        "format": FORMAT,
        "record": record,
        "checksums": json.dumps(checksums),
    }
    raw = xarray.Dataset(
        {name: (_ARRAYS[name], value) for name, value in arrays.items()}, attrs=attributes
    )
    tree["salmc"] = xarray.DataTree(raw)
    # A fill value would turn every NaN into that one NaN: the raw arrays are stored bit by bit.
    as_they_are = {name: {"_FillValue": None} for name in arrays}
    # Format 2 is the one in which text and consolidated metadata are specified.
    tree.to_zarr(
        folder, mode="w", zarr_format=2, consolidated=True, encoding={"/salmc": as_they_are}
    )


def load_draws(path: str | Path, target: AbstractTarget | None = None) -> Draws:
    """Read what `save_draws` wrote.

    Args:
        path: the Zarr folder.
        target: the target of the draws. It is code, so it is not stored; without it the draws
            keep their variables by name, and no discrepancy can be computed.

    Raises:
        OutputError: if the folder is missing, damaged, or not of salmc.
    """
    place = Path(path).expanduser()
    if not place.is_dir():
        raise OutputError(f"There is no folder of draws at {place}.")
    try:
        attributes, arrays = read_group(place, "salmc", tuple(_ARRAYS))
        marked = attributes.get("format")
    except (KeyError, FileNotFoundError):
        marked = None
    # A damaged store fails in as many ways as it has files: any of them means the same here.
    except Exception as error:
        raise OutputError(f"{place} is not a readable folder of draws: {_line(error)}") from error
    if marked != FORMAT:
        raise OutputError(f"{place} was not written by this version of salmc.")
    with damaged(place, "its record cannot be read"):
        checksums = json.loads(attributes["checksums"])
        # Zarr reads a missing chunk as a fill value, without a word: only a checksum tells.
        found = {name: _checksum(value) for name, value in arrays.items()}
        found["record"] = _text_checksum(attributes["record"])
        changed = [name for name, expected in checksums.items() if found.get(name) != expected]
        if changed:
            raise OutputError(f"{place} is damaged: {', '.join(changed)} changed since saving.")
        record = printable(json.loads(attributes["record"]))
        draws = _drawn(record, arrays)
        stored = _named(place, record, draws.positions.nbytes) if target is None else None
    if target is not None and target.dim != draws.dim:
        expectation = f"of dimension {draws.dim}, as the draws are"
        checks.fail("target", expectation, f"{target.name} of dimension {target.dim}")
    return dataclasses.replace(draws, target=target, stored=stored)


def _drawn(record: dict[str, Any], arrays: dict[str, np.ndarray]) -> Draws:
    """Draws without their target, each part of the kind that it should be."""
    fields: dict[str, Any] = {name: record[name] for name in _RECORDED}
    for name in ("kind", "method"):
        require(isinstance(fields[name], str), name)
    for name in ("seconds", "burn_in", "compile_seconds"):
        real(fields[name])
    require(isinstance(fields["settings"], dict), "settings")
    fields["warnings"] = words(fields["warnings"])
    chains, kept, dim = numbers(arrays["positions"], None, None, None).shape
    for name, shape in (("steps", (kept,)), ("seen", (None, dim))):
        if name in arrays:
            numbers(arrays[name], *shape)
    require(chains * kept * dim > 0, "positions")
    known: dict[str, Any] = {"log_density": None, **arrays, **fields}
    return Draws(**known)


def _named(place: Path, record: dict[str, Any], size: int) -> Variables | None:
    """The user's variables as they were stored; None where that is not the layout."""
    import xarray

    with xarray.open_datatree(place, engine="zarr") as tree:
        groups = [group for name, group in tree.children.items() if name != "salmc"]
        # What a folder says of its sizes, before any of it is read.
        if sum(group.nbytes for group in groups) > _MOST_NAMED * size + 2**28:
            return None
        found = stored_variables(tree, record["kind"])
        if found is None:
            return None
        order = [name for name in record.get("variables", found.values) if name in found.values]
        values = {name: found.values[name] for name in order}
        return found._replace(values=values, groups=stored_groups(tree))


def _checksum(array: np.ndarray) -> str:
    header = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest()


def _text_checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0].rstrip('.')}." if lines else f"{type(error).__name__}."
