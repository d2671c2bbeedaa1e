"""Draws as an ArviZ tree, and on disk as a Zarr folder.

The groups `posterior` and `sample_stats` hold what ArviZ expects: the points that stand for the
target, in the user's own variables. For chains that is every chain without its burn-in (which is
in `warmup_posterior`); for particles it is the last cloud, as one chain of that many draws, since
the way of a particle to its place is not a sample.

The group `salmc` of a stored folder holds the raw arrays of every kept step and a record in JSON,
so that `load_draws` gives back exactly what was saved. Nothing is pickled.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.errors import OutputError
from salmc.json_values import printable
from salmc.programs import compiled
from salmc.sampling.archive import damaged, numbers, real, require, words
from salmc.sampling.atomic import new_folder
from salmc.sampling.draws import Draws
from salmc.sampling.zarr_arrays import read_group
from salmc.target import AbstractTarget, Points

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
_BATCH, _BATCH_NUMBERS = 8192, 2**21
"""Points that are mapped to the user's variables at once, and numbers that they have, at most."""

_RECORDED = ("seconds", "kind", "method", "settings", "burn_in", "compile_seconds", "warnings")


def to_arviz(draws: Draws) -> "xarray.DataTree":
    """An `xarray.DataTree` with the groups that ArviZ knows; see the module's text."""
    from arviz_base import from_dict

    variables, names_of_x = own_variables(draws)
    groups: dict[str, dict[str, np.ndarray]] = {}
    for prefix, part in _parts(draws).items():
        groups[f"{prefix}posterior"] = {name: part(value) for name, value in variables.items()}
        known = {"lp": draws.log_density, "accepted": draws.accepted}
        statistics = {name: part(value) for name, value in known.items() if value is not None}
        if statistics:
            groups[f"{prefix}sample_stats"] = statistics
    attributes = {
        "method": draws.method,
        "target": "unknown" if draws.target is None else draws.target.name,
        "kind": draws.kind,
        "sampling_time": draws.seconds,
        "compile_time": draws.compile_seconds,
        "inference_library": "salmc",
        "warnings": list(draws.warnings),
    }
    return from_dict(
        groups,
        save_warmup=True,
        check_conventions=False,  # more chains than draws is what movers make
        dims={"x": ["coordinate"]} if names_of_x else None,
        coords={"coordinate": list(names_of_x)} if names_of_x else None,
        attrs={"/": attributes, **dict.fromkeys(groups, attributes)},
    )


def own_variables(draws: Draws) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The user's variables, each of shape (chain, draw, ...), and names for `x` if it is alone."""
    if draws.target is None:
        return {"x": np.asarray(draws.positions)}, draws.names
    tree = _constrained(draws.target, np.asarray(draws.positions).reshape(-1, draws.dim))
    variables = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path, simple=True, separator=".").replace("/", "_") or "x"
        value = np.asarray(leaf)
        variables[name] = value.reshape(draws.positions.shape[:2] + value.shape[1:])
    only_x = list(variables) == ["x"] and variables["x"].shape == draws.positions.shape
    return variables, draws.names if only_x else ()


def _constrained(target: AbstractTarget, points: np.ndarray) -> Any:
    """The user's variables at n points, in batches of one shape: one program, however many parts
    of however many sizes there are, and the same digits in whatever part a point is."""
    size = max(16, min(_BATCH, 1 << (_BATCH_NUMBERS // target.dim).bit_length()))
    batches = []
    for first in range(0, len(points), size):
        batch = points[first : first + size]
        padded = np.pad(batch, ((0, size - len(batch)), (0, 0)), mode="edge")
        batches.append(_constrain(target, jnp.asarray(padded, dtype=float)))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[: len(points)], *batches)


@compiled
def _constrain(target: AbstractTarget, points: Points) -> Any:
    return jax.vmap(target.constrain)(points)


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
    record = json.dumps({name: getattr(draws, name) for name in _RECORDED})
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
            have no names of coordinates and no discrepancy can be computed.

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
        draws = _drawn(printable(json.loads(attributes["record"])), arrays)
    if target is not None and target.dim != draws.dim:
        expectation = f"of dimension {draws.dim}, as the draws are"
        checks.fail("target", expectation, f"{target.name} of dimension {target.dim}")
    return dataclasses.replace(draws, target=target)


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


def _parts(draws: Draws) -> dict[str, Any]:
    """For each prefix of a group, what to take of an array (chain, draw, ...)."""
    if draws.kind == "particles":
        return {"": lambda value: value[None, :, -1]}
    burnt = draws.positions.shape[1] - draws.chains().shape[1]
    parts: dict[str, Any] = {"": lambda value: value[:, burnt:]}
    if burnt:
        parts["warmup_"] = lambda value: value[:, :burnt]
    return parts


def _checksum(array: np.ndarray) -> str:
    header = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest()


def _text_checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0].rstrip('.')}." if lines else f"{type(error).__name__}."
