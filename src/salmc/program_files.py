"""Upkeep of the folder of compiled programs, which JAX fills but does not look after."""

import contextlib
import os
import time
import zlib
from pathlib import Path

MOST_BYTES = 2**29
"""The oldest programs beyond this are removed."""

_CHECKED = ".checked"
"""An empty file. Programs older than it were found whole."""

_WRITING = 10.0
"""Seconds: a younger file may be one that another process is still writing."""

_ZLIB = b"\x78"
_PIECE = 2**20


def tidy(folder: Path) -> None:
    """Remove what is of no use, and the oldest of what is too much; errors are passed over."""
    remove_unfinished(folder)
    remove_oldest(folder)


def remove_oldest(folder: Path, most_bytes: int = MOST_BYTES) -> None:
    """Remove the oldest files of a folder until the others take at most so many bytes."""
    found = []
    for path in _files(folder):
        # Another process may remove files too.
        with contextlib.suppress(OSError):
            told = path.stat()
            found.append((told.st_mtime, told.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most_bytes:
            return
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def remove_unfinished(folder: Path) -> None:
    """Remove programs that a killed process or a full disk left unfinished.

    JAX would warn of such a file in every process, compile the program every time, and never write
    it again. Each file is looked at once. What JAX did not write with zlib is left alone.
    """
    mark = folder / _CHECKED
    until = time.time() - _WRITING
    with contextlib.suppress(OSError):
        since = mark.stat().st_mtime if mark.exists() else -1.0
        for path in _files(folder):
            with contextlib.suppress(OSError):
                if since <= path.stat().st_mtime < until and not _is_whole(path):
                    path.unlink()
        mark.touch()
        os.utime(mark, (until, until))


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.name != _CHECKED]
    return []


def _is_whole(path: Path) -> bool:
    """Whether a compressed file has its end and its checksum is right."""
    stream = zlib.decompressobj()
    with path.open("rb") as file:
        piece = file.read(_PIECE)
        if piece and not piece.startswith(_ZLIB):
            return True
        with contextlib.suppress(zlib.error):
            while piece:
                stream.decompress(piece)
                piece = file.read(_PIECE)
    return stream.eof
