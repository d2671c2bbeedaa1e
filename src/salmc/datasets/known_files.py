"""The data files that salmc knows, and how each is recognised.

A file is recognised by the SHA-256 of its *content*: the numbers of a table, the bytes inside a
gzip file. The same data come compressed by other programs or written with other separators, and
all of these are the same data; one changed number is not.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable
from typing import NamedTuple

from salmc.datasets.parsing import parse_table
from salmc.errors import DataError


class KnownFile(NamedTuple):
    """A data file: where to look for it and how to tell that it is the right one."""

    places: tuple[str, ...]
    """Names that the file may have in a folder; the last is what a download is called."""
    digest: str
    """SHA-256 of the content."""
    digest_of: Callable[[bytes], str]
    """Bytes of the file ↦ SHA-256 of its content; `DataError` where there is no content."""
    url: str | None
    """Where it can be downloaded; None for files that ship with the package."""


def table_digest(columns: int) -> Callable[[bytes], str]:
    """Digest of the numbers of a table, row by row as little-endian double precision."""

    def digest(content: bytes) -> str:
        values = parse_table(content, columns).values
        return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()

    return digest


def gzip_digest(content: bytes) -> str:
    """Digest of what a gzip file holds."""
    try:
        return hashlib.sha256(gzip.decompress(content)).hexdigest()
    except (OSError, EOFError, zlib.error):
        raise DataError("it is not a whole gzip file") from None


_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog"
_MNIST = "https://ossci-datasets.s3.amazonaws.com"


def _mnist(name: str, digest: str) -> KnownFile:
    place = f"mnist/{name}"
    return KnownFile((place,), digest, gzip_digest, f"{_MNIST}/{place}")


KNOWN_FILES: dict[str, KnownFile] = {
    "heart.csv": KnownFile(
        ("heart.csv",),
        "63ec604a5108c6d3d71e4082226a18fa51d82999fa926cb7c9478ef057fd01e7",
        table_digest(14),
        None,
    ),
    "german.csv": KnownFile(
        ("german.csv",),
        "a9a3a1a51695f7cd57db80c765b7e156f83a9dd5a288eff5594396db36cb21cf",
        table_digest(25),
        None,
    ),
    "australian.csv": KnownFile(
        ("australian.csv", "australian.dat"),
        "31f7d2e7692d5104af56da9932714e0b15cef630655e02ce16cef97255297ca8",
        table_digest(15),
        f"{_UCI}/australian/australian.dat",
    ),
    "mnist/train-images-idx3-ubyte.gz": _mnist(
        "train-images-idx3-ubyte.gz",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    "mnist/train-labels-idx1-ubyte.gz": _mnist(
        "train-labels-idx1-ubyte.gz",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "mnist/t10k-images-idx3-ubyte.gz": _mnist(
        "t10k-images-idx3-ubyte.gz",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": _mnist(
        "t10k-labels-idx1-ubyte.gz",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}
