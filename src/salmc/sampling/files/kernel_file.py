"""The `.salmc` file: a trained kernel and all it needs, in one zip archive.

    header.json      format, versions, what the kernel is, settings, and a checksum of each array
    arrays/*.npy     weights, whitening, pool, training history

The arrays are plain NumPy files, stored and not compressed, so `numpy.load` opens the archive as
well. Nothing is pickled and no code is stored: the kernel is built anew from its description by the
class that is registered under its name, with no more weights than the file holds, and these are put
in place one by one.
"""

import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc import kernels
from salmc.errors import OutputError
from salmc.json_values import printable, to_text
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import at_most_weights
from salmc.sampling.files.archive import damaged, open_archive, require, to_array, to_bytes
from salmc.sampling.files.atomic import final_place, new_file, output_errors
from salmc.sampling.files.folder import now, versions

Tree = TypeVar("Tree")

FORMAT = "salmc-kernel"
FORMAT_VERSION, _FIRST_VERSION = 5, 1
"""What is read; and what is written of kernels that the first version can read as well."""

_HEADER = "header.json"
_LONGEST_HEADER = 2**23
"""Bytes; headers hold a few thousand."""
_ANY_SIZE = 1_000_000
"""Numbers in a description up to here cost little, whatever they mean."""


def write_kernel(
    path: str | Path, kernel: AbstractKernel, header: dict[str, Any], arrays: dict[str, Any]
) -> Path:
    """Write a `.salmc` file, in full or not at all; one that is there is replaced.

    Of the kernel its description and weights are stored; `header` (JSON values) and `arrays` hold
    what else to keep.

    Raises:
        OutputError: if the file cannot be written, or the kernel's class is not registered.
    """
    if _known().get(kernel.name) is not type(kernel):
        raise OutputError(
            f"The kernel `{kernel.name}` cannot be saved, because its class is not known when it "
            f'is loaded. Register it: salmc.kernels.KERNELS["{kernel.name}"] = '
            f"{type(kernel).__name__}."
        )
    stored = {f"kernel/{i}": leaf for i, leaf in enumerate(array_leaves(kernel))} | arrays
    contents = {f"arrays/{name}.npy": to_bytes(value) for name, value in stored.items()}
    full = {
        "format": FORMAT,
        "format_version": _FIRST_VERSION,
        "written": now(),
        "versions": versions(),
        "kernel": {"name": kernel.name, "description": kernel.description()},
        **header,
        "checksums": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
    }
    place = final_place(path)
    with output_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    with new_file(place) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_HEADER, to_text(full))
        for name, data in contents.items():
            archive.writestr(name, data)
    return Path(path)


def read_kernel(
    path: str | Path,
) -> tuple[AbstractKernel, dict[str, Any], dict[str, np.ndarray]]:
    """Read a `.salmc` file: the kernel, the header and the arrays beside the weights.

    Raises:
        OutputError: if it is missing, damaged, of a newer format, or not of salmc.
    """
    place = Path(path).expanduser()
    header, arrays = _read(place)
    with damaged(place):
        kernel = _rebuild(header["kernel"], _numbered(arrays, "kernel/"), place)
    return kernel, header, arrays


def _read(place: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays, checked."""
    if not place.is_file():
        kind = "is a folder, not a kernel file" if place.is_dir() else "does not exist"
        raise OutputError(f"{place} {kind}.")
    if not zipfile.is_zipfile(place):
        raise OutputError(f"{place} is damaged or not a kernel file of salmc.")
    with damaged(place, "it cannot be read in full"), open_archive(place) as (archive, entries):
        if _HEADER not in entries:
            raise OutputError(f"{place} is not a kernel file of salmc.")
        require(entries[_HEADER].file_size <= _LONGEST_HEADER, "a header of that size")
        header = printable(json.loads(archive.read(_HEADER)))
        _check_format(header, place)
        arrays, changed = {}, []
        for name, expected in header["checksums"].items():
            data = archive.read(entries[name])
            if hashlib.sha256(data).hexdigest() == expected:
                arrays[name.removeprefix("arrays/").removesuffix(".npy")] = to_array(data)
            else:
                changed.append(name)
        if changed:
            raise OutputError(f"{place} is damaged: {', '.join(changed)} changed since saving.")
    return header, arrays


def _check_format(header: Any, place: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise OutputError(f"{place} is not a kernel file of salmc.")
    version = header.get("format_version")
    if type(version) is not int or version > FORMAT_VERSION:
        made_with = header.get("versions", {}).get("salmc", "a newer version")
        raise OutputError(
            f"{place} has format {version}, and this version of salmc reads formats up to "
            f"{FORMAT_VERSION}. It was written by salmc {made_with}: update salmc."
        )


def _rebuild(described: dict[str, Any], weights: list[np.ndarray], place: Path) -> AbstractKernel:
    """The kernel of a description, with stored weights in the place of its own."""
    name, known = described["name"], _known()
    if name not in known:
        raise OutputError(
            f"{place} holds a kernel `{name}`, which this version of salmc does not know. "
            f"There are {', '.join(known) or 'none'}; your own is made known by "
            f'salmc.kernels.KERNELS["{name}"] = its class.'
        )
    stored = sum(leaf.size for leaf in weights)
    try:
        _require_small(described["description"], stored)
        with at_most_weights(stored):
            untrained = known[name].from_description(described["description"])
    except Exception as error:
        raise OutputError(
            f"{place} holds a kernel `{name}` that cannot be built by this version of salmc: "
            f"{type(error).__name__}: {' '.join(str(error).split()).rstrip('.')}."
        ) from error
    own = array_leaves(untrained)
    shapes = [(np.shape(leaf), leaf.dtype.kind) for leaf in own]
    if shapes != [(leaf.shape, leaf.dtype.kind) for leaf in weights]:
        raise OutputError(
            f"{place} holds a kernel `{name}` whose weights do not fit what this version of salmc "
            "builds from its description."
        )
    return with_leaves(untrained, weights)


def _require_small(description: dict[str, Any], stored: int) -> None:
    """Refuse sizes, such as numbers of layers, that are far beyond what the file can hold."""
    for name, value in description.items():
        sizes = value if isinstance(value, list) else [value]
        if any(isinstance(size, int) and size > max(stored, _ANY_SIZE) for size in sizes):
            raise ValueError(f"{name} is {value}, and the file holds {stored} weights")


def _known() -> dict[str, Any]:
    """Every class that a file may name."""
    return {**kernels.IMAGE_KERNELS, **kernels.KERNELS}


def array_leaves(tree: Any) -> list[Any]:
    """The arrays of a tree in its order: what files hold of networks and of trainings."""
    return jax.tree.leaves(eqx.filter(tree, eqx.is_array))


def with_leaves(tree: Tree, leaves: Sequence[Any]) -> Tree:
    """The same tree with other arrays."""
    dynamic, static = eqx.partition(tree, eqx.is_array)
    own, structure = jax.tree.flatten(dynamic)
    # In the precision of this process: a file from one with 64 bits opens in one with 32.
    new = [jnp.asarray(leaf, dtype=like.dtype) for leaf, like in zip(leaves, own, strict=True)]
    return eqx.combine(jax.tree.unflatten(structure, new), static)


def _numbered(arrays: dict[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    count = sum(name.startswith(prefix) for name in arrays)
    return [arrays[f"{prefix}{i}"] for i in range(count)]
