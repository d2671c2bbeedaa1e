"""Rows as tables in Markdown."""

import math
from typing import Any

from benchmarks.peers.plan import PEERS, TARGETS
from benchmarks.peers.results import Row, best_peer, ratio

MANY = 1_000_000
NONE = "–"


def table(header: list[str], lines: list[list[str]]) -> str:
    """A table."""
    every = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in every)


def overview(rows: list[Row], effective: int = 10_000) -> str:
    """CPU seconds of each peer on each target; a word for those that are not right."""
    shown = [name for name in PEERS if any(row.peer == name for row in rows)]
    by_key = {(row.target, row.peer): row for row in rows}
    lines = []
    for target, title in TARGETS.items():
        cells = [cell(by_key.get((target, peer)), effective) for peer in shown]
        if all(text == NONE for text in cells):
            continue
        lines.append([title, *cells, compared(rows, target, effective)])
    titles = [PEERS[name].title for name in shown]
    return table(["target", *titles, "salmc over the best that is right"], lines)


def cell(row: Row | None, effective: int) -> str:
    """Seconds, or what is the matter."""
    if row is None:
        return NONE
    if not row.right_at(effective):
        return f"*{row.at(effective)['outcome']}*"
    time = row.time_to(effective)
    return NONE if time is None else str(time)


def compared(rows: list[Row], target: str, effective: int) -> str:
    """How many times as long as the quickest peer that is right."""
    found, best = ratio(rows, target, effective), best_peer(rows, target, effective)
    if best is None or math.isnan(found):
        return NONE
    return f"{found:.2g} × {PEERS[best[0]].title}"


def details(rows: list[Row], target: str) -> str:
    """All columns of one target."""
    header = [
        "peer",
        "outcome",
        "s to 1,000",
        "s to 10,000",
        "s to 1,000,000",
        "compiling, s",
        "evaluations",
        "ESS",
        "error of mean, sd",
        "of tails",
        "of modes",
        "memory",
    ]
    order = list(PEERS)
    listed = sorted((r for r in rows if r.target == target), key=lambda r: order.index(r.peer))
    return table(header, [_line(row) for row in listed])


def _line(row: Row) -> list[str]:
    run = row.best
    told = f"{run['outcome']}: {run['sentence']}" if run["sentence"] else run["outcome"]
    # What an ESS of stuck chains says of other numbers of draws means nothing.
    asked = (1_000, 10_000, MANY)
    times = [None if row.at(n)["outcome"] == "stuck" else row.time_to(n) for n in asked]
    gradients = run.get("gradients")
    evaluations = _count(run.get("evaluations"))
    if gradients and gradients != run.get("evaluations"):
        evaluations += f", {_count(gradients)} gradients"
    elif gradients:
        evaluations += " with gradient"
    return [
        PEERS[row.peer].title,
        told,
        *(NONE if time is None else str(time) for time in times),
        _number(run.get("compile_cpu_seconds"), "{:.1f}"),
        evaluations,
        _count(run.get("ess")),
        *(_error(run, name) for name in ("mean", "tails", "modes")),
        _number(run.get("peak_memory_bytes"), "{:.2f} GB", 1e-9),
    ]


def _error(run: dict[str, Any], name: str) -> str:
    """The error, with what exact draws have in brackets."""
    found, floor = run.get("errors", {}).get(name), run.get("floor", {}).get(name)
    return NONE if found is None or floor is None else f"{found:.2g} ({floor:.2g})"


def _count(value: Any) -> str:
    return NONE if value is None else f"{value:,.0f}"


def _number(value: Any, form: str, scale: float = 1.0) -> str:
    return NONE if value is None else form.format(value * scale)
