"""What the pictures of the two image experiments share: strips of chains, row by row."""

import numpy as np
from matplotlib.axes import Axes

from salmc.images.pictures import strip
from salmc.report import style


def strip_panel(axes: Axes, draws: np.ndarray, title: str, detail: str = "") -> None:
    """Chains as rows, their consecutive draws from left to right."""
    picture = np.asarray(strip(draws, scale=1))
    axes.imshow(picture, cmap="gray", vmin=0, vmax=255, interpolation="antialiased")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    style.title(axes, title, detail)
