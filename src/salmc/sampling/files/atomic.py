"""Files and folders that are either there in full or not there at all.

Everything is written beside its final place under a hidden name of its own, which no one else can
know or have taken, flushed to the disk and then renamed. So two writers of one place never meet:
what is there is what one of them wrote, whole. A link at the final place is replaced and never
followed. A run that is killed half way leaves at most such a hidden file or folder behind, which
nothing ever reads, and which the next writer of that place removes: whoever is at work on one holds
a lock on it, and a lock ends with its process.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from salmc.errors import OutputError
from salmc.sampling.files.abandoned import at_work, being_written, remove_abandoned

_EXCLUSIVE = (
    os.O_RDWR
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
"""Make a file that was not there; a link of that name is an error, not a way to another file."""

_LONGEST_NAME = 150
"""Bytes of a name that hidden names repeat: most systems have names of 255 bytes."""

_SWAP = 2
"""Linux's RENAME_EXCHANGE."""


@contextlib.contextmanager
def new_folder(
    path: str | Path, *, overwrite: bool = False, ours: Callable[[Path], bool] | None = None
) -> Iterator[Path]:
    """A folder to fill; it becomes `path` when the block ends well and vanishes otherwise.

    Args:
        path: where the folder will be.
        overwrite: whether a folder that is there already may be replaced. The old one is removed
            only after the new one is in its place.
        ours: tells whether a folder that is there was written by salmc; others are never replaced.

    Raises:
        OutputError: if the folder is there already or cannot be written.
    """
    place = final_place(path)
    check_place(place, overwrite=overwrite, ours=ours)
    working = _hidden_sibling(place, "tmp")
    try:
        with output_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(place.parent, _hidden(place))
            working.mkdir()
            with at_work(working):
                yield working
                _flush(working)
                _move_into_place(working, place, overwrite=overwrite)
            flush_folder(place.parent)
    finally:
        shutil.rmtree(working, ignore_errors=True)


@contextlib.contextmanager
def new_file(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write bytes to; it replaces `path` when the block ends well.

    Raises:
        OutputError: if it cannot be written; what was at `path` before is there still.
    """
    place = final_place(path)
    working = _hidden_sibling(place, "tmp")
    try:
        with output_errors(place):
            remove_abandoned(place.parent, _hidden(place))
            with os.fdopen(os.open(working, _EXCLUSIVE, 0o666), "w+b") as file:
                being_written(file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
            working.replace(place)
            flush_folder(place.parent)
    finally:
        with contextlib.suppress(OSError):
            working.unlink(missing_ok=True)


def write_file(path: str | Path, content: bytes) -> None:
    """Write a file in full or not at all; see `new_file`."""
    with new_file(path) as file:
        file.write(content)


def check_place(
    path: str | Path, *, overwrite: bool = False, ours: Callable[[Path], bool] | None = None
) -> None:
    """Find out before long work whether `path` can become a new folder.

    Raises:
        OutputError: if it is there already, or its parent cannot be written.
    """
    place = final_place(path)
    with output_errors(place):
        if os.path.lexists(place):
            empty = place.is_dir() and not any(place.iterdir())
            if not overwrite:
                raise OutputError(
                    f"The folder {place} exists already. Choose another or allow overwriting it."
                )
            if not empty and not (place.is_dir() and (ours is None or ours(place))):
                raise OutputError(
                    f"{place} was not written by salmc, so it is not overwritten. "
                    "Choose another folder."
                )
        place.parent.mkdir(parents=True, exist_ok=True)
        # Permissions cannot be trusted to tell (root, read-only mounts): try it.
        probe = _hidden_sibling(place, "tmp")
        probe.mkdir()
        probe.rmdir()


def final_place(path: str | Path) -> Path:
    """An absolute path, without following a link at its end."""
    expanded = Path(path).expanduser()
    return expanded.parent.resolve() / expanded.name if expanded.name else expanded.resolve()


@contextlib.contextmanager
def output_errors(place: Path) -> Iterator[None]:
    """An operating-system error becomes one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise OutputError(f"Cannot write {place}: {reason}.") from error


def _hidden_sibling(place: Path, purpose: str) -> Path:
    return place.with_name(f"{_hidden(place)}.{purpose}-{secrets.token_hex(16)}")


def _hidden(place: Path) -> str:
    return "." + os.fsdecode(os.fsencode(place.name)[:_LONGEST_NAME])


def _move_into_place(working: Path, place: Path, *, overwrite: bool) -> None:
    if not overwrite or not os.path.lexists(place):
        # A rename would silently replace an empty folder that appeared in the meantime.
        if os.path.lexists(place):
            raise OutputError(f"The folder {place} appeared during the run. Choose another.")
        working.rename(place)
        return
    if _swapped(working, place):
        # What was there is now under the hidden name, which is removed in the end.
        return
    old = _hidden_sibling(place, "old")
    place.rename(old)
    try:
        working.rename(place)
    except BaseException:
        old.rename(place)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _swapped(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, so that a kill finds the old or the new; False if the
    system cannot."""
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here = -100  # AT_FDCWD: paths are what they are
    return rename(here, os.fsencode(one), here, os.fsencode(other), _SWAP) == 0


def _flush(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        for name in files:
            flush_file(Path(parent) / name)
        flush_folder(Path(parent))


def flush_file(path: Path) -> None:
    """Have a file's content on the disk, and not only on its way there."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """The same for the names in a folder."""
    # Some systems (Windows, a few network mounts) cannot flush a folder; the files are safe.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
