"""What the experiments' pictures share: a density to lie points on, and bars of ESS."""

import math
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullFormatter

from salmc.report import scatter, style
from salmc.target import AbstractTarget
from salmc_paper.display.published import DRAWS, Published
from salmc_paper.display.tables import median
from salmc_paper.harness.jobs import Record

RIGHT, OFF, UNKNOWN = "#3f95c6", "#d4697c", "#9aa5af"
"""Bars of samplers whose draws are right, whose draws are off, and that nobody judged."""

_GRID_SIZE = 201
_LABEL, _GAP = 0.3, 0.025
"""Width of a label on a bar and what is left free beside it, as shares of the axis."""


class Bar(NamedTuple):
    """A sampler's ESS in a picture.

    Attributes:
        title: of the sampler.
        records: one for each seed; none if it was not run.
        biased: whether its draws are off, which an ESS cannot tell; None if that was not judged.
        paper: the published ESS, of 2000 draws; drawn as the same share of fewer draws.
    """

    title: str
    records: list[Record]
    biased: bool | None
    paper: Published | None


def ess_bars(axes: Axes, bars: list[Bar], *, labels: bool) -> None:
    """A bar for each sampler, red where it is biased; ESS and ESS per second on it."""
    most = max((r.figure("draws") for bar in bars for r in bar.records), default=1.0)
    longest = most
    for position, bar in enumerate(bars):
        mark = None if bar.paper is None else bar.paper.value / DRAWS.value
        if bar.records:
            ess = median([record.figure("ess") for record in bar.records])
            speed = median([record.figure("ess_per_second") for record in bar.records])
            longest = max(longest, ess)
            colour = UNKNOWN if bar.biased is None else OFF if bar.biased else RIGHT
            axes.barh(position, ess, height=0.62, color=colour, linewidth=0)
            start, inside = _label_place(ess / most, mark)
            axes.text(
                start * most,
                position,
                f"{ess:,.0f}  ·  {short(speed)}/s",
                ha="left",
                va="center",
                fontsize=8,
                color="white" if inside else style.INK,
                zorder=5,
                path_effects=[withStroke(linewidth=3, foreground=colour if inside else "white")],
            )
        if mark is not None:
            ends = [position - 0.4, position + 0.4]
            axes.plot([mark * most] * 2, ends, color=style.INK, linewidth=1.8)
    axes.set(xlim=(0, 1.04 * longest), ylim=(len(bars) - 0.4, -0.6), xlabel="ESS")
    names = [bar.title for bar in bars] if labels else [""] * len(bars)
    axes.set_yticks(range(len(bars)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def _label_place(bar: float, mark: float | None) -> tuple[float, bool]:
    """Where a label begins, and whether that is on the bar: where the paper's mark is not.

    Lengths are shares of the axis.
    """
    places = [(bar + _GAP, False)]
    if bar > _LABEL + 2 * _GAP:
        places = [(_GAP, True), (bar - _GAP - _LABEL, True), *places]
    elif mark is not None:
        places.append((mark + _GAP, False))
    for start, inside in places:
        if mark is None or not start - _GAP / 2 < mark < start + _LABEL:
            return start, inside
    return places[0]


def bars_legend(right: str, biased: str) -> list[Patch | Line2D]:
    """What colours and marks of `ess_bars` mean."""
    return [
        Patch(color=RIGHT, label=right),
        Patch(color=OFF, label=biased),
        Patch(color=UNKNOWN, label="bias not measured"),
        Line2D([], [], color=style.INK, linewidth=1.8, label="the paper"),
        Line2D([], [], linestyle="", label="on the bars: ESS · ESS/s"),
    ]


def plain_logarithms(axes: Axes) -> None:
    """A logarithmic vertical axis that says 0.01, 0.02, 0.05, …"""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def short(value: int | float) -> str:
    """1.2M, 340k, 56."""
    if not math.isfinite(value):
        return "–"
    for limit, word in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.2g}{word}" if scaled < 100 else f"{scaled:.0f}{word}"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def density_panel(
    axes: Axes,
    target: AbstractTarget,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
) -> None:
    """Contours of a density on the plane, for points to lie on."""
    scatter.contours(axes, target, x_range, y_range, _GRID_SIZE)
