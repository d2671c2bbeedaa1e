"""A finished picture on dark paper: every colour keeps its hue, and its lightness is turned over.

So no picture needs to know of it, nothing is computed twice, and what was faint on white paper is
faint on dark paper.
"""

import colorsys
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba, to_rgba_array
from matplotlib.figure import Figure, FigureBase

from salmc.report import style

PAPER = "#1a2128"
"""What white becomes, as the cards of the page."""

_LIGHTEST = 0.9
_PROPERTIES = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def on_dark_paper(figure: Figure) -> None:
    """Change the colours of everything in a figure, in place."""
    for artist in figure.findobj():
        # The paper of a figure and of axes is a patch, which is among the artists itself.
        if not isinstance(artist, (Axes, FigureBase)):
            _turn(artist)
    for axes in figure.axes:
        # Ticks are made when they are drawn, from what the axes remember.
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_tick_params(which="both", colors=turned(style.FAINT_INK))
            axis.set_tick_params(which="both", grid_color=turned(style.GRID))


def turned(colour: Any) -> tuple[float, float, float, float]:
    """A colour for dark paper, as red, green, blue and opacity."""
    red, green, blue, alpha = to_rgba(colour)
    if min(red, green, blue) > 0.995:
        return (*to_rgba(PAPER)[:3], alpha)
    hue, lightness, saturation = colorsys.rgb_to_hls(red, green, blue)
    darkest = colorsys.rgb_to_hls(*to_rgba(PAPER)[:3])[1]
    lightness = darkest + (1.0 - lightness) * (_LIGHTEST - darkest)
    return (*colorsys.hls_to_rgb(hue, lightness, saturation), alpha)


def _turn(artist: Artist) -> None:
    settings: dict[str, Any] = {}
    for name in _PROPERTIES:
        read = getattr(artist, f"get_{name}", None)
        if read is None or not hasattr(artist, f"set_{name}"):
            continue
        colour = read()
        if colour is None or (isinstance(colour, str) and colour in ("none", "face", "auto")):
            continue
        if isinstance(colour, np.ndarray) and colour.ndim == 2:
            settings[name] = [turned(one) for one in to_rgba_array(colour)]
        else:
            settings[name] = turned(colour)
    # A patch's `color` is both of the others, which have been turned by themselves.
    if "facecolor" in settings or "edgecolor" in settings:
        settings.pop("color", None)
    alpha = artist.get_alpha()
    artist.set(**settings)
    if alpha is not None and not isinstance(alpha, np.ndarray):
        artist.set_alpha(alpha)
