"""Evaluations that outlive their process: points and values in one file, each once it is here.

A run with the same seed asks for the same points. So one that was ended, by an exception at some
point or Ctrl-C, goes on where it was when it is started again: what the file has is not computed a
second time. A record is a point, its value and a checksum, all of one length; one that
was cut off in the middle is cut off for good, and others never suffer from it.
"""

import errno
import os
import zlib
from pathlib import Path

import numpy as np

from salmc.errors import OutputError

_CHECK = np.dtype("<u4")
_NUMBER = np.dtype("<f8")


class KeptEvaluations:
    """The file, and what is in it.

    Args:
        path: made where it is missing.
        dim: number of coordinates.

    Raises:
        OutputError: if it cannot be read or written, or holds something else.
    """

    def __init__(self, path: str | Path, dim: int):
        self.path, self.dim = Path(path).expanduser(), dim
        self._header = f"salmc evaluations 1, dim {dim}\n".encode()
        self._known: dict[bytes, float] = {}
        self.last: np.ndarray | None = None
        try:
            self._open()
        except OSError as error:
            raise OutputError(
                f"Evaluations cannot be kept in {self.path}: {error.strerror}."
            ) from error

    def __len__(self) -> int:
        return len(self._known)

    def values(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each point its value, and whether that is known."""
        keys = [row.tobytes() for row in np.ascontiguousarray(points, _NUMBER)]
        known = np.array([key in self._known for key in keys], bool)
        return np.array([self._known.get(key, np.nan) for key in keys], float), known

    def add(self, points: np.ndarray, values: np.ndarray) -> None:
        """Keep what was computed.

        Raises:
            OutputError: if it cannot be written.
        """
        rows = np.ascontiguousarray(points, _NUMBER)
        records = b"".join(_record(row, value) for row, value in zip(rows, values, strict=True))
        try:
            # One write at the end of the file, whoever else writes to it.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
            try:
                written = os.write(descriptor, records)
                if written < len(records):
                    # A disk that is full takes part of it: what comes later must not follow that.
                    os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise OutputError(
                f"Evaluations cannot be kept in {self.path}: {error.strerror}."
            ) from error
        self._remember(rows, values)

    def _open(self) -> None:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_bytes(self._header)
            return
        content = self.path.read_bytes()
        if not content.startswith(self._header):
            raise OutputError(
                f"{self.path} is no file of evaluations of a density with {self.dim} coordinates. "
                "Give another path as `keep`."
            )
        length = (self.dim + 1) * _NUMBER.itemsize + _CHECK.itemsize
        body = content[len(self._header) :]
        whole = len(body) - len(body) % length
        if whole < len(body):
            os.truncate(self.path, len(self._header) + whole)
        parts = np.frombuffer(body[:whole], np.uint8).reshape(-1, length)
        right = [zlib.crc32(row[: -_CHECK.itemsize].tobytes()) for row in parts]
        told = np.ascontiguousarray(parts[:, -_CHECK.itemsize :]).view(_CHECK)[:, 0]
        kept = np.ascontiguousarray(parts[right == told, : -_CHECK.itemsize]).view(_NUMBER)
        self._remember(kept[:, :-1], kept[:, -1])

    def _remember(self, points: np.ndarray, values: np.ndarray) -> None:
        for row, value in zip(points, values, strict=True):
            self._known[row.tobytes()] = float(value)
        if len(points):
            self.last = points[-1].copy()


def _record(point: np.ndarray, value: float) -> bytes:
    content = point.tobytes() + np.asarray(value, _NUMBER).tobytes()
    return content + np.asarray(zlib.crc32(content), _CHECK).tobytes()
