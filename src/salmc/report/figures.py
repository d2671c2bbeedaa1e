"""Figures of a run that are in its folder and not in its summary."""

from typing import Any

from salmc.diagnostics.summary import number


def training_seconds(settings: dict[str, Any]) -> dict[str, float]:
    """What each part of training took; nothing where there was none.

    Args:
        settings: the content of `settings.json`.
    """
    parts = (settings.get("settings") or {}).get("training_seconds")
    if not isinstance(parts, dict):
        return {}
    return {str(part): float(value) for part, value in parts.items()}


def training_figures(settings: dict[str, Any]) -> list[tuple[str, str]]:
    """(label, value) of the same, for tables."""
    parts = training_seconds(settings)
    if not parts:
        return []
    compiling = parts.pop("compile", 0.0)
    value = f"{number(sum(parts.values()))} ({number(compiling)})"
    return [("training seconds (and to compile)", value)]
