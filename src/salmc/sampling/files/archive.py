"""Zip archives of plain NumPy arrays, read without trusting them.

A file says how large its parts are, and may lie. So nothing takes memory before it is known to be
there: entries are stored, not compressed, and all of them together are no larger than the file; an
array has as many numbers as its entry has room for. What is read is at most a few times the size of
the file, whatever the file says. Nothing is pickled.
"""

import contextlib
import io
import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from salmc.errors import OutputError

_NUMBERS = "biufU"
"""Kinds of arrays that salmc writes: truth values, numbers, and text."""

_ENCRYPTED = 1


@contextlib.contextmanager
def damaged(path: str | Path, what: str = "its header does not hold what it should") -> Iterator:
    """Whatever goes wrong with the content of a file becomes one sentence about the file.

    A file fails in as many ways as it has bytes: any of them means the same to a user.
    """
    try:
        yield
    except OutputError:
        raise
    except Exception as error:
        raise OutputError(f"{path} is damaged: {what}.") from error


@contextlib.contextmanager
def open_archive(place: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """An archive and its entries by name, after a look at their sizes.

    Raises:
        ValueError: if an entry is compressed, encrypted, there twice, or larger than the file.
        zipfile.BadZipFile, OSError: if it is no archive.
    """
    size = place.stat().st_size
    with zipfile.ZipFile(place) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if len(entries) < len(archive.infolist()):
            raise ValueError("an entry is there twice")
        for entry in entries.values():
            stored = entry.compress_type == zipfile.ZIP_STORED
            if not stored or entry.compress_size != entry.file_size:
                raise ValueError(f"{entry.filename} is compressed")
            if entry.flag_bits & _ENCRYPTED:
                raise ValueError(f"{entry.filename} is encrypted")
        # Entries may share bytes, and so be more than the file together.
        if sum(entry.file_size for entry in entries.values()) > size:
            raise ValueError("its entries are larger than the file")
        yield archive, entries


def read_arrays(place: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive by their names, as `numpy.savez` wrote them.

    Raises:
        ValueError, zipfile.BadZipFile, OSError: if it is none, or is damaged.
    """
    with open_archive(place) as (archive, entries):
        return {
            name.removesuffix(".npy"): to_array(archive.read(entry))
            for name, entry in entries.items()
        }


def to_array(data: bytes) -> np.ndarray:
    """The array of a `.npy` file; its header is believed only where it fits the bytes.

    Raises:
        ValueError: if it does not, or if the array is not of numbers or text.
    """
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, columns_first, kind = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, columns_first, kind = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"an array in version {version} of the format")
    if kind.kind not in _NUMBERS or kind.itemsize < 1 or any(size < 0 for size in shape):
        raise ValueError(f"an array of {kind}")
    count = math.prod(shape)
    if count * kind.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of shape {shape} in {len(data)} bytes")
    flat = np.frombuffer(data, kind, count, file.tell()) if count else np.zeros(0, kind)
    shaped = flat.reshape(shape, order="F" if columns_first else "C")
    return np.array(shaped, dtype=kind.newbyteorder("="))


def to_bytes(array: Any) -> bytes:
    """A `.npy` file."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def require(fits: bool, what: str) -> None:
    """Within `damaged`: content that is not what it should be."""
    if not fits:
        raise ValueError(what)


def numbers(value: Any, *shape: int | None) -> np.ndarray:
    """Within `damaged`: an array of real numbers of that shape, where None is any length."""
    array = np.asarray(value)
    require(array.dtype.kind in "iuf" and array.ndim == len(shape), f"shape {array.shape}")
    for have, wanted in zip(array.shape, shape, strict=True):
        require(wanted is None or have == wanted, f"shape {array.shape}")
    return array


def real(value: Any) -> float:
    """Within `damaged`: a finite number, and not the text of one."""
    require(isinstance(value, (int, float)) and not isinstance(value, bool), f"{value!r}")
    require(math.isfinite(value), f"{value!r}")
    return float(value)


def whole(value: Any, most: int) -> int:
    """Within `damaged`: a count, no larger than makes sense."""
    require(isinstance(value, int) and not isinstance(value, bool), f"{value!r}")
    require(0 <= value <= most, f"{value!r}")
    return int(value)


def words(value: Any) -> tuple[str, ...]:
    """Within `damaged`: a list of sentences."""
    require(isinstance(value, (list, tuple)), "a list")
    require(all(isinstance(text, str) for text in value), "a list of text")
    return tuple(value)
