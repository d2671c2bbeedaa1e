"""The run folder: everything about one run in one place, there in full or not at all.

settings.json       what was run: target, method, settings, command, versions, times, warnings
draws.zarr          the draws, for `Draws.load`, ArviZ and xarray
diagnostics.json    the figures of the summary
summary.txt         the summary as a person reads it
plots/*.png         pictures; plots/dark and plots/page.json: the same for dark pages, and words
kernel.salmc        the trained kernel, where one was learned; `salmc sample` draws from it
report.html         all of it on one page, as the command line writes it
checksums.json      of settings, diagnostics and summary; draws and kernels have their own
"""

import dataclasses
import datetime
import hashlib
import importlib.metadata
import json
import platform
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from salmc.errors import OutputError
from salmc.json_values import printable, to_text
from salmc.sampling.draws import Draws
from salmc.sampling.files.atomic import new_folder
from salmc.sampling.files.store import load_draws, write_zarr
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    from salmc.diagnostics.summary import Summary

FORMAT = "salmc-run-2"
_WITHOUT_CHECKSUMS = "salmc-run-1"
_CHECKSUMS = "checksums.json"
_CHECKED = ("settings.json", "diagnostics.json", "summary.txt")

_LARGEST = 2**25
"""Bytes of a JSON or text file in a folder; they hold some ten thousand."""

Plotter = Callable[[Draws, Path], tuple[str, ...]]
"""Writes pictures of draws into a folder; returns what went wrong, in words."""

Extras = Callable[[Path], None]
"""Adds further files to a folder that holds all the others already."""


@dataclasses.dataclass(frozen=True, eq=False)
class RunFolder:
    """A run folder that was opened again.

    Attributes:
        path: the folder.
        draws: the draws, with their target where it is one of the built-in ones or was given, and
            with the names and shapes of the user's variables in any case.
        settings: the content of `settings.json`.
        diagnostics: the content of `diagnostics.json`; empty if the run was interrupted before it.
        summary: the content of `summary.txt`.
        plots: the pictures.
    """

    path: Path
    draws: Draws
    settings: dict[str, Any]
    diagnostics: dict[str, Any]
    summary: str
    plots: tuple[Path, ...]


def write_run(
    draws: Draws,
    path: str | Path,
    *,
    summary: "Summary | None" = None,
    spec: str | None = None,
    plots: Plotter | None = None,
    extras: Extras | None = None,
    command: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a run folder.

    Args:
        draws: the draws of the run.
        path: the folder to make.
        summary: what `draws.summary()` gave.
        spec: how the target was named, so that the folder tells it.
        plots: writes the pictures; what goes wrong there is added to the warnings of the draws.
        extras: writes further files, such as the kernel; called last.
        command: what was typed, so that the folder tells it.
        overwrite: whether a run folder that is there already is replaced.

    Raises:
        OutputError: if the folder exists already or cannot be written.
    """
    with new_folder(path, overwrite=overwrite, ours=is_ours) as working:
        if plots is not None:
            (working / "plots").mkdir()
            troubles = plots(draws, working / "plots")
            draws = dataclasses.replace(draws, warnings=(*draws.warnings, *troubles))
        write_zarr(draws, working / "draws.zarr")
        write_json(working / "settings.json", _settings(draws, spec, command))
        write_json(working / "diagnostics.json", {} if summary is None else _figures(summary))
        text = "The run was interrupted before its diagnostics." if summary is None else summary
        (working / "summary.txt").write_text(f"{text}\n", encoding="utf-8")
        write_checksums(working, _CHECKED)
        if extras is not None:
            extras(working)
    return Path(path)


def open_run(path: str | Path, target: AbstractTarget | None = None) -> RunFolder:
    """Open a run folder again.

    Args:
        path: the folder.
        target: the target of the run. A built-in target is found by its name; your own is code,
            which is never run by opening a folder, so give it if you need it.

    Raises:
        OutputError: if the folder is missing, damaged, or not of salmc.
    """
    place = Path(path).expanduser()
    settings = read_json(place / "settings.json", place)
    if settings.get("format") not in (FORMAT, _WITHOUT_CHECKSUMS):
        raise OutputError(f"{place} is not a run folder of this version of salmc.")
    check_checksums(place, _CHECKED, needed=settings["format"] == FORMAT)
    from salmc.targets.loading import built_in

    target = target if target is not None else built_in(settings.get("target_spec"))
    draws = load_draws(place / "draws.zarr", target)
    diagnostics = read_json(place / "diagnostics.json", place)
    try:
        summary = printable(_bytes(place / "summary.txt").decode("utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{place} is damaged: summary.txt cannot be read.") from error
    plots = tuple(sorted((place / "plots").glob("*.png")))
    return RunFolder(place, draws, settings, diagnostics, summary.rstrip("\n"), plots)


def is_ours(folder: Path) -> bool:
    """Whether salmc wrote this folder, so that it may be replaced."""
    try:
        mark = read_json(folder / "settings.json", folder).get("format", "")
    except OutputError:
        return False
    return str(mark).startswith("salmc-")


def read_json(file: Path, folder: Path) -> dict[str, Any]:
    """A JSON object of a folder, or one sentence about what is wrong with it."""
    if not folder.is_dir():
        raise OutputError(f"There is no run folder at {folder}.")
    try:
        content = printable(json.loads(_bytes(file).decode("utf-8")))
    except FileNotFoundError as error:
        raise OutputError(f"{folder} is not a run folder: it has no {file.name}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise OutputError(f"{folder} is damaged: {file.name} cannot be read.") from error
    if not isinstance(content, dict):
        raise OutputError(f"{folder} is damaged: {file.name} does not hold what it should.")
    return content


def write_json(file: Path, content: dict[str, Any]) -> None:
    """A JSON file in a folder that is still being filled."""
    file.write_text(to_text(content), encoding="utf-8")


def write_checksums(folder: Path, names: tuple[str, ...]) -> None:
    """What small files of a folder hold, so that a change is noticed."""
    found = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    write_json(folder / _CHECKSUMS, found)


def check_checksums(folder: Path, names: tuple[str, ...], *, needed: bool) -> None:
    """Find out whether files are as they were written; folders of before have no checksums.

    Raises:
        OutputError: if they are not, or if checksums are needed and missing.
    """
    if not needed and not (folder / _CHECKSUMS).exists():
        return
    expected = read_json(folder / _CHECKSUMS, folder)
    changed = []
    for name in names:
        try:
            found = hashlib.sha256(_bytes(folder / name)).hexdigest()
        except FileNotFoundError as error:
            raise OutputError(f"{folder} is damaged: it has no {name}.") from error
        except (OSError, ValueError) as error:
            raise OutputError(f"{folder} is damaged: {name} cannot be read.") from error
        if found != expected.get(name):
            changed.append(name)
    if changed:
        raise OutputError(f"{folder} is damaged: {', '.join(changed)} changed since saving.")


def _bytes(file: Path) -> bytes:
    """A small file; what is no file, or no small one, is not read."""
    # A pipe would be waited for without an end.
    if not stat.S_ISREG(file.stat().st_mode):
        raise ValueError("not a file")
    with file.open("rb") as opened:
        content = opened.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise ValueError("too large")
    return content


def versions() -> dict[str, str]:
    """What the run was made with."""
    packages = ("salmc", "jax", "jaxlib", "numpy")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {**found, "python": platform.python_version(), "platform": platform.platform()}


def now() -> str:
    """The time, to the second, with its zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def page_content(draws: Draws, summary: "Summary") -> tuple[dict[str, Any], dict[str, Any]]:
    """What `settings.json` and `diagnostics.json` of a run would hold, for a page without one."""
    both = {"settings": _settings(draws, None, None), "diagnostics": _figures(summary)}
    content = printable(json.loads(to_text(both)))
    return content["settings"], content["diagnostics"]


def _settings(draws: Draws, spec: str | None, command: str | None) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "written": now(),
        "command": command,
        "target_spec": spec,
        "target": None if draws.target is None else draws.target.name,
        "dim": draws.dim,
        "names": list(draws.shown.names),
        "method": draws.method,
        "kind": draws.kind,
        "settings": draws.settings,
        "seconds": draws.seconds,
        "compile_seconds": draws.compile_seconds,
        "warnings": list(draws.warnings),
        "versions": versions(),
    }


def _figures(summary: "Summary") -> dict[str, Any]:
    """The figures, and the same as the cells of a table, so that it can be shown again."""
    table = {"columns": summary.columns, "rows": summary.rows(), "figures": summary.figures()}
    return {**summary.to_json(), "table": table}
