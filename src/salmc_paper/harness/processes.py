"""Measure in a process of its own: nothing is loaded or compiled in it, and its memory is its own.

A module that is measured so prints figures as one line of JSON when it is run.
"""

import json
import subprocess
import sys
from typing import Any

from salmc.errors import SalmcError


def fresh_python(*words: str) -> str:
    """What a fresh interpreter prints that is called with these words.

    Raises:
        SalmcError: with the last line of its complaint, if it fails.
    """
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        told = " ".join(words[:2])
        raise SalmcError(f"The process `{told}` ended with {done.returncode}: {lines[-1]}")
    return done.stdout


def measured_apart(module: str, *words: str) -> dict[str, Any]:
    """The figures that `python -m module words` prints as its last line."""
    return dict(json.loads(fresh_python("-m", module, *words).splitlines()[-1]))
