"""The page that shows a run or draws, and needs nothing beside it, not even a network.

`report.html` of a run folder is made from what is in the folder, so that it says what the folder
says. The template escapes all text, pictures are part of the page, and a content policy forbids it
to load or run anything.
"""

import base64
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.colors import to_hex

from salmc.diagnostics.summary import number
from salmc.diagnostics.verdict import DISCREPANCY_LIMIT
from salmc.report import dark, style
from salmc.report.illustrations import Illustration, Illustrations, read_illustrations
from salmc.report.run_content import (
    preparing_seconds,
    shown_table,
    target_name,
    training_seconds,
    untold_warnings,
)
from salmc.report.templates import templates
from salmc.sampling.files.atomic import write_file
from salmc.sampling.files.folder import read_json
from salmc.sampling.sampler_uses import MOVED_BY, UNTRAINED

MOST_ROWS = 200

_ACCEPTANCES = {
    "metropolis": "of proposals, by Metropolis-Hastings",
    "density ratio": "of steps, by the density ratio alone",
}


class Tile(NamedTuple):
    """One of the few figures to look at first."""

    label: str
    value: str
    note: str
    mood: str = ""
    """"good", "bad" or neither."""


def write_html(folder: Path) -> Path:
    """Write `report.html` into a run folder, from what is in it.

    Raises:
        OutputError: if the folder lacks what the page is made of, or cannot be written.
    """
    return write_page(render(folder), folder / "report.html")


def write_page(page: str, path: Path) -> Path:
    """Write a page, in full or not at all.

    Raises:
        OutputError: if it cannot be written.
    """
    write_file(path, page.encode())
    return path


def render(folder: Path) -> str:
    """The page of a run folder as text."""
    return render_page(
        read_json(folder / "settings.json", folder),
        read_json(folder / "diagnostics.json", folder),
        read_illustrations(folder / "plots"),
    )


def render_page(
    settings: dict[str, Any],
    diagnostics: dict[str, Any],
    illustrations: Illustrations,
    all_rows: str = "diagnostics.json",
) -> str:
    """The page as text, from what `settings.json`, `diagnostics.json` and `plots` hold.

    Args:
        settings, diagnostics, illustrations: what the page shows.
        all_rows: where the rows are that a long table leaves out.
    """
    verdict = diagnostics.get("verdict") or {}
    found = verdict.get("sentences") or ["Not judged: there are no diagnostics."]
    opening, colon, reasons = found[0].partition(":")
    environment = templates()
    environment.filters["plain"] = _plain
    return environment.get_template("page.html.jinja").render(
        method=settings.get("method"),
        target=target_name(settings),
        facts=_facts(settings, diagnostics),
        mood=_mood(verdict),
        finding=opening if colon else opening.rstrip("."),
        reasons=reasons.strip(),
        sentences=[*found[1:], *untold_warnings(settings, diagnostics)],
        tiles=_tiles(settings, diagnostics),
        table=shown_table(settings, diagnostics, MOST_ROWS),
        pictures=[_encoded(picture) for picture in illustrations.pictures],
        path=illustrations.path,
        all_rows=all_rows,
        series=style.SERIES,
        dark_series=[to_hex(dark.turned(colour)) for colour in style.SERIES],
        command=settings.get("command"),
        details=_details(settings),
        version=(settings.get("versions") or {}).get("salmc", ""),
        written=settings.get("written", ""),
    )


def _mood(verdict: dict[str, Any]) -> str:
    if verdict.get("trustworthy"):
        return "good"
    return "unsure" if verdict.get("degree") == "no problem found" else "bad"


def _facts(settings: dict[str, Any], diagnostics: dict[str, Any]) -> list[str]:
    """The line below the heading: how many, of what, by what."""
    chosen = settings.get("settings") or {}
    facts = []
    if diagnostics.get("kind") == "particles":
        facts.append(f"{diagnostics['chains']:,} particles, the last cloud")
    elif diagnostics:
        facts.append(f"{diagnostics['chains']:,} chains × {diagnostics['draws']:,} draws")
    dim = int(settings.get("dim", 0))
    facts.append(f"{dim:,} dimension{'' if dim == 1 else 's'}")
    if "kernel" in chosen:
        moved_by = MOVED_BY.get(str(settings.get("method")))
        facts.append(moved_by or f"kernel {chosen['kernel']}")
        facts.append("exact (Metropolis-Hastings)" if chosen.get("exact") else "not exact")
    if "seed" in chosen:
        facts.append(f"seed {chosen['seed']}")
    return facts


def _tiles(settings: dict[str, Any], diagnostics: dict[str, Any]) -> list[Tile]:
    """Bias beside ESS."""
    tiles = []
    ess = diagnostics.get("smallest_ess")
    if ess is not None:
        total = diagnostics["chains"] * diagnostics["draws"]
        tiles.append(Tile("Effective draws", f"{ess:,.0f}", f"of {total:,}, smallest coordinate"))
    for name, label, figure in (
        ("ksd", "Bias by the density", "KSD²"),
        ("mmd", "Bias by exact draws", "MMD²"),
    ):
        judged = diagnostics.get(name) or {}
        value, floor = judged.get("value"), judged.get("floor")
        if value is None or not floor:
            continue
        ratio = value / floor
        mood = "good" if ratio <= 1 else "bad" if ratio > DISCREPANCY_LIMIT else ""
        # Unbiased estimates fall below zero: a ratio of those would say nothing.
        seen = "none seen" if ratio <= 1 else f"{ratio:.1f} × the floor"
        note = f"{figure} {number(value)}; exact draws: below {number(floor)}"
        tiles.append(Tile(label, seen, note, mood))
    rhat = diagnostics.get("largest_rhat")
    if rhat is not None:
        tiles.append(Tile("R-hat", f"{rhat:.3f}", "largest; 1 when chains agree"))
    acceptance = diagnostics.get("acceptance")
    if acceptance is not None:
        kind = str(diagnostics.get("acceptance_kind"))
        tiles.append(Tile("Acceptance", f"{acceptance:.1%}", _ACCEPTANCES.get(kind, kind)))
    seconds = settings.get("seconds")
    if seconds is not None:
        before, kind = preparing_seconds(settings), "training" if training_seconds(settings) else ""
        told = f"after {before:.3g} s of {kind or 'preparation'}"
        more = told if before else "without compilation"
        tiles.append(Tile("Time to draw", f"{seconds:.3g} s", more))
    return tiles


def _encoded(picture: Illustration) -> dict[str, str]:
    """A picture and its words, the picture itself in base 64."""
    return {
        "heading": picture.heading,
        "caption": picture.caption,
        "alt": picture.alt,
        "light": base64.b64encode(picture.light).decode(),
        "dark": base64.b64encode(picture.dark or b"").decode(),
    }


def _details(settings: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Everything that is needed to make the run again, by heading."""
    chosen = {"target": settings.get("target_spec"), "method": settings.get("method")}
    chosen |= settings.get("settings") or {}
    nested = {name: value for name, value in chosen.items() if isinstance(value, dict)}
    groups = {"Settings": {name: chosen[name] for name in chosen if name not in nested}}
    if settings.get("method") in UNTRAINED and "training" in nested:
        nested["search"] = nested.pop("training")
    groups |= {name.replace("_", " ").capitalize(): content for name, content in nested.items()}
    return {**groups, "Versions": settings.get("versions") or {}}


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
