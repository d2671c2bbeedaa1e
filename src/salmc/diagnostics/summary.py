"""`summarize`: draws in, a table, figures of bias beside ESS, and a verdict in words out."""

import dataclasses
import importlib
import math
from typing import Any

import numpy as np

from salmc import checks
from salmc.diagnostics.evidence import Evidence, measure
from salmc.diagnostics.point_sets import StatisticWithFloor
from salmc.diagnostics.spoken import Spoken
from salmc.diagnostics.trial.trial import Trial
from salmc.diagnostics.verdict import Verdict, judge
from salmc.json_values import plain
from salmc.programs import one_thread

_TEXT_ROWS = 30
"""Coordinates shown as text; `rows` and `to_json` have all of them."""


@dataclasses.dataclass(frozen=True, eq=False)
class Summary:
    """What was measured, and what it means.

    `str(summary)` is a plain table, `rows` and `figures` are the same for other renderings, and
    `to_json` holds plain values only.
    """

    evidence: Evidence
    verdict: Verdict

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of `rows`."""
        return ("name", "mean", "sd", "mcse", "5%", "95%", "ess bulk", "ess tail", "R-hat")

    def rows(self) -> list[tuple[str, ...]]:
        """One line of text cells for each coordinate; "–" where a figure is not defined."""
        return [
            (
                row.name,
                *(number(v) for v in (row.mean, row.sd, row.monte_carlo_error, row.low, row.high)),
                *("–" if v is None else f"{v:.0f}" for v in (row.ess_bulk, row.ess_tail)),
                "–" if row.rhat is None else f"{row.rhat:.3f}",
            )
            for row in self.evidence.coordinates
        ]

    def figures(self) -> list[tuple[str, str]]:
        """(label, value) of everything that is not per coordinate. Bias comes right after ESS."""
        e = self.evidence
        lines = []
        if e.ess_known_moments is not None:
            value = f"{e.ess_known_moments:.0f} of {e.draws}"
            lines.append(("ESS per chain (true moments, smallest)", value))
        if e.ess_per_second is not None:
            lines.append(("ESS per second (bulk, smallest)", number(e.ess_per_second)))
        label = "KSD²" if e.ksd_kind in (None, "gradient") else f"KSD² ({e.ksd_kind})"
        lines.append((f"bias: {label}", _with_floor(e.ksd)))
        if e.invariance is not None:
            value = f"{number(e.invariance.effect)} sd (p = {e.invariance.p_value:.2g})"
            lines.append(("bias: change under Metropolis steps", value))
        lines += _of_trial(e)
        if e.missed is not None:
            lines.append(("bias: found beforehand, missed by draws", f"{e.missed:.1%}"))
        if e.mmd is not None:
            lines.append(("bias: MMD² to exact draws", _with_floor(e.mmd)))
        if e.moments is not None:
            ratios = e.moments.sd_ratio
            error = number(float(np.max(np.abs(e.moments.mean_error))))
            lines.append(("bias: largest error of the mean", f"{error} sd"))
            lines.append(
                ("bias: sd / true sd", f"{number(np.min(ratios))} to {number(np.max(ratios))}")
            )
        if e.modes is not None:
            value = f"{number(e.modes.largest_error)} ({e.modes.missing} missing)"
            lines.append((f"bias: largest error of {len(e.modes.truth)} mode weights", value))
        if e.distinct_particles is not None:
            lines.append(("distinct particles", f"{e.distinct_particles} of {e.finite_points}"))
        if e.acceptance is not None:
            lines.append((f"acceptance ({e.acceptance_kind})", f"{e.acceptance:.3f}"))
        lines.append(("seconds (and to compile)", f"{e.seconds:.2f} ({e.compile_seconds:.2f})"))
        return lines

    def to_json(self) -> dict[str, Any]:
        """A dictionary of JSON values only; NaN and infinity become None."""
        e = self.evidence
        content = {field.name: getattr(e, field.name) for field in dataclasses.fields(e)}
        content.pop("spoken")
        content["trial"] = None if e.trial is None else _trial_values(e.trial, e.spoken)
        content["coordinates"] = [dataclasses.asdict(row) for row in e.coordinates]
        for name in ("ksd", "mmd", "moments", "modes"):
            content[name] = None if content[name] is None else content[name]._asdict()
        if e.modes is not None:
            content["modes"] |= {"largest_error": e.modes.largest_error, "missing": e.modes.missing}
        if e.invariance is not None:
            content["invariance"] = {
                "p_value": e.invariance.p_value,
                "effect": e.invariance.effect,
                "largest_spread_ratio": e.invariance.largest_spread_ratio,
                "smallest_spread_ratio": np.min(e.invariance.spread_ratio),
            }
        content["largest_rhat"] = e.largest_rhat
        content["smallest_ess"] = e.smallest_ess
        content["verdict"] = dataclasses.asdict(self.verdict)
        return plain(content)

    def _repr_html_(self) -> str:
        """For notebooks."""
        # The report is a later stage of the way of the data than this one.
        return importlib.import_module("salmc.report.notebook").summary_html(self)

    def __str__(self) -> str:
        e = self.evidence
        title = f"{e.method} on {e.target}: {e.chains} {e.kind}"
        title += f" × {e.draws} draws" if e.kind == "chains" else ", the last cloud"
        rows = self.rows()
        table = [self.columns, *rows[:_TEXT_ROWS]]
        widths = [max(len(line[i]) for line in table) for i in range(len(self.columns))]
        lines = [title, ""]
        for cells in table:
            first, *rest = (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append("  ".join([first.strip().ljust(widths[0]), *rest]))
        if len(rows) > _TEXT_ROWS:
            lines.append(f"… and {len(rows) - _TEXT_ROWS} more coordinates")
        figures = self.figures()
        width = max(len(label) for label, _ in figures)
        lines += ["", *(f"{label.ljust(width)}  {value}" for label, value in figures), ""]
        return "\n".join([*lines, *self.verdict.sentences])


@one_thread
def summarize(draws: Any, seed: int = 0, hunt: bool = True) -> Summary:
    """Measure draws and judge them.

    Args:
        draws: `salmc.Draws`, or anything with its attributes.
        seed: of all random choices.
        hunt: whether to look for modes that the draws lack, which takes up to a few seconds.
    """
    checks.integer("seed", seed, 0)
    evidence = measure(draws, seed, hunt)
    return Summary(evidence, judge(evidence))


def number(value: float | None) -> str:
    """Three significant digits, or "–" where there is no figure."""
    if value is None:
        return "–"
    value = float(value)
    if value and math.isfinite(value) and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.2e}"
    # "#" keeps trailing zeros: 1.00 says that three digits are known.
    return f"{value:#.3g}".rstrip(".") if abs(value) < 1000 else f"{value:.0f}"


def _of_trial(evidence: Evidence) -> list[tuple[str, str]]:
    trial = evidence.trial
    if trial is None:
        return []
    lines = []
    if trial.orbits:
        lines.append(("bias: draws among copies of them", f"p = {trial.orbit_p_value:.2g}"))
    if trial.brinks:
        lines.append(("bias: ends of the draws", f"p = {trial.brink_p_value:.2g}"))
    if trial.stein is not None:
        lines.append(("bias: Stein tests", f"p = {trial.stein.p_value:.2g}"))
    if trial.balance is not None:
        lines.append(("bias: balance of moves", f"p = {trial.balance.p_value:.2g}"))
    if trial.hunt is not None:
        value = f"{len(trial.hunt.missed)} of {trial.hunt.modes} modes found lack draws"
        lines.append(("bias: hunt for modes", value))
    share = trial.sound.nan_share
    if share > 0.0:
        lines.append(("NaN beside the draws", f"{share:.1%}"))
    return lines


def _trial_values(trial: Trial, spoken: Spoken | None) -> dict[str, Any]:
    values = {
        name: getattr(trial, name)
        for name in ("points", "effort", "orbit_p_value", "brink_p_value", "evaluations")
    }
    values["sound"], values["tails"] = trial.sound._asdict(), trial.tails._asdict()
    values["stein"] = None if trial.stein is None else trial.stein._asdict()
    values["balance"] = None if trial.balance is None else trial.balance._asdict()
    if trial.worst_orbit is not None:
        values["worst_orbit"] = trial.worst_orbit.name
    if trial.worst_brink is not None:
        brink = trial.worst_brink
        values["worst_brink"] = (brink if spoken is None else spoken.end(brink))._asdict()
    values["hunt"] = None if trial.hunt is None else dataclasses.asdict(trial.hunt)
    if trial.hunt is not None and spoken is not None:
        for kind in ("missed", "wrong_weights"):
            for told, mode in zip(values["hunt"][kind], getattr(trial.hunt, kind), strict=True):
                told["place"] = spoken.named(mode.position)
    return values


def _with_floor(figure: StatisticWithFloor | None) -> str:
    if figure is None:
        return "unknown"
    return f"{number(figure.value)} (floor {number(figure.floor)})"
