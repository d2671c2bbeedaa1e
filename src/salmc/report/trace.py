"""Traces: where chains or particles went, step by step, and their log density.

Chains are drawn one by one; a cloud of particles as quantile bands, with a few particles on top.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from salmc.report import style
from salmc.report.words import Words, interval
from salmc.sampling.draws import Draws

HEADING = "Trace"
MOST_COORDINATES = 4
MOST_PATHS = 8
_TRUE_MEAN: dict[str, Any] = {"color": style.INK, "linewidth": 1, "linestyle": (0, (5, 3))}


def figure(draws: Draws) -> Figure | None:
    """One row for each of the first few coordinates and one for the log density."""
    if draws.positions.shape[1] < 2:
        return None
    names, paths, own = _paths(draws)
    count = min(len(names), MOST_COORDINATES)
    result = style.new_figure(8.4, 1.55 * (count + 1) + 1.0)
    panels = result.subplots(count + 1, 1, sharex=True)
    for index in range(count):
        _row(panels[index], draws, paths[:, :, index], names[index], style.SERIES[0])
        if own and draws.target is not None and draws.target.mean is not None:
            panels[index].axhline(float(draws.target.mean[index]), **_TRUE_MEAN)
    heights = np.asarray(draws.evaluated().log_density)
    heights = np.where(np.isfinite(heights), heights, np.nan)
    _row(panels[count], draws, heights, "log density", style.SERIES[2])
    panels[count].set_xlabel("step")
    panels[count].set_xlim(0, int(np.asarray(draws.steps)[-1]))
    more = f" · first {count} of {len(names)} coordinates" if len(names) > count else ""
    name = "draws" if draws.target is None else draws.target.name
    style.title(panels[0], f"Trace of {draws.method} on {name}", _explanation(draws) + more)
    handles = _legend(draws)
    if handles:
        result.legend(handles=handles, loc="outside lower right", ncols=len(handles))
    return result


def words(draws: Draws, figure: Figure) -> Words:
    """What is seen."""
    names, paths, _ = _paths(draws)
    rows = [
        f"{name} runs from {interval(paths[:, paths.shape[1] // 5 :, i])}"
        for i, name in enumerate(names[:MOST_COORDINATES])
    ]
    settled = paths.shape[1] - paths.shape[1] // 5
    alt = f"{_explanation(draws)}. In the last {settled:,} kept steps {', '.join(rows)}."
    who = "particles" if draws.kind == "particles" else "chains"
    labels = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    mean = " The dashed line is the true mean." if "true mean" in labels else ""
    grey = " Grey: burn-in, which is left out." if "burn-in, left out" in labels else ""
    caption = f"Where {who} were, step by step, and their log density.{mean}{grey}"
    return Words(alt[0].upper() + alt[1:], caption)


def _paths(draws: Draws) -> tuple[tuple[str, ...], np.ndarray, bool]:
    """Names and values (chain, draw, number) of what moves, and whether it is the coordinates."""
    shown = draws.shown.moving()
    if shown.values.shape[1] != draws.positions.shape[1]:
        # Of particles that were read without their target, the last step alone is known by name.
        return draws.names, draws.positions, True
    return shown.names, shown.values, shown.own


def _row(axes: Axes, draws: Draws, values: np.ndarray, label: str, color: str) -> None:
    steps = np.asarray(draws.steps)
    if draws.kind == "particles":
        low, lower, middle, upper, high = np.nanquantile(values, [0.05, 0.25, 0.5, 0.75, 0.95], 0)
        axes.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
        axes.fill_between(steps, lower, upper, color=color, alpha=0.25, linewidth=0)
        axes.plot(steps, middle, color=color, linewidth=1.6)
        for path in style.thin(values, 5):
            axes.plot(steps, path, color=style.FAINT_INK, linewidth=0.6, alpha=0.7)
    else:
        for number, path in enumerate(style.thin(values, MOST_PATHS)):
            tone = style.SERIES[number % len(style.SERIES)]
            axes.plot(steps, path, color=tone, linewidth=0.8, alpha=0.85)
        burnt = draws.positions.shape[1] - draws.chains().shape[1]
        if burnt:
            axes.axvspan(0, steps[burnt - 1], color="#eef1f4", zorder=0, linewidth=0)
    axes.set_ylabel(style.short(label, 15))
    # A log density falls off a cliff at the start; what matters is where it settles.
    axes.set_ylim(*style.window(values[:, values.shape[1] // 5 :], margin=0.12))
    axes.grid(axis="y")


def _explanation(draws: Draws) -> str:
    if draws.kind == "particles":
        return f"median, 25–75 % and 5–95 % of {len(draws.positions):,} particles, and a few paths"
    shown = len(style.thin(draws.positions, MOST_PATHS))
    return f"{shown} of {len(draws.positions):,} chains"


def _legend(draws: Draws) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    if _paths(draws)[2] and draws.target is not None and draws.target.mean is not None:
        handles.append(Line2D([], [], **_TRUE_MEAN, label="true mean"))
    if draws.kind == "chains" and draws.burn_in > 0:
        handles.append(Patch(color="#e3e8ed", label="burn-in, left out"))
    return handles
