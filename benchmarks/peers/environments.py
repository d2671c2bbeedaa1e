"""A virtual environment for each peer, made when it is needed, outside the repository.

It stands in `peers/NAME-DIGEST` of salmc's cache folder; the digest is of its requirements, so that
other versions make another one. A file in it says that it is whole.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from salmc.cache_folder import cache_folder
from salmc_paper.harness.jobs import NotAvailableError

REQUIREMENTS = Path(__file__).parent / "requirements"
_WHOLE = "whole"
_LONGEST = 1800.0
"""Seconds that an installation may take."""


def python_of(name: str | None) -> str:
    """The interpreter of a peer's environment, which is made if it is not there; None for ours.

    Raises:
        NotAvailableError: if it cannot be made, with pip's last complaint.
    """
    if name is None:
        return sys.executable
    folder = place(name)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not (folder / _WHOLE).exists():
        _make(name, folder, python)
    return str(python)


def place(name: str) -> Path:
    """Where the environment is, or will be."""
    told = (REQUIREMENTS / f"{name}.txt").read_bytes() + platform.python_version().encode()
    return cache_folder() / "peers" / f"{name}-{hashlib.sha256(told).hexdigest()[:10]}"


def _make(name: str, folder: Path, python: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
        words = [str(python), "-m", "pip", "install", "--quiet", "-r", f"{name}.txt"]
        done = subprocess.run(
            words, cwd=REQUIREMENTS, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
        complaint = done.stderr if done.returncode else ""
    except (OSError, subprocess.SubprocessError) as error:
        complaint = str(error)
    if complaint:
        shutil.rmtree(folder, ignore_errors=True)
        last = complaint.strip().splitlines()[-1]
        raise NotAvailableError(f"The environment of {name} cannot be made: {last}")
    (folder / _WHOLE).touch()
