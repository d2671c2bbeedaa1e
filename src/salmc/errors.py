"""Every error that salmc raises on purpose.

Each carries one sentence for a person: what is wrong, what was given, what to do.
The command line prints that sentence and exits with code 2; `reason` tells any error in one line.
"""


class SalmcError(Exception):
    """Base of all errors raised on purpose."""


class ArgumentError(SalmcError, ValueError):
    """An argument has the wrong value, type or shape."""


class TargetError(SalmcError):
    """The target density cannot be used: it does not load, or its values make no sense."""


class NotDifferentiableError(TargetError, TypeError):
    """A method that needs the gradient was given a target that has none."""


class OutputError(SalmcError):
    """A file or folder cannot be read or written."""


class DataError(SalmcError):
    """A data set cannot be found, downloaded or read, or is not the one it should be."""


class MissingPackageError(SalmcError, ImportError):
    """A package that salmc does not install by itself is needed, and is not there."""


def reason(error: BaseException) -> str:
    """Any error in one line: its own sentence if it is one of ours, else with its kind before."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, SalmcError) and lines:
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
