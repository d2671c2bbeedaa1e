"""MNIST: 60,000 and 10,000 handwritten digits of 28 × 28 grey pixels.

The four files are in the IDX format, gzipped or plain: two zero bytes, the kind of number (8: bytes
without sign), the number of axes, the length of each axis as a big-endian 32-bit integer, and then
the values, the last axis fastest.

Y. LeCun, L. Bottou, Y. Bengio and P. Haffner, "Gradient-based learning applied to document
recognition", Proceedings of the IEEE 86(11), 1998.
"""

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from salmc import checks
from salmc.datasets import fetch
from salmc.datasets.known_files import KNOWN_FILES
from salmc.errors import DataError

SPLITS = {"train": "train", "test": "t10k"}
_UNSIGNED_BYTES = 8
_GZIP = b"\x1f\x8b"


def mnist(split: str = "train") -> tuple[UInt8[np.ndarray, "n 28 28"], UInt8[np.ndarray, " n"]]:
    """The images and their digits.

    Args:
        split: `"train"` (60,000 images) or `"test"` (10,000).

    Raises:
        DataError: if a file can be neither found nor downloaded, or is not what it should be.
    """
    stem = SPLITS[checks.choice("split", split, tuple(SPLITS))]
    images_path = _find(f"mnist/{stem}-images-idx3-ubyte")
    labels_path = _find(f"mnist/{stem}-labels-idx1-ubyte")
    images, labels = read_idx(images_path, axes=3), read_idx(labels_path, axes=1)
    if images.shape[1:] != (28, 28) or np.max(labels, initial=0) > 9:
        raise DataError(
            f"{images_path} and {labels_path.name} are IDX files but not MNIST: the images are "
            f"{images.shape[1]} × {images.shape[2]} and the largest label is "
            f"{np.max(labels, initial=0)}. Replace them or let salmc download them."
        )
    if len(images) != len(labels):
        raise DataError(
            f"{images_path} holds {len(images):,} images and {labels_path.name} {len(labels):,} "
            "labels, so they do not belong together. Replace them or let salmc download them."
        )
    return images, labels


def read_idx(path: str | Path, axes: int) -> UInt8[np.ndarray, "..."]:
    """An IDX file of unsigned bytes with so many axes, gzipped or not whatever its name says.

    Raises:
        DataError: if the file cannot be read, is cut short, or is something else.
    """
    place = Path(path).expanduser()
    content = _content(place)
    header = 4 + 4 * axes
    if content[:4] != bytes([0, 0, _UNSIGNED_BYTES, axes]):
        raise DataError(
            f"{place} is not an IDX file of bytes with {axes} {'axis' if axes == 1 else 'axes'}: "
            f"it begins with {content[:4].hex(' ') or 'nothing'}. Replace it by the original."
        )
    if len(content) < header:
        raise DataError(f"{place} is cut short: not even its header is whole. Fetch it again.")
    shape = struct.unpack(f">{axes}I", content[4:header])
    if len(content) - header != math.prod(shape):
        raise DataError(
            f"{place} is damaged: its header promises {math.prod(shape):,} values and it holds "
            f"{len(content) - header:,}. Fetch it again."
        )
    # A copy, because an array over `bytes` could not be written to.
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()


def _find(name: str) -> Path:
    """The gzipped file wherever it is, or the plain one in the user's folder."""
    folder = fetch.user_folder()
    plain = None if folder is None else folder / name
    if plain is None or not plain.is_file() or plain.with_name(f"{plain.name}.gz").is_file():
        return fetch.find(f"{name}.gz")
    if hashlib.sha256(_content(plain)).hexdigest() != KNOWN_FILES[f"{name}.gz"].digest:
        raise DataError(
            f"The file {plain} is not the data file {name}: its content has another SHA-256. "
            f"Replace it, or unset {fetch.FOLDER_VARIABLE}."
        )
    return plain


def _content(place: Path) -> bytes:
    try:
        content = place.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {place}: {error.strerror or error}.") from error
    if not content.startswith(_GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{place} is damaged: it cannot be unzipped. Fetch it again.") from error
