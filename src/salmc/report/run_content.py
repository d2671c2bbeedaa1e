"""What a run folder tells, ready to be shown by the page of a run and by the command line."""

from typing import Any, NamedTuple

from salmc.diagnostics.summary import number
from salmc.diagnostics.verdict import DOUBT


class ShownTable(NamedTuple):
    """The table of coordinates as far as it is worth showing, and the figures below it."""

    columns: list[str]
    rows: list[list[str]]
    more: int
    """Rows that are left out."""
    figures: list[tuple[str, str]]


def shown_table(
    settings: dict[str, Any], diagnostics: dict[str, Any], most_rows: int
) -> ShownTable | None:
    """The table in `diagnostics.json`, with the times of training; None where there is none."""
    content = diagnostics.get("table")
    if not isinstance(content, dict):
        return None
    columns, rows = content["columns"], content["rows"]
    # A column in which nothing is defined, as R-hat of particles, only takes room.
    kept = [i for i in range(len(columns)) if i == 0 or any(row[i] != "–" for row in rows)]
    figures = [(label, value) for label, value in content["figures"]]
    parts = training_seconds(settings)
    if parts:
        compiling = parts.pop("compile", 0.0)
        value = f"{number(sum(parts.values()))} ({number(compiling)})"
        figures.append(("training seconds (and to compile)", value))
    if (preparing := preparing_seconds(settings)) and not parts:
        figures.append(("seconds of preparation", number(preparing)))
    return ShownTable(
        [columns[i] for i in kept],
        [[row[i] for i in kept] for row in rows[:most_rows]],
        max(0, len(rows) - most_rows),
        figures,
    )


def target_name(settings: dict[str, Any]) -> str:
    """What the target is called, as far as the folder knows."""
    return str(settings.get("target") or settings.get("target_spec") or "unknown target")


def untold_warnings(settings: dict[str, Any], diagnostics: dict[str, Any]) -> list[str]:
    """Warnings of the run that its verdict does not repeat."""
    told = " ".join((diagnostics.get("verdict") or {}).get("sentences", []))
    # A doubt of training's stands there without the words that it begins with.
    return [text for text in settings.get("warnings") or [] if text.removeprefix(DOUBT) not in told]


def preparing_seconds(settings: dict[str, Any]) -> float:
    """What search and training took before the first draw; 0 where that is not known."""
    searched = (settings.get("settings") or {}).get("search_seconds")
    return float(searched or sum(training_seconds(settings).values()))


def training_seconds(settings: dict[str, Any]) -> dict[str, float]:
    """What each part of training took; nothing where there was none."""
    parts = (settings.get("settings") or {}).get("training_seconds")
    if not isinstance(parts, dict):
        return {}
    return {str(part): float(value) for part, value in parts.items()}
