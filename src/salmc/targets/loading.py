"""Targets by name: a built-in one, or one in the user's own Python file.

    load_target("mog6")                 a built-in target
    load_target("my_model.py:target")   `target` in my_model.py: a Target, or a function of no
                                        arguments that returns one

Whatever goes wrong becomes one `TargetError` that says what and where.
"""

import difflib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from salmc.errors import DataError, TargetError
from salmc.target import AbstractTarget
from salmc.targets.registry import TARGETS


def load_target(text: str) -> AbstractTarget:
    """The target called `text`.

    Args:
        text: the name of a built-in target, or "file.py:name".

    Raises:
        TargetError: if there is no such target, or the user's file does not give one.
    """
    # From the right: the path itself may hold a colon.
    path, colon, name = text.rpartition(":")
    if colon and (path.endswith(".py") or name.isidentifier()):
        return _from_file(Path(path).expanduser(), name)
    if text.endswith(".py") or "/" in text:
        raise TargetError(
            f"`{text}` names a file but no target in it. Write {text.rstrip(':')}:NAME, with the "
            "name that the target has in that file."
        )
    return _built_in(text)


def _built_in(name: str) -> AbstractTarget:
    if name in TARGETS:
        return TARGETS[name].factory()
    near = difflib.get_close_matches(name.lower(), TARGETS, n=3, cutoff=0.5)
    if near:
        remedy = f"Did you mean {' or '.join(near)}?"
    else:
        remedy = f"There are {', '.join(TARGETS)}; your own is written file.py:name."
    raise TargetError(f"There is no built-in target `{name}`. {remedy}")


def _from_file(path: Path, name: str) -> AbstractTarget:
    module = _import_file(path)
    if not name or not hasattr(module, name):
        raise TargetError(f"There is no `{name}` in {path}. {_what_is_there(module)}")
    value = getattr(module, name)
    if isinstance(value, AbstractTarget):
        return value
    place = f"`{name}` in {path}"
    if not callable(value):
        raise TargetError(
            f"{place} must be a Target, or a function that returns one. "
            f"Got {_describe(value)} instead."
        )
    needed = _required_arguments(value)
    if needed:
        raise TargetError(
            f"{place} must be a Target, or a function of no arguments that returns one. Got "
            f"a function of {', '.join(needed)} instead; a log density becomes a Target by "
            f"salmc.Target({name}, dim=...)."
        )
    try:
        made = value()
    except (Exception, SystemExit) as error:
        raise TargetError(f"{place} failed: {_users_error(error, path)}") from error
    if not isinstance(made, AbstractTarget):
        raise TargetError(f"{place} must return a Target. Got {_describe(made)} instead.")
    return made


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        kind = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise TargetError(f"The file {path} {kind}.")
    # A private name keeps the file from taking the place of an installed module.
    module_name = f"_salmc_user_{path.stem}"
    specification = importlib.util.spec_from_file_location(module_name, path.resolve())
    if specification is None or specification.loader is None:
        raise TargetError(f"The file {path} is not Python: its name must end in .py.")
    module = importlib.util.module_from_spec(specification)
    folder = str(path.resolve().parent)
    # As with `python file.py`, the file may import its neighbours, and dataclasses look up
    # their own module while they are made.
    sys.path.insert(0, folder)
    sys.modules[module_name] = module
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        raise TargetError(f"Cannot import {path}: {_users_error(error, path)}") from error
    finally:
        sys.path.remove(folder)
    return module


def _users_error(error: BaseException, path: Path) -> str:
    """The user's own error and the last line of the user's file on the way to it."""
    message = " ".join(str(error).split())
    if isinstance(error, SyntaxError):
        line, message = error.lineno, error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
        line = own[-1] if own else None
    where = f" (line {line})" if line is not None else ""
    return f"{type(error).__name__}: {message.rstrip('.')}{where}."


def _what_is_there(module: ModuleType) -> str:
    public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    targets = [name for name, value in public.items() if isinstance(value, AbstractTarget)]
    if targets:
        return f"It has the targets {', '.join(sorted(targets))}."
    own = [
        name
        for name, value in public.items()
        if not isinstance(value, ModuleType)
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]
    return f"It has {', '.join(sorted(own))}." if own else "It defines nothing."


def _required_arguments(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind not in variadic
    ]


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    text = repr(value)
    return f"{type(value).__name__} {text}" if len(text) <= 60 else type(value).__name__


def built_in(name: object) -> AbstractTarget | None:
    """The built-in target of that name; None if there is none, or its data are not here."""
    if not isinstance(name, str) or name not in TARGETS:
        return None
    try:
        return load_target(name)
    except DataError:
        return None
