"""One writer for each place: a second run into it is refused at once, before its work.

The lock is the operating system's: it ends with the process that holds it, however that ends, so
that a run that was killed stands in nobody's way. Systems without such locks (Windows) go without.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from salmc.errors import OutputError
from salmc.sampling.files.atomic import final_place, output_errors

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def only_writer(path: str | Path) -> Iterator[None]:
    """Be the only run that writes to `path`, which need not be there yet.

    An empty hidden file stands beside it until the block ends.

    Raises:
        OutputError: if another run, of this process or another, is writing there.
    """
    place = final_place(path)
    if fcntl is None:
        yield
        return
    with output_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_name(f".{place.name}.lock")
        descriptor = _locked(lock)
    if descriptor is None:
        raise OutputError(
            f"Another run is writing to {place}. Wait until it has ended, or choose another place."
        )
    try:
        yield
    finally:
        # Before the lock is let go: the next one to take it finds that the name has gone.
        with contextlib.suppress(OSError):
            lock.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(lock: Path) -> int | None:
    """An open lock file, or None if another has it."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(lock, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            # File systems without locks: as on systems without them.
            return descriptor
        # Whoever had the lock before may have removed the file: then another may be locked anew.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(lock, follow_symlinks=False)):
                return descriptor
        os.close(descriptor)


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """The same for a folder that is there: it is locked itself, and no file is needed.

    Raises:
        OutputError: if another run is writing there.
    """
    if fcntl is None:
        yield
        return
    with output_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(
                f"Another run is writing to {folder}. Wait until it has ended, or choose another "
                "place."
            ) from error
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)
