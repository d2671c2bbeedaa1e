"""Draws on disk: a Zarr folder with the groups of `arviz_tree`, which ArviZ reads.

The group `salmc` of a stored folder holds the raw arrays of every kept step and a record in JSON,
so that `load_draws` gives back exactly what was saved. Nothing is pickled.
"""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from salmc import checks
from salmc.errors import OutputError
from salmc.sampling.arviz_tree import stored_groups, to_arviz
from salmc.sampling.atomic import new_folder
from salmc.sampling.draws import Draws
from salmc.sampling.variables import Variables, stored_variables
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    import xarray

FORMAT = "salmc-draws-1"
_ARRAYS = {
    "positions": ("particle", "kept_step", "coordinate_index"),
    "log_density": ("particle", "kept_step"),
    "accepted": ("particle", "kept_step"),
    "steps": ("kept_step",),
    "seen": ("seen_point", "coordinate_index"),
}
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
    record = {name: getattr(draws, name) for name in _RECORDED}
    record["variables"] = list(draws.variables.values)  # a folder forgets their order
    attributes = {
        "format": FORMAT,
        "record": json.dumps(record),
        "checksums": json.dumps({name: _checksum(value) for name, value in arrays.items()}),
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
    import xarray

    place = Path(path).expanduser()
    if not place.is_dir():
        raise OutputError(f"There is no folder of draws at {place}.")
    try:
        with xarray.open_datatree(place, engine="zarr") as tree:
            raw = tree["salmc"].to_dataset().load()
            stored = None if target is not None else _named(tree, raw)
        marked = raw.attrs.get("format")
    except KeyError:
        marked = None
    # A damaged store fails in as many ways as it has files: any of them means the same here.
    except Exception as error:
        raise OutputError(f"{place} is not a readable folder of draws: {_line(error)}") from error
    if marked != FORMAT:
        raise OutputError(f"{place} was not written by this version of salmc.")
    try:
        arrays: dict[str, Any] = {str(name): raw[name].values for name in raw.data_vars}
        checksums = json.loads(raw.attrs["checksums"])
        # Zarr reads a missing chunk as a fill value, without a word: only a checksum tells.
        damaged = [
            name
            for name, expected in checksums.items()
            if name not in arrays or _checksum(arrays[name]) != expected
        ]
        if damaged:
            raise OutputError(f"{place} is damaged: {', '.join(damaged)} changed since saving.")
        record = json.loads(raw.attrs["record"])
        fields: dict[str, Any] = {name: record[name] for name in _RECORDED}
        fields["warnings"] = tuple(fields["warnings"])
        if target is not None and target.dim != arrays["positions"].shape[-1]:
            expectation = f"of dimension {arrays['positions'].shape[-1]}, as the draws are"
            checks.fail("target", expectation, f"{target.name} of dimension {target.dim}")
        return Draws(target=target, stored=stored, **{"log_density": None, **arrays}, **fields)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise OutputError(f"{place} is damaged: its record cannot be read.") from error


def _named(tree: "xarray.DataTree", raw: "xarray.Dataset") -> Variables | None:
    """The user's variables as they were stored; None where that is not the layout."""
    record = json.loads(raw.attrs.get("record", "{}"))
    found = stored_variables(tree, record.get("kind", "chains"))
    if found is None:
        return None
    order = [name for name in record.get("variables", found.values) if name in found.values]
    values = {name: found.values[name] for name in order}
    return found._replace(values=values, groups=stored_groups(tree))


def _checksum(array: np.ndarray) -> str:
    header = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest()


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0].rstrip('.')}." if lines else f"{type(error).__name__}."
