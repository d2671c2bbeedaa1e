"""Hidden files and folders that runs left behind when they were killed, and how to know them.

Whoever writes one holds the operating system's lock on it, which ends with its process, however
that ends. One that is not locked, and was not made just now, is nobody's any more. Systems without
such locks (Windows) keep what was left.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

_MARK = re.compile(r"\.tmp-[0-9a-f]{32}")
"""What `atomic` puts behind a hidden name; nothing else is ever removed."""

_AGE = 60.0
"""Seconds: between making a file and locking it no run takes so long."""


def being_written(descriptor: int) -> bool:
    """Lock what is open; False if another has it, or there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def at_work(folder: Path) -> Iterator[None]:
    """Lock a folder for as long as the block takes."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        being_written(descriptor)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path, hidden: str) -> None:
    """Remove what killed runs left in a folder under a hidden name and its mark."""
    if fcntl is None or not parent.is_dir():
        return
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in list(entries):
            if entry.name.startswith(hidden) and _MARK.fullmatch(entry.name[len(hidden) :]):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(entry)


def _remove_if_abandoned(entry: "os.DirEntry[str]") -> None:
    if time.time() - entry.stat(follow_symlinks=False).st_mtime < _AGE:
        return
    descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not being_written(descriptor):
            return
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)
    finally:
        os.close(descriptor)
