"""The folder of a comparison: what each method reached on one target, there in full or not at all.

settings.json         what was compared, versions, times
comparison.json       the figures of each method, or why it could not run
comparison.png        the draws side by side
draws/<method>.zarr   the draws of each method
checksums.json        of the first two
"""

import dataclasses
from pathlib import Path
from typing import Any

from salmc.errors import OutputError
from salmc.report import comparison, style
from salmc.report.comparison import Result
from salmc.sampling.files.atomic import new_folder
from salmc.sampling.files.folder import (
    check_checksums,
    is_ours,
    now,
    read_json,
    versions,
    write_checksums,
    write_json,
)
from salmc.sampling.files.store import write_zarr

FORMAT = "salmc-comparison-2"
FORMATS = (FORMAT, "salmc-comparison-1")
"""The latter has no checksums."""

_CHECKED = ("settings.json", "comparison.json")
_WRITTEN = ("method", "trouble", "training_seconds", "diagnostics")


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison, as it is written and read. Read again, its results have no draws."""

    target: str
    settings: dict[str, Any]
    results: list[Result]


def write_comparison(
    compared: Comparison, path: str | Path, *, plots: bool = True, overwrite: bool = False
) -> tuple[Path, str]:
    """Write the folder; tells its path, and what went wrong with the picture, if anything."""
    trouble = ""
    with new_folder(path, overwrite=overwrite, ours=is_ours) as working:
        (working / "draws").mkdir()
        for result in compared.results:
            if result.draws is not None:
                # A colon, as in sal-mc:mlp, cannot be part of a name everywhere.
                name = result.method.replace(":", "-")
                write_zarr(result.draws, working / "draws" / f"{name}.zarr")
        settings = {
            "format": FORMAT,
            "written": now(),
            "target": compared.target,
            "settings": compared.settings,
            "versions": versions(),
        }
        write_json(working / "settings.json", settings)
        rows = [{name: getattr(r, name) for name in _WRITTEN} for r in compared.results]
        write_json(working / "comparison.json", {"results": rows})
        write_checksums(working, _CHECKED)
        if plots:
            trouble = _write_picture(compared.results, working / "comparison.png")
    return Path(path), trouble


def open_comparison(path: str | Path) -> Comparison:
    """Read what `write_comparison` wrote, without the draws.

    Raises:
        OutputError: if the folder is missing, damaged, or not of salmc.
    """
    place = Path(path).expanduser()
    settings = read_json(place / "settings.json", place)
    if settings.get("format") not in FORMATS:
        raise OutputError(f"{place} is not a comparison of this version of salmc.")
    check_checksums(place, _CHECKED, needed=settings["format"] == FORMAT)
    content = read_json(place / "comparison.json", place)
    try:
        results = [Result(**{name: row[name] for name in _WRITTEN}) for row in content["results"]]
        return Comparison(settings["target"], settings["settings"], results)
    except (KeyError, TypeError, ValueError) as error:
        raise OutputError(
            f"{place} is damaged: comparison.json does not hold what it should."
        ) from error


def _write_picture(results: list[Result], file: Path) -> str:
    """A picture that fails must not cost the comparison."""
    try:
        with style.look():
            picture = comparison.figure(results)
            if picture is not None:
                style.save(picture, file)
    except KeyboardInterrupt:
        return "Interrupted before comparison.png was written."
    except Exception as error:
        return f"The picture comparison.png could not be drawn: {error}"
    return ""
