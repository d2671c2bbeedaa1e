"""`report.html`: one page that shows a run and needs nothing beside it, not even a network.

It is made from what is in the run folder, so that it says what the folder says. Text is escaped and
pictures are part of the page; a content policy forbids it to load or run anything.
"""

import base64
import html
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from salmc.diagnostics.summary import number
from salmc.diagnostics.verdict import DISCREPANCY_LIMIT
from salmc.report.figures import training_figures, training_seconds
from salmc.sampling.atomic import new_file
from salmc.sampling.folder import read_json

MOST_ROWS = 200

CAPTIONS = {
    "draws": ("The draws", "Points and histograms are draws; shading and lines are the target."),
    "training": (
        "Training",
        "What was minimised, and whether the kernel got better by it. Higher acceptance means "
        "proposals that are closer to independent exact draws.",
    ),
    "discrepancy": (
        "Distance from the target",
        "After each step, over all chains or particles. Within the shaded band it cannot be told "
        "from exact draws.",
    ),
    "autocorrelation": (
        "Autocorrelation",
        "How fast a chain forgets where it was. It does not see bias: a wrong sampler can forget "
        "quickly.",
    ),
    "trace": ("Trace", "Where chains or particles were, step by step."),
}
"""In the order in which a reader needs them."""


def write_html(folder: Path) -> Path:
    """Write `report.html` into a run folder, from what is in it.

    Raises:
        OutputError: if the folder lacks what the page is made of, or cannot be written.
    """
    page = render(folder)
    with new_file(folder / "report.html") as working:
        working.write_text(page, encoding="utf-8")
    return folder / "report.html"


def render(folder: Path) -> str:
    """The page as text."""
    settings = read_json(folder / "settings.json", folder)
    diagnostics = read_json(folder / "diagnostics.json", folder)
    template = resources.files("salmc.report").joinpath("template.html").read_text("utf-8")
    method = str(settings.get("method"))
    target = str(settings.get("target") or settings.get("target_spec") or "unknown target")
    return Template(template).substitute(
        title=_text(f"{method} on {target}"),
        method=_text(method),
        target=_text(target),
        subtitle=_subtitle(settings, diagnostics),
        verdict=_verdict(settings, diagnostics),
        tiles=_tiles(settings, diagnostics),
        tables=_tables(settings, diagnostics),
        pictures=_pictures(folder / "plots"),
        details=_details(settings),
        footer=_text(_footer(settings)),
    )


def _subtitle(settings: dict[str, Any], diagnostics: dict[str, Any]) -> str:
    chosen = settings.get("settings") or {}
    words = []
    if diagnostics.get("kind") == "particles":
        words.append(f"{diagnostics['chains']:,} particles, the last cloud")
    elif diagnostics:
        words.append(f"{diagnostics['chains']:,} chains × {diagnostics['draws']:,} draws")
    words.append(_plural(int(settings.get("dim", 0)), "dimension"))
    if "kernel" in chosen:
        words.append(f"kernel {chosen['kernel']}")
        words.append("exact (Metropolis-Hastings)" if chosen.get("exact") else "not exact")
    if "seed" in chosen:
        words.append(f"seed {chosen['seed']}")
    return " <span>·</span> ".join(_text(word) for word in words)


def _verdict(settings: dict[str, Any], diagnostics: dict[str, Any]) -> str:
    found = diagnostics.get("verdict") or {}
    sentences = list(found.get("sentences", [])) or ["Not judged: there are no diagnostics."]
    told = " ".join(sentences)
    sentences += [text for text in settings.get("warnings") or [] if text not in told]
    good = bool(found.get("trustworthy"))
    opening, *others = sentences
    word, colon, rest = opening.partition(":")
    heading = word if colon else opening.rstrip(".")
    rest = rest.strip()
    lead = f"<p>{_text(rest[:1].upper() + rest[1:])}</p>" if colon else ""
    points = "".join(f"<li>{_text(sentence)}</li>" for sentence in others)
    return (
        f'<section class="verdict {"good" if good else "bad"}" aria-label="Verdict">'
        f'<div class="mark" aria-hidden="true">{"✓" if good else "✗"}</div>'
        f"<div><h2>{_text(heading)}</h2>{lead}{f'<ul>{points}</ul>' if points else ''}</div>"
        "</section>"
    )


def _tiles(settings: dict[str, Any], diagnostics: dict[str, Any]) -> str:
    """The few figures to look at first: bias beside ESS."""
    tiles = []
    ess = diagnostics.get("smallest_ess")
    if ess is not None:
        total = diagnostics["chains"] * diagnostics["draws"]
        tiles.append(("Effective draws", f"{ess:,.0f}", f"of {total:,}, smallest coordinate", ""))
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
        tiles.append((label, seen, note, mood))
    rhat = diagnostics.get("largest_rhat")
    if rhat is not None:
        tiles.append(("R-hat", f"{rhat:.3f}", "largest; 1 when chains agree", ""))
    acceptance = diagnostics.get("acceptance")
    if acceptance is not None:
        kind = str(diagnostics.get("acceptance_kind"))
        tiles.append(("Acceptance", f"{acceptance:.1%}", _KINDS.get(kind, kind), ""))
    seconds = settings.get("seconds")
    if seconds is not None:
        training = sum(training_seconds(settings).values())
        more = f"after {training:.3g} s of training" if training else "without compilation"
        tiles.append(("Time to draw", f"{seconds:.3g} s", more, ""))
    return "".join(
        f'<div class="tile {mood}"><dt>{_text(label)}</dt><dd>{_text(value)}'
        f"<small>{_text(note)}</small></dd></div>"
        for label, value, note, mood in tiles
    )


_KINDS = {
    "metropolis": "of proposals, by Metropolis-Hastings",
    "density ratio": "of steps, by the density ratio alone",
}


def _tables(settings: dict[str, Any], diagnostics: dict[str, Any]) -> str:
    content = diagnostics.get("table")
    if not isinstance(content, dict):
        return ""
    columns, rows = content["columns"], content["rows"]
    # A column in which nothing is defined, as R-hat of particles, only takes room.
    kept = [i for i in range(len(columns)) if i == 0 or any(row[i] != "–" for row in rows)]
    heading = "".join(f'<th scope="col">{_text(columns[i])}</th>' for i in kept)
    lines = "".join(
        f'<tr><th scope="row">{_text(row[kept[0]])}</th>'
        + "".join(f"<td>{_text(row[i])}</td>" for i in kept[1:])
        + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = ""
    if len(rows) > MOST_ROWS:
        more = f"<p>… and {len(rows) - MOST_ROWS:,} more in diagnostics.json.</p>"
    figures = [*content["figures"], *training_figures(settings)]
    return (
        '<div class="scroll"><table class="coordinates">'
        f"<thead><tr>{heading}</tr></thead><tbody>{lines}</tbody></table></div>{more}"
        f'<table class="figures"><tbody>{_pairs(figures)}</tbody></table>'
    )


def _pictures(folder: Path) -> str:
    files = {file.stem: file for file in sorted(folder.glob("*.png"))}
    order = [name for name in CAPTIONS if name in files]
    order += [name for name in files if name not in CAPTIONS]
    shown = []
    for name in order:
        heading, caption = CAPTIONS.get(name, (name, ""))
        data = base64.b64encode(files[name].read_bytes()).decode("ascii")
        shown.append(
            f'<figure><img alt="{_text(heading)}" src="data:image/png;base64,{data}">'
            f"<figcaption><b>{_text(heading)}.</b> {_text(caption)}</figcaption></figure>"
        )
    return f"<h2>Pictures</h2>{''.join(shown)}" if shown else ""


def _details(settings: dict[str, Any]) -> str:
    """Everything that is needed to make the run again."""
    parts = []
    if settings.get("command"):
        parts.append(f"<h3>Command</h3><pre>{_text(settings['command'])}</pre>")
    chosen = dict(settings.get("settings") or {})
    nested = {name: chosen.pop(name) for name in list(chosen) if isinstance(chosen[name], dict)}
    spec = {"target": settings.get("target_spec"), "method": settings.get("method")}
    groups = {"Settings": {**spec, **chosen}}
    groups |= {name.replace("_", " ").capitalize(): content for name, content in nested.items()}
    groups["Versions"] = settings.get("versions") or {}
    for heading, content in groups.items():
        rows = _pairs([(name, _plain(value)) for name, value in content.items()])
        if rows:
            parts.append(f"<h3>{_text(heading)}</h3><table class='figures'>{rows}</table>")
    return "".join(parts)


def _footer(settings: dict[str, Any]) -> str:
    version = (settings.get("versions") or {}).get("salmc", "")
    return f"Written by salmc {version} on {settings.get('written', '')}"


def _pairs(pairs: Any) -> str:
    return "".join(
        f'<tr><th scope="row">{_text(label)}</th><td>{_text(value)}</td></tr>'
        for label, value in pairs
    )


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _text(value: Any) -> str:
    return html.escape(str(value), quote=True)
