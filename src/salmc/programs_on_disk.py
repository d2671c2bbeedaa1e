"""Compiled programs that outlive the process, and the upkeep of their folder, which JAX fills but
does not look after.

Half of a first fit in few dimensions is compilation. JAX can keep compiled programs on disk and
finds them again by their text, so that the same fit in a new process waits for little more than its
training. It is exact: what runs is the very program that was compiled before.

A program is made for one kind of processor, and on another one it could crash. Home folders are
shared between machines, so each kind of processor has a folder of its own.
"""

import contextlib
import hashlib
import os
import platform
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from salmc.cache_folder import cache_folder

_SETTINGS = {
    "jax_compilation_cache_dir": "",
    # Small programs are many, and together they take as long as a large one.
    "jax_persistent_cache_min_compile_time_secs": "0",
    "jax_persistent_cache_min_entry_size_bytes": "-1",
}

MOST_BYTES = 2**29
"""The oldest programs beyond this are removed."""

_CHECKED = ".checked"
"""An empty file. Programs older than it were found whole."""

_WRITING = 10.0
"""Seconds: a younger file may be one that another process is still writing."""

_ZLIB = b"\x78"
_PIECE = 2**20


def remember_programs(folder: str | Path | None = None) -> Path | None:
    """Keep compiled programs on disk from here on, and look for them there.

    The `salmc` command does so by itself. In a notebook, call it once, at the top. It changes a
    setting of JAX, and so holds for all that JAX compiles in this process.

    Args:
        folder: where; in salmc's cache unless given. Whoever can write to it can run code as you.

    Returns:
        The folder, or None if it cannot be written: programs are compiled anew then. If JAX was
        told of a folder before, by JAX_COMPILATION_CACHE_DIR for instance, that is left alone and
        returned.

    Example:
        >>> import salmc
        >>> folder = salmc.remember_programs("compiled")  # doctest: +SKIP
    """
    chosen = _chosen_before()
    if chosen is not None:
        return chosen
    try:
        place = cache_folder() / "programs" if folder is None else Path(folder).expanduser()
        place = place.absolute() / _processor()
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter where there is no home folder
        return None
    if not os.access(place, os.W_OK):
        return None
    tidy(place)
    _tell_jax({**_SETTINGS, "jax_compilation_cache_dir": str(place)})
    return place


def _chosen_before() -> Path | None:
    if "jax" in sys.modules:
        import jax

        config: Any = jax.config  # its type does not tell of its settings
        given = config.jax_compilation_cache_dir
    else:
        given = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    return Path(given) if given else None


def _tell_jax(settings: dict[str, str]) -> None:
    """What the user said by the environment stands.

    A JAX that is not loaded yet is told by the environment too: commands that do without it stay
    quick.
    """
    settings = {name: told for name, told in settings.items() if name.upper() not in os.environ}
    if "jax" not in sys.modules:
        os.environ.update({name.upper(): value for name, value in settings.items()})
        return
    import jax

    for name, value in settings.items():
        jax.config.update(name, value if name.endswith("dir") else int(value))


def _processor() -> str:
    """A name for this kind of processor: its model and what it can do, where the system tells."""
    told = [platform.machine(), platform.processor()]
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        kinds = ("model name", "flags", "Features", "CPU part")
        told += sorted({line for line in lines if line.startswith(kinds)})
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


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
