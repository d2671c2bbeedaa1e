"""What a picture says to those who do not see it, and below it: computed, as the picture is."""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from salmc.diagnostics.summary import number
from salmc.report.found_modes import FoundModes, Mode

MOST_TOLD = 6
"""Modes, or numbers of a place, that are told one by one."""

_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Words(NamedTuple):
    """Alternative text, and a caption that promises only what is drawn."""

    alt: str
    caption: str


def counted(count: int, noun: str) -> str:
    """ "two modes", "one mode", "14 modes"."""
    told = _COUNTS[count] if count < len(_COUNTS) else f"{count:,}"
    return f"{told} {noun}{'' if count == 1 else 's'}"


def legend_labels(figure: Figure) -> set[str]:
    """What the figure's legends name: what was drawn, and not what might have been."""
    legends = figure.findobj(Legend)
    return {text.get_text() for legend in legends for text in legend.get_texts()}


def weight(mode: Mode) -> str:
    """ "0.302 ± 0.004"."""
    if mode.error is None:
        return f"{mode.weight:.3f}"
    digits = 3 if mode.error >= 0.0005 else 4
    return f"{mode.weight:.{digits}f} ± {mode.error:.{digits}f}"


def place(mode: Mode, names: tuple[str, ...], chosen: tuple[int, ...]) -> str:
    """ "x0 = 1.00, x1 = −2.00"."""
    return ", ".join(f"{names[i]} = {number(float(mode.places[i]))}" for i in chosen)


def modes_in_words(found: FoundModes | None) -> str:
    """One or two sentences: how many, where, and how heavy."""
    if found is None:
        return "There are too few draws to tell modes apart."
    chosen = tuple(dict.fromkeys(found.telling()))
    if len(found.modes) == 1:
        return f"The draws are one cluster, around {place(found.modes[0], found.names, chosen)}."
    told = [
        f"at {place(mode, found.names, chosen)} with weight {weight(mode)}"
        for mode in found.modes[:MOST_TOLD]
    ]
    more = f"; and {len(found.modes) - MOST_TOLD} more" if len(found.modes) > MOST_TOLD else ""
    opening = counted(len(found.modes), "mode")
    return f"{opening[0].upper()}{opening[1:]}: {'; '.join(told)}{more}."


def interval(values: np.ndarray) -> str:
    """ "−1.2 to 3.4": from the smallest to the largest finite value."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "nothing finite"
    return f"{number(float(np.min(finite)))} to {number(float(np.max(finite)))}"
