"""The data files that salmc knows, and how each is recognised.

A file is recognised by the SHA-256 of its *content*: the numbers of a table, the bytes inside a
gzip file. The same data come compressed by other programs or written with other separators, and
all of these are the same data; one changed number is not.
"""

import gzip
import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
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

_LISTED = (Path(__file__).parent / "files" / "digests.txt").read_text(encoding="utf-8")
_DIGESTS = {name: digest for digest, name in map(str.split, _LISTED.splitlines())}
"""SHA-256 of the content of each file, which is not always that of the file itself."""


def _table(name: str, columns: int, *also: str, url: str | None = None) -> KnownFile:
    return KnownFile((name, *also), _DIGESTS[name], table_digest(columns), url)


def _gzipped(name: str) -> KnownFile:
    return KnownFile((name,), _DIGESTS[name], gzip_digest, f"{_MNIST}/{name}")


KNOWN_FILES: dict[str, KnownFile] = {
    "heart.csv": _table("heart.csv", 14),
    "german.csv": _table("german.csv", 25),
    "australian.csv": _table(
        "australian.csv", 15, "australian.dat", url=f"{_UCI}/australian/australian.dat"
    ),
    **{name: _gzipped(name) for name in _DIGESTS if name.startswith("mnist/")},
}
