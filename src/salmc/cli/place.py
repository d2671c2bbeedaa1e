"""Where a run is written: a folder named by the user or by the clock, and a last resort."""

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from salmc.cli.console import complain
from salmc.errors import OutputError


def choose_folder(out: Path | None, words: tuple[str, ...]) -> Path:
    """The user's folder, or one under runs/ that is not there yet."""
    if out is not None:
        return out
    stem = "-".join(_slug(word) for word in (*words, time.strftime("%Y%m%d-%H%M%S")))
    folder, count = Path("runs") / stem, 1
    while folder.exists():
        count += 1
        folder = Path("runs") / f"{stem}-{count}"
    return folder


def write_somewhere(write: Callable[[Path], Path], folder: Path) -> tuple[Path, bool]:
    """Write to `folder`; if that fails, to a temporary one, so that nothing computed is lost.

    Returns:
        The folder, and whether it is the one that was asked for.
    """
    try:
        return write(folder), True
    except OutputError as error:
        complain(str(error))
        fallback = Path(tempfile.mkdtemp(prefix="salmc-")) / folder.name
        written = write(fallback)
        complain(f"What was computed is in {written} instead.")
        return written, False


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text.removesuffix(".py")).strip("-").lower() or "run"
