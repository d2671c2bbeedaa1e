"""Mog6: draws with and without a Metropolis step, and how fast MMD falls with the draws."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from salmc.report import scatter, style
from salmc_paper.display.drawing import density_panel
from salmc_paper.display.tables import Table, number, percent
from salmc_paper.experiments.six_modes import LINES, TARGET, chains_jobs, shown
from salmc_paper.harness.jobs import Job, Plan, Results
from salmc_paper.measures.judging import FINE
from salmc_paper.measures.problems import find_target

TITLE = "Figure: SAL-MC on Mog6"
PAPER = (
    "Draws without and with a Metropolis-Hastings step, and MMD against draws. It finds that "
    "SAL-MC learns the six modes with or without the step, that without it more draws fall between "
    "the modes, and that MMD falls rapidly."
)
WHY: tuple[str, ...] = (
    "As few draws between the modes without a Metropolis step as with one, unlike in the paper: "
    "an MLP is continuous, and from one connected cloud of noise what reaches several modes must "
    "also pass between them. The noise here has a discrete part, which picks a mode.",
)
_PANELS = LINES[:4]
_EARLY = 100
"""Draws after which MMD is compared in the words."""

_HIDES = 1.5
"""ESS beyond this many times the draws that MMD speaks of is called out."""


def jobs(plan: Plan) -> list[Job]:
    """Chains of every sampler."""
    return chains_jobs(plan)


def tables(results: Results) -> list[Table]:
    """ESS, bias, and MMD after some draws of one chain."""
    lines = []
    for line, record in shown(results):
        times, path = record.arrays["times"], record.arrays["mmd"]
        early = path[np.searchsorted(times, _EARLY)]
        lines.append(
            (
                line.title,
                number(record.figure("ess")),
                number(record.figure("mmd_squared"), 2),
                number(record.figure("fine_mmd_squared"), 2),
                percent(record.figure("between_modes")),
                percent(record.figure("weight_error"), 1),
                number(early, 2),
                number(path[-1], 2),
            )
        )
    columns: tuple[str, ...] = ("sampler", "ESS", "MMD²", "fine MMD²", "between the modes")
    columns += ("largest error of a weight",)
    columns += (f"MMD of {_EARLY} draws of a chain", "MMD of all draws of a chain")
    shape = next(r.job.arguments for r in results.done())
    note = (
        f"{shape['chains']} chains of {shape['draws']:,} draws from N(0, I), none left out. "
        "Between the modes: more than 2 (four standard deviations) from every centre. Fine MMD² "
        f"has a bandwidth of {FINE:g} medians, which sees the shape of modes. The paper prints no "
        "numbers."
    )
    return [Table("Mog6", columns, tuple(lines), note)]


def words(results: Results) -> list[str]:
    """How MMD compares with exact draws, and what lies between the modes."""
    found = {line.title: record for line, record in shown(results)}
    sentences = []
    exact = found.get("exact draws")
    if exact is not None:
        told, hidden = [], []
        for title, record in found.items():
            if title == "exact draws":
                continue
            share = record.arrays["mmd"][-1] / exact.arrays["mmd"][-1]
            told.append(f"{title} {number(share, 2)} ×")
            # MMD falls as 1/√n, so that many exact draws would have the same.
            worth = float(record.arrays["times"][-1] / share**2)
            if record.figure("ess") > _HIDES * worth:
                ess = number(record.figure("ess"))
                hidden.append(f"{title} has ESS {ess} and the MMD of {worth:,.0f} exact draws")
        sentences.append(
            "MMD of all draws of one chain, over that of as many exact draws: "
            + ", ".join(told)
            + "."
        )
        if hidden:
            sentences.append(
                f"{'; '.join(hidden)}: ESS, which is of the coordinates, does not see how rarely "
                "a chain goes from mode to mode."
            )
    between = [
        f"{title} {percent(record.figure('between_modes'))}" for title, record in found.items()
    ]
    sentences.append(f"Draws between the modes: {', '.join(between)}.")
    return sentences


def figure(results: Results) -> Figure | None:
    """Draws over the density above, MMD against draws below."""
    found = shown(results, _PANELS)
    if not found:
        return None
    target = find_target(TARGET)
    count = len(found)
    made = style.new_figure(max(3.0 * count, 8.4), 7.7, headroom=0.1)
    parts = np.asarray(made.subfigures(2, 1, height_ratios=[1.0, 1.05]))
    upper, lower = parts.ravel()
    window = (-7.4, 7.4)
    panels = upper.subplots(1, count, squeeze=False, sharex=True, sharey=True)[0]
    for axes, (line, record) in zip(panels, found, strict=True):
        density_panel(axes, target, window, window)
        scatter.points(axes, record.arrays["cloud"], most=2000, size=3.5, alpha=0.45)
        axes.set(xlim=window, ylim=window)
        axes.set_aspect("equal")
        between = percent(record.figure("between_modes"), 1)
        detail = (
            f"ESS {number(record.figure('ess'))} · MMD² {number(record.figure('mmd_squared'), 1)}"
        )
        style.title(axes, line.title, f"{detail}\n{between} between the modes")
        axes.set_title(line.title, pad=34, fontsize=10)
    _decay(lower.add_subplot(), results)
    return made


def _decay(axes: Axes, results: Results) -> None:
    for line, record in shown(results):
        exact = line.method == "exact"
        axes.plot(
            record.arrays["times"],
            record.arrays["mmd"],
            color=line.colour,
            linestyle="--" if exact else "-",
            linewidth=2.6 if exact else 1.9,
            alpha=0.9,
            zorder=5 if exact else 3,
            label=line.title,
        )
    axes.set(xscale="log", yscale="log", xlabel="draws of one chain", ylabel="MMD")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="y", which="major")
    axes.legend(loc="lower left", ncols=2)
    style.title(
        axes,
        "MMD against the number of draws",
        "mean over chains that start from N(0, I) · independent exact draws fall as 1/√n",
    )
