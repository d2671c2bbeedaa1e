"""Arrays of a Zarr folder, read without trusting it.

A folder says how large its arrays are and how they are packed, and may lie. Zarr believes it: an
array of a few bytes may claim to be terabytes, and packing may be anything that `numcodecs` knows.
So only plain numbers, packed as salmc packs them, are read, and no more than could be there.
"""

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

_ALWAYS = 2**28
"""Bytes that any folder may unpack to: chains that stand still pack to next to nothing."""

_MOST_PACKED = 50
"""Times its size on disk that a folder may unpack to beyond that."""

_BLOSC_HEADER = struct.Struct("<4xI8x")
"""Of a packed chunk: its size when unpacked, and what is of no interest here."""


def read_group(
    folder: Path, group: str, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The attributes of a group, and those of the named arrays that are there.

    Raises:
        KeyError: if there is no such group.
        ValueError: if an array is not what salmc writes, or larger than it can be.
    """
    # A third of a second to import, which only those who read draws should wait for.
    import zarr

    opened: Any = zarr.open_group(folder, mode="r")[group]
    found: dict[str, Any] = {name: opened[name] for name in names if name in opened}
    total = sum(_declared(name, array) for name, array in found.items())
    on_disk = sum(_on_disk(folder / group / name, array) for name, array in found.items())
    if total > _ALWAYS + _MOST_PACKED * on_disk:
        raise ValueError(f"{total} bytes in {on_disk}")
    return dict(opened.attrs), {name: np.asarray(array[...]) for name, array in found.items()}


def _declared(name: str, array: Any) -> int:
    """Bytes that an array claims to have, once it is known to hold plain numbers."""
    about = array.metadata
    packing = None if about.compressor is None else about.compressor.get_config()["id"]
    plain = about.zarr_format == 2 and array.dtype.kind in "biuf" and not about.filters
    if not plain or packing not in (None, "blosc"):
        raise ValueError(f"{name} is packed in an unknown way")
    # Whole chunks are unpacked, so that the last may be larger than what is left of the array.
    chunks = [-(-size // chunk) for size, chunk in zip(array.shape, array.chunks, strict=True)]
    return int(math.prod(chunks) * math.prod(array.chunks) * array.dtype.itemsize)


def _on_disk(folder: Path, array: Any) -> int:
    """Bytes of the chunks, each of which must unpack to what a chunk has."""
    chunk, total = math.prod(array.chunks) * array.dtype.itemsize, 0
    for file in folder.iterdir():
        if file.name.startswith("."):
            continue
        size = file.stat().st_size
        unpacked = size
        if array.metadata.compressor is not None:
            with file.open("rb") as opened:
                (unpacked,) = _BLOSC_HEADER.unpack(opened.read(_BLOSC_HEADER.size))
        if unpacked != chunk:
            raise ValueError(f"{file.name} is not of the size of a chunk")
        total += size
    return total
