"""The look of the pictures that pages draw: no paper, and inks that suit light and dark themes."""

import warnings

import matplotlib
from cycler import cycler
from matplotlib_inline.backend_inline import set_matplotlib_formats

INK = "#757d87"
BLUE, ORANGE, GREEN, PINK, GREY = "#2b8cd6", "#e06a10", "#12a37c", "#cc79a7", "#8a929b"


def use() -> None:
    """For all pictures that follow."""
    # tqdm, at its import, about widgets that these pages have no use for.
    warnings.filterwarnings("ignore", message="IProgress not found")
    set_matplotlib_formats("png")
    matplotlib.rcParams.update(
        {
            "figure.dpi": 160,
            "savefig.dpi": 160,
            "figure.figsize": (7.2, 3.6),
            "figure.constrained_layout.use": True,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "savefig.transparent": True,
            "font.size": 10,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.edgecolor": GREY,
            "axes.linewidth": 0.8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": INK,
            "ytick.color": INK,
            "legend.frameon": False,
            "lines.linewidth": 1.6,
            "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, PINK, GREY]),
        }
    )
