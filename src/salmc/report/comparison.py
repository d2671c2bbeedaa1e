"""Several methods on one target: a panel of draws for each, and how far each is from the truth."""

import dataclasses
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from salmc.report import scatter, style
from salmc.sampling.draws import Draws

COLUMNS = 4
MOST_POINTS = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """What one method reached.

    Attributes:
        method: its name.
        draws: its draws, or None if it could not run.
        diagnostics: what `summary.to_json()` gave; empty if there are none.
        trouble: why it could not run or be judged, in one sentence.
        training_seconds: before the first draw, where a kernel was learned.
    """

    method: str
    draws: Draws | None = None
    diagnostics: dict[str, Any] = dataclasses.field(default_factory=dict)
    trouble: str = ""
    training_seconds: float = 0.0

    @property
    def trustworthy(self) -> bool:
        """Whether the verdict found nothing wrong."""
        return bool((self.diagnostics.get("verdict") or {}).get("trustworthy"))


def figure(results: list[Result]) -> Figure | None:
    """Panels of draws above, bars of a discrepancy below; None if no method ran."""
    ran = [result for result in results if result.draws is not None]
    if not ran:
        return None
    rows = -(-len(ran) // COLUMNS)
    columns = -(-len(ran) // rows)
    bars_height = 0.34 * len(results) + 1.1
    width = max(2.9 * columns, 6.4)
    result = style.new_figure(width, 3.0 * rows + bars_height + 0.5)
    parts = np.asarray(result.subfigures(2, 1, height_ratios=[3.0 * rows, bars_height]))
    upper, lower = parts.ravel()
    panels = upper.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    _panels(panels, ran)
    _bars(lower.add_subplot(), results)
    target = ran[0].draws.target if ran[0].draws is not None else None
    name = "" if target is None else f" on {target.name}"
    result.suptitle(f"{len(ran)} methods{name}", x=0.02, ha="left")
    return result


def _panels(panels: np.ndarray, ran: list[Result]) -> None:
    windows = _common_window(ran)
    for axes, result in zip(panels, ran, strict=False):
        draws = result.draws
        if draws is None:
            continue
        names, sample, exact = scatter.numbers(draws)
        if len(names) == 1:
            scatter.histogram_into(axes, draws, windows[0])
        else:
            _background(axes, draws, exact, windows)
            scatter.points(axes, sample[:, :2], most=MOST_POINTS, size=4.5)
            axes.set(xlim=windows[0], ylim=windows[1])
            if scatter.comparable(*windows):
                axes.set_aspect("equal")
        axes.set_title(result.method, color=_colour(result), fontsize=10.5, pad=5)
        axes.locator_params(nbins=5)
        axes.set_xlabel(names[0])
        axes.set_ylabel(names[1] if len(names) > 1 else "density")
        axes.label_outer()
    for axes in panels[len(ran) :]:
        axes.remove()


def _background(
    axes: Axes, draws: Draws, exact: np.ndarray | None, windows: list[tuple[float, float]]
) -> None:
    if draws.dim == 2 and draws.shown.own:
        scatter.density_background(axes, draws, windows[0], windows[1])
    elif exact is not None:
        scatter.points(axes, exact[:MOST_POINTS, :2], color=style.TRUTH, alpha=0.25)


def _common_window(ran: list[Result]) -> list[tuple[float, float]]:
    """One window for all panels: around the exact draws where there are any, else all draws."""
    found = [scatter.numbers(result.draws) for result in ran if result.draws is not None]
    exact = found[0][2]
    if exact is not None:
        seen, margin = exact[:1000], 0.25
    else:
        seen, margin = np.concatenate([style.thin(sample, 1000) for _, sample, _ in found]), 0.12
    return [style.window(seen[:, i], margin) for i in range(min(2, seen.shape[1]))]


def _bars(axes: Axes, results: list[Result]) -> None:
    """MMD² where it is known, else KSD² in units of its floor."""
    by_mmd = any(result.diagnostics.get("mmd") for result in results)
    label = "MMD²" if by_mmd else "KSD² in units of its floor"
    values, floors = zip(*(_value_and_floor(result, by_mmd) for result in results), strict=True)
    floor = max((f for f in floors if f is not None and f > 0), default=None)
    known = [v for v in values if v is not None]
    smallest = floor / 10 if floor is not None else min((v for v in known if v > 0), default=1e-4)
    largest = max([*known, smallest * 100])
    if floor is not None:
        axes.axvspan(smallest, floor, color=style.GOOD, alpha=0.13, linewidth=0)
    for position, (result, value) in enumerate(zip(results[::-1], values[::-1], strict=True)):
        if value is None:
            told = textwrap.shorten(result.trouble, 60, placeholder=" …") or "not judged"
            axes.text(smallest * 1.15, position, told, va="center", color=style.BAD, fontsize=8.5)
            continue
        length = max(value, smallest * 1.06)
        axes.barh(position, length - smallest, left=smallest, height=0.58, color=_colour(result))
        axes.annotate(
            f"{value:.1e}",
            xy=(length, position),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=style.INK,
        )
    axes.set_xscale("log")
    limits = (smallest, largest * (largest / smallest) ** 0.3)
    axes.set(xlim=limits, ylim=(-0.6, len(results) - 0.4))
    axes.set_yticks(range(len(results)), [result.method for result in results[::-1]])
    axes.tick_params(axis="y", length=0, labelsize=9.5)
    axes.set_xlabel(f"{label} (shaded: what exact draws score)" if floor is not None else label)
    axes.grid(axis="x")


def _value_and_floor(result: Result, by_mmd: bool) -> tuple[float | None, float | None]:
    judged = result.diagnostics.get("mmd" if by_mmd else "ksd") or {}
    value, floor = judged.get("value"), judged.get("floor")
    return (value, floor) if by_mmd or value is None or not floor else (value / floor, 1.0)


def _colour(result: Result) -> str:
    if not result.diagnostics:
        return style.FAINT_INK
    return style.GOOD if result.trustworthy else style.BAD
