"""A picture of each mode that the draws went to, with its weight.

A number: its histogram. More: the two numbers that tell the modes apart best.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from salmc.report import style
from salmc.report.found_modes import FoundModes, found_modes
from salmc.report.words import Words, counted, modes_in_words, weight
from salmc.sampling.draws import Draws

HEADING = "Modes"
MOST_MODES = 9
MOST_POINTS = 1200


def figure(draws: Draws) -> Figure | None:
    """A panel for each of the heaviest modes; None where the draws are one cluster."""
    found = found_modes(draws)
    if found is None or len(found.modes) < 2:
        return None
    count = min(len(found.modes), MOST_MODES)
    columns = min(count, 3)
    rows = -(-count // columns)
    result = style.new_figure(2.75 * columns + 0.5, 2.75 * rows + 0.8)
    panels = result.subplots(rows, columns, squeeze=False)
    first, second = found.telling()
    for index, axes in enumerate(panels.ravel()):
        if index >= count:
            axes.remove()
        elif first == second:
            _histogram(axes, found, index)
        else:
            _cloud(axes, found, index, (first, second))
    told = f" · the heaviest {count} of {len(found.modes)}" if len(found.modes) > count else ""
    name = "draws" if draws.target is None else draws.target.name
    result.suptitle(f"Modes of {name} that the draws went to{told}", x=0.02, ha="left")
    return result


def words(draws: Draws, figure: Figure) -> Words:
    """What is seen."""
    del figure
    found = found_modes(draws)
    assert found is not None  # there is a picture of them
    crossings = found.crossings if draws.kind == "chains" else None
    jumps = ""
    if crossings is not None:
        steps = "draw to draw" if found.stride == 1 else f"one draw to the {found.stride}th after"
        jumps = f" From {steps}, chains change mode in {crossings:.1%} of all cases."
    errors = (
        " ± is one standard error, by the effective draws of the weight itself."
        if any(mode.error is not None for mode in found.modes)
        else " Particles move together, so there is no standard error."
        if draws.kind == "particles"
        else ""
    )
    count = len(found.modes)
    few = f"; the heaviest {MOST_MODES} are drawn" if count > MOST_MODES else ""
    return Words(
        modes_in_words(found),
        f"The draws fall into {counted(count, 'cluster')}{few}. Above each, its share of the draws."
        f"{errors}{jumps} In colour: the mode; grey: other draws. A mode that no draw went to "
        "cannot be seen here; the verdict tells of those that a hunt found.",
    )


def _histogram(axes: Axes, found: FoundModes, index: int) -> None:
    values, inside = found.values[..., 0].ravel(), (found.labels == index).ravel()
    limits = style.window(values, margin=0.05)
    bins = np.linspace(*limits, 70).tolist()
    axes.hist(values, bins=bins, color=style.GRID)
    axes.hist(values[inside], bins=bins, color=_colour(index), alpha=0.8)
    axes.set(xlabel=style.short(found.names[0], 26), yticks=[], xlim=limits)
    axes.set_title(weight(found.modes[index]), fontsize=9.5)


def _cloud(axes: Axes, found: FoundModes, index: int, numbers: tuple[int, int]) -> None:
    points = found.values[..., list(numbers)].reshape(-1, 2)
    inside = (found.labels == index).ravel()
    x_range, y_range = (style.window(points[inside, i], margin=0.45) for i in (0, 1))
    others = style.thin(points[~inside], MOST_POINTS)
    axes.scatter(others[:, 0], others[:, 1], s=4, color=style.FAINT_INK, alpha=0.35, linewidths=0)
    members = style.thin(points[inside], MOST_POINTS)
    axes.scatter(members[:, 0], members[:, 1], s=5, color=_colour(index), alpha=0.6, linewidths=0)
    axes.set(xlim=x_range, ylim=y_range)
    axes.set_xlabel(style.short(found.names[numbers[0]], 26))
    axes.set_ylabel(style.short(found.names[numbers[1]], 26))
    axes.locator_params(nbins=4)
    axes.set_title(weight(found.modes[index]), fontsize=9.5)


def _colour(index: int) -> str:
    return style.SERIES[index % len(style.SERIES)]
