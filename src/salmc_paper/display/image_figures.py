"""Pictures of what is measured on chains over images: classes, and how they follow each other.

Sheets, strips and films of the images themselves are in `salmc.images.pictures`.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from salmc.report import style


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
