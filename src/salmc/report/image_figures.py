"""Pictures of what is measured on chains over images: classes, transitions, nearest neighbours.

Sheets, strips and films of the images themselves are in `salmc.images.pictures`.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from salmc.images.neighbours import CopyCheck
from salmc.report import style

_BINS = 50


def classes_figure(
    shares: dict[str, Float[np.ndarray, " classes"]],
    transitions: dict[str, Float[np.ndarray, "classes classes"]],
    details: dict[str, str] | None = None,
    *,
    band: tuple[float, float] | None = None,
    names: Sequence[str] | None = None,
) -> Figure:
    """The shares of classes as bars, and beside them how classes follow each other.

    Args:
        shares: of each class, for each setting by its title.
        transitions: P(next | now) of the same settings.
        details: a quiet line under the title of each transition matrix.
        band: shares that are wanted, drawn as a band.
        names: of the classes; their numbers by default.
    """
    count = len(next(iter(shares.values())))
    names = [str(i) for i in range(count)] if names is None else names
    figure = style.new_figure(5.2 + 4.2 * len(transitions), 4.4)
    panels = figure.subplots(
        1, 1 + len(transitions), width_ratios=[1.25, *[1] * len(transitions)], squeeze=False
    )[0]
    class_bars(panels[0], shares, names, band)
    for axes, (title, matrix) in zip(panels[1:], transitions.items(), strict=True):
        transition_map(axes, matrix, names)
        style.title(axes, title, (details or {}).get(title, ""))
    return figure


def class_bars(
    axes: Axes,
    shares: dict[str, Float[np.ndarray, " classes"]],
    names: Sequence[str],
    band: tuple[float, float] | None = None,
) -> None:
    """The share of each class, one bar for each setting."""
    width = 0.8 / len(shares)
    places = np.arange(len(names))
    if band is not None:
        axes.axhspan(100 * band[0], 100 * band[1], color="#eef1f4", linewidth=0, zorder=0)
    axes.axhline(100 / len(names), color=style.FAINT_INK, linewidth=1, linestyle=(0, (5, 3)))
    for number, (title, values) in enumerate(shares.items()):
        offset = (number - (len(shares) - 1) / 2) * width
        colour = style.SERIES[number % len(style.SERIES)]
        axes.bar(places + offset, 100 * np.asarray(values), width * 0.92, color=colour, label=title)
    axes.set_xticks(places, list(names))
    axes.set(xlabel="class", ylabel="% of draws")
    axes.set_ylim(0, axes.get_ylim()[1] * (1.18 if len(shares) > 1 else 1.05))
    if len(shares) > 1:
        axes.legend(loc="upper right", ncols=min(3, len(shares)), handlelength=1.2)
    wanted = f"; band: {100 * band[0]:.0f}–{100 * band[1]:.0f} %" if band is not None else ""
    style.title(axes, "Classes of the draws", f"dashed: all alike{wanted}")


def transition_map(
    axes: Axes, matrix: Float[np.ndarray, "classes classes"], names: Sequence[str]
) -> None:
    """P(next | now) as a heat map, with the numbers where there is room."""
    percent = 100 * np.asarray(matrix)
    axes.imshow(percent, cmap="Blues", vmin=0, vmax=100, aspect="equal")
    if len(names) <= 12:
        for row in range(len(names)):
            for column in range(len(names)):
                value = percent[row, column]
                text = "–" if np.isnan(value) else f"{value:.0f}"
                tone = "white" if value > 55 else style.INK
                axes.text(column, row, text, ha="center", va="center", color=tone, fontsize=7)
    axes.set_xticks(range(len(names)), list(names))
    axes.set_yticks(range(len(names)), list(names))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="next class, %", ylabel="class")


def neighbours_figure(found: CopyCheck) -> Figure:
    """Distances to the nearest training image: draws beside images that were held out."""
    figure = style.new_figure(9.6, 3.9)
    left, right = figure.subplots(1, 2)
    longest = float(max(found.draws.distance.max(), found.held_out.distance.max()))
    _histogram(left, found.draws.distance, found.held_out.distance, 1.02 * longest or 1.0)
    left.set_xlabel("distance to the nearest training image")
    _histogram(right, found.draws.ratio, found.held_out.ratio, 1.0)
    right.set_xlabel("that distance / distance to the second nearest")
    verdict = "draws are copies" if found.copies else "draws are not copies"
    told = (
        f"copies: {100 * found.share:.2f} % of draws, at most {100 * found.limit:.2f} % by chance"
    )
    style.title(left, f"Nearest neighbours: {verdict}", told)
    style.title(right, "To one image in particular?", "exact copies are at 0")
    right.legend(loc="upper left")
    return figure


def _histogram(axes: Axes, drawn: np.ndarray, real: np.ndarray, most: float) -> None:
    edges = np.linspace(0.0, most, _BINS + 1)
    for values, colour, label in (
        (real, style.TRUTH, f"{len(real):,} held-out images"),
        (drawn, style.DRAWS, f"{len(drawn):,} draws"),
    ):
        heights = np.histogram(values, edges)[0] / len(values)
        axes.stairs(100 * heights, edges, fill=True, color=colour, alpha=0.3)
        axes.stairs(100 * heights, edges, color=colour, linewidth=1.6, label=label)
    axes.set(xlim=(0.0, most), ylabel="%")
    axes.grid(axis="y")
