"""What notebooks show of draws, a summary and a sampler: the verdict first, then the numbers.

Pieces of HTML that take their ink and paper from the notebook, so that they are readable in light
and dark ones; only the verdict has a colour of its own, which is readable on both. Nothing here
computes long: draws that were not judged say how to ask.
"""

from typing import Any

import numpy as np

from salmc.diagnostics.summary import Summary, number
from salmc.diagnostics.verdict import Verdict
from salmc.report.templates import templates
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler

MOST_ROWS = 12
_MOODS = {"trustworthy": "good", "no problem found": "unsure"}


def summary_html(summary: Summary) -> str:
    """Verdict, coordinates, and bias beside ESS."""
    evidence = summary.evidence
    rows = summary.rows()
    shape = f"{evidence.chains:,} {evidence.kind}"
    shape += f" × {evidence.draws:,} draws" if evidence.kind == "chains" else ", the last cloud"
    return _render(
        title=f"{evidence.method} on {evidence.target}",
        facts=[shape],
        verdict=_verdict(summary.verdict),
        columns=summary.columns,
        rows=rows[:MOST_ROWS],
        more=_more(len(rows), "summary.rows()"),
        figures=summary.figures(),
    )


def draws_html(draws: Draws) -> str:
    """Verdict, if there is one; else mean and spread alone, as ESS is nothing without bias."""
    if draws.judged is not None:
        return summary_html(draws.judged)
    rows, count = _moments(draws)
    kept = draws.positions.shape[1]
    name = "" if draws.target is None else f" on {draws.target.name}"
    return _render(
        title=f"{draws.method}{name}",
        facts=[f"{len(draws.positions):,} {draws.kind} × {kept:,} kept steps", _exact(draws)],
        verdict={
            "mood": "unsure",
            "finding": "Not judged yet",
            "sentences": ["Ask draws.summary(): some seconds, for a verdict and figures of bias."],
            "warnings": draws.warnings,
        },
        columns=("name", "mean", "sd", "5%", "95%"),
        rows=rows,
        more=_more(count, "draws.summary().rows()"),
        figures=[],
    )


def sampler_html(sampler: Sampler) -> str:
    """A sampler has no verdict: its draws have."""
    exact = sampler.kernel.exact and sampler.target is not None
    seconds = sum(sampler.seconds.values())
    figures = [
        ("moved by", f"{sampler.moved_by}, {sampler.kernel.dim:,} dimensions"),
        ("draws", "exact, by Metropolis-Hastings" if exact else "forward passes, not exact"),
    ]
    if seconds:
        figures.append(("training", f"{number(seconds)} s"))
    acceptance = np.asarray(sampler.history.get("acceptance", []), float)
    acceptance = acceptance[np.isfinite(acceptance)]
    if len(acceptance):
        figures.append(("acceptance at the end of training", f"{acceptance[-1]:.1%}"))
    return _render(
        title=sampler.title,
        facts=["a trained kernel" if sampler.trained else "found by a search"],
        verdict={
            "mood": "unsure",
            "finding": "Draws are judged, not kernels",
            "sentences": ["Ask sampler.sample().summary() for a verdict."],
            "warnings": sampler.warnings,
        },
        columns=(),
        rows=[],
        more="",
        figures=figures,
    )


def _render(**content: Any) -> str:
    return templates().get_template("notebook.html.jinja").render(**content)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    opening, *others = verdict.sentences
    finding, colon, reasons = opening.partition(":")
    sentences = [f"{reasons.strip()[:1].upper()}{reasons.strip()[1:]}"] if colon else []
    return {
        "mood": _MOODS.get(verdict.degree, "bad"),
        "finding": finding.rstrip("."),
        "sentences": [*sentences, *others],
        "warnings": (),
    }


def _moments(draws: Draws) -> tuple[list[tuple[str, ...]], int]:
    """Mean, sd and quantiles of the first few numbers, and how many there are."""
    shown = draws.shown
    values = shown.flat(draws.chains().shape[1], draws.kind == "particles")[:, :MOST_ROWS]
    if not len(values):
        return [], 0
    low, high = np.quantile(values, [0.05, 0.95], axis=0)
    columns = (np.mean(values, axis=0), np.std(values, axis=0), low, high)
    cells = zip(shown.names, *columns, strict=False)
    return [(name, *(number(v) for v in figures)) for name, *figures in cells], len(shown.names)


def _exact(draws: Draws) -> str:
    if "exact" not in draws.settings:
        return f"{draws.dim:,} dimensions"
    return "exact (Metropolis-Hastings)" if draws.settings["exact"] else "not exact"


def _more(count: int, where: str) -> str:
    return f"… and {count - MOST_ROWS:,} more in {where}" if count > MOST_ROWS else ""
