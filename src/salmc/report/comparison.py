"""Several methods on one target: a panel of draws for each, and how far each is from the truth."""

import dataclasses

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from salmc.report import scatter, style
from salmc.sampling.draws import Draws

COLUMNS = 4
MOST_POINTS = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class Entry:
    """What the picture shows of one method.

    Attributes:
        method: its name.
        draws: its draws, or None if it could not run.
        value: its discrepancy, or None where it is not known.
        floor: what exact draws score.
        good: whether the verdict found nothing wrong; None without a verdict.
        note: a few words beside the bar.
    """

    method: str
    draws: Draws | None
    value: float | None = None
    floor: float | None = None
    good: bool | None = None
    note: str = ""


def figure(entries: list[Entry], label: str) -> Figure | None:
    """Panels above, bars of the discrepancy called `label` below; None if no method ran."""
    ran = [entry for entry in entries if entry.draws is not None]
    if not ran:
        return None
    rows = -(-len(ran) // COLUMNS)
    columns = -(-len(ran) // rows)
    bars_height = 0.34 * len(entries) + 1.1
    width = max(2.9 * columns, 6.4)
    result = style.new_figure(width, 3.0 * rows + bars_height + 0.5)
    parts = np.asarray(result.subfigures(2, 1, height_ratios=[3.0 * rows, bars_height]))
    upper, lower = parts.ravel()
    panels = upper.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    _panels(panels, ran)
    _bars(lower.add_subplot(), entries, label)
    target = ran[0].draws.target if ran[0].draws is not None else None
    name = "" if target is None else f" on {target.name}"
    result.suptitle(f"{len(ran)} methods{name}", x=0.02, ha="left")
    return result


def _panels(panels: np.ndarray, ran: list[Entry]) -> None:
    windows = _common_window(ran)
    for axes, entry in zip(panels, ran, strict=False):
        draws = entry.draws
        if draws is None:
            continue
        if draws.dim == 1:
            scatter.histogram_into(axes, draws, windows[0])
        else:
            _background(axes, draws, windows)
            scatter.points(axes, draws.sample()[:, :2], most=MOST_POINTS, size=4.5)
            axes.set(xlim=windows[0], ylim=windows[1])
            if scatter.comparable(*windows):
                axes.set_aspect("equal")
        axes.set_title(entry.method, color=_colour(entry), fontsize=10.5, pad=5)
        axes.locator_params(nbins=5)
        axes.set_xlabel(draws.names[0])
        axes.set_ylabel(draws.names[1] if draws.dim > 1 else "density")
        axes.label_outer()
    for axes in panels[len(ran) :]:
        axes.remove()


def _background(axes: Axes, draws: Draws, windows: list[tuple[float, float]]) -> None:
    if draws.dim == 2:
        scatter.density_background(axes, draws, windows[0], windows[1])
    elif draws.target is not None and draws.target.can_sample:
        exact = np.asarray(draws.target.sample(jax.random.key(0), MOST_POINTS))
        scatter.points(axes, exact[:, :2], color=style.TRUTH, alpha=0.25)


def _common_window(ran: list[Entry]) -> list[tuple[float, float]]:
    """One window for all panels: around the exact draws where there are any, else all draws."""
    draws = [entry.draws for entry in ran if entry.draws is not None]
    target = draws[0].target
    if target is not None and target.can_sample:
        seen, margin = np.asarray(target.sample(jax.random.key(0), 1000)), 0.25
    else:
        seen, margin = np.concatenate([style.thin(d.sample(), 1000) for d in draws]), 0.12
    return [style.window(seen[:, i], margin) for i in range(min(2, seen.shape[1]))]


def _bars(axes: Axes, entries: list[Entry], label: str) -> None:
    shown = entries[::-1]
    floors = [e.floor for e in entries if e.floor is not None and e.floor > 0]
    floor = max(floors) if floors else None
    values = [e.value for e in entries if e.value is not None and np.isfinite(e.value)]
    smallest = floor / 10 if floor is not None else min([v for v in values if v > 0], default=1e-4)
    largest = max([*values, smallest * 100])
    if floor is not None:
        axes.axvspan(smallest, floor, color=style.GOOD, alpha=0.13, linewidth=0)
    for position, entry in enumerate(shown):
        value = entry.value
        if value is None or not np.isfinite(value):
            told = entry.note or "not known"
            axes.text(smallest * 1.15, position, told, va="center", color=style.BAD, fontsize=8.5)
            continue
        length = max(value, smallest * 1.06)
        axes.barh(position, length - smallest, left=smallest, height=0.58, color=_colour(entry))
        axes.annotate(
            f"{value:.1e}   {entry.note}".rstrip(),
            xy=(length, position),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=style.INK,
        )
    axes.set_xscale("log")
    axes.set(xlim=(smallest, largest * (largest / smallest) ** 0.3), ylim=(-0.6, len(shown) - 0.4))
    axes.set_yticks(range(len(shown)), [entry.method for entry in shown])
    axes.tick_params(axis="y", length=0, labelsize=9.5)
    told = f"{label} (shaded: what exact draws score)" if floor is not None else label
    axes.set_xlabel(told)
    axes.grid(axis="x")


def _colour(entry: Entry) -> str:
    if entry.good is None:
        return style.FAINT_INK
    return style.GOOD if entry.good else style.BAD
