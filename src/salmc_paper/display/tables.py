"""Plain Markdown tables, and how numbers are written in them."""

import dataclasses
import math
import statistics
from collections.abc import Sequence

import numpy as np

from salmc_paper.display.published import Published

DASH = "–"


@dataclasses.dataclass(frozen=True)
class Table:
    """A table with a heading.

    Attributes:
        title: one line above it.
        columns: names.
        rows: of as many words as there are columns.
        note: what a reader must know to read it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """The table in Markdown, with its title in bold and the note below."""
        lines = [f"**{self.title}**", "", _line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines) + "\n"


def number(value: int | float | None, digits: int = 3) -> str:
    """A number for a table: 1,635, 0.0123, 1.3e-05; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    if abs(value) < 1e-4:
        return f"{value:.{max(digits - 2, 0)}e}"
    return f"{value:.{digits}g}"


def median(values: Sequence[int | float]) -> float:
    """The median; NaN of nothing."""
    finite = [value for value in values if math.isfinite(value)]
    return float(statistics.median(finite)) if finite else float("nan")


def mean_and_error(values: Sequence[int | float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))


def with_error(values: Sequence[int | float]) -> str:
    """The mean ± its standard error."""
    mean, error = mean_and_error(values)
    return f"{number(mean, 2)} ± {number(error, 1)}"


def with_all(values: Sequence[int | float], digits: int = 3) -> str:
    """The median, and each value in brackets where there are several."""
    if not values:
        return DASH
    told = number(median(values), digits)
    if len(values) == 1:
        return told
    return f"{told} ({', '.join(number(value, digits) for value in values)})"


def published(found: Published | None, digits: int = 4) -> str:
    """A number of the paper."""
    return DASH if found is None else number(found.value, digits)


def ratio(ours: int | float, found: Published | None) -> str:
    """Ours over the paper's."""
    if found is None or not math.isfinite(ours) or found.value == 0:
        return DASH
    return f"{number(ours / found.value, 2)} ×"


def percent(value: int | float, digits: int = 2) -> str:
    """A share as a percentage."""
    return DASH if not math.isfinite(value) else f"{100 * value:.{digits}f} %"


def counted(count: int, word: str) -> str:
    """1 split, 10 splits."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def _line(words: Sequence[str]) -> str:
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"
