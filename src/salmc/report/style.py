"""One look for all pictures: white paper, quiet axes, colours that colour-blind eyes tell apart.

Figures are made through Matplotlib's object-oriented interface, so drawing from a library never
touches the user's own pyplot state or needs a display.
"""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from salmc.sampling.files.atomic import write_file

_LOOK = matplotlib.rc_params_from_file(
    Path(__file__).with_name("salmc.mplstyle"), use_default_template=False
)
DPI = 130
INK = _LOOK["text.color"]
FAINT_INK = _LOOK["xtick.color"]
GRID = _LOOK["grid.color"]
DRAWS = "#d55e00"
TRUTH = "#0072b2"
GOOD = "#00876c"
BAD = "#c4314b"
# Okabe and Ito's set, in an order in which neighbours differ most.
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#555555")
DENSITY = LinearSegmentedColormap.from_list(
    "salmc_density", ["#f3f7fb", "#e0ebf5", "#c6dbec", "#a6c8e2", "#86b3d6"]
)


@contextlib.contextmanager
def look() -> Iterator[None]:
    """Within this block figures are drawn in salmc's look; the user's own settings come back."""
    with matplotlib.rc_context(_LOOK):
        yield


class Picture(Figure):
    """A figure that notebooks show by itself: without pyplot, nobody told them how to."""

    def _repr_png_(self) -> bytes:
        return as_png(self)


def new_figure(width: float, height: float, *, headroom: float = 0.0) -> Figure:
    """An empty figure, in inches, that arranges itself and leaves `headroom` free at the top."""
    layout = ConstrainedLayoutEngine(
        w_pad=0.07, h_pad=0.07, wspace=0.03, hspace=0.03, rect=(0, 0, 1, 1 - headroom / height)
    )
    figure = Picture(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    return figure


def as_png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file."""
    # A figure keeps the paper it was made with, whatever the user's own settings say.
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=DPI, facecolor=figure.get_facecolor())
    return content.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write a PNG, in full or not at all."""
    write_file(path, as_png(figure))


def title(axes: Axes, text: str, detail: str = "") -> None:
    """A bold title at the left, and a quiet line under it."""
    axes.set_title(text, pad=22 if detail else 9)
    if detail:
        axes.annotate(
            detail,
            xy=(0, 1),
            xytext=(0, 8),
            xycoords="axes fraction",
            textcoords="offset points",
            color=FAINT_INK,
            fontsize=8.8,
            va="bottom",
        )


def short(name: str, most: int = 18) -> str:
    """A name that fits beside an axis: of a long one, the beginning and the end."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end]}…{name[-end:]}"


def window(points: np.ndarray, margin: float = 0.15) -> tuple[float, float]:
    """An interval around nearly all values, so that one stray point does not shrink the rest."""
    finite = points[np.isfinite(points)]
    if finite.size == 0:
        return -1.0, 1.0
    low, high = np.quantile(finite, [0.002, 0.998])
    room = margin * (high - low) if high > low else max(1.0, abs(high)) * 0.5
    return float(low - room), float(high + room)


def thin(points: np.ndarray, most: int) -> np.ndarray:
    """At most about `most` rows, evenly spaced: more would be ink on ink."""
    return points[:: max(1, -(-len(points) // most))]
