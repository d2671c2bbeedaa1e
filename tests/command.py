"""Calling `salmc` as a person does, and what a refusal looks like."""

import os
import sys
from pathlib import Path

from typer.testing import CliRunner

from salmc.cli import app

COMMAND = [sys.executable, "-c", "from salmc.cli import main; main()"]
"""For a process of its own, which can be killed."""

# A given start saves the search for one; the tests of pictures and of bad targets search.
START = ["--start", "normal:4"]
MOVER = ["--method", "sgld"]
QUICK = [*MOVER, "--particles", "30", "--steps", "20", "--no-plots", *START]
"""A short run of a mover."""


def call(*arguments):
    """Run in this process; wide, so that no sentence is broken into lines."""
    environment = {"COLUMNS": "300", "TERM": "dumb"}
    return CliRunner().invoke(app, [str(word) for word in arguments], env=environment)


def refused(result, *words):
    """Exit code 2, one sentence on standard error with these words, and nothing written."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    message = result.stderr.strip()
    assert "\n" not in message, message
    for word in words:
        assert word in message, message
    leftovers = [name for name in os.listdir() if name not in ("file", "precious")]
    assert leftovers in ([], ["runs"]), leftovers
    assert not Path("runs").exists() or os.listdir("runs") == []
