"""Pictures and a page of draws in hand, for Python and notebooks: `draws.plot`, `draws.report`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from salmc import checks
from salmc.errors import ArgumentError
from salmc.report import (
    autocorrelation,
    dark,
    discrepancy,
    modes,
    rank,
    scatter,
    style,
    trace,
)
from salmc.report.html import render_page, write_page
from salmc.report.run_pictures import illustrate
from salmc.sampling.draws import Draws
from salmc.sampling.files.folder import page_content

KINDS: dict[str, tuple[Callable[[Draws], Figure | None], str]] = {
    "scatter": (scatter.figure, "at least one draw"),
    "corner": (scatter.pairs, "at least one draw"),
    "trace": (trace.figure, "at least two kept steps"),
    "rank": (
        rank.figure,
        f"two chains or more, each of at least {rank.FEWEST_DRAWS} finite draws; for particles "
        "there are no ranks",
    ),
    "autocorrelation": (
        autocorrelation.figure,
        "chains of at least ten draws; for particles there is no autocorrelation",
    ),
    "modes": (modes.figure, "draws that fall into several clusters; these are one, or too few"),
    "discrepancy": (
        discrepancy.figure,
        "a target, at least 20 chains or particles, and finite draws at two steps or more",
    ),
}
"""Kinds of `plot`, and what each needs."""


def plot(draws: Draws, kind: str, *, on_dark: bool) -> Figure:
    """One picture of draws; see `Draws.plot`."""
    checks.choice("kind", kind, tuple(KINDS))
    make, needs = KINDS[kind]
    with style.look():
        figure = make(draws)
        if figure is None:
            raise ArgumentError(f"The picture `{kind}` cannot be drawn: it takes {needs}.")
        if on_dark:
            dark.on_dark_paper(figure)
        # Arranged now, in this look: later the user's own settings are back.
        figure.canvas.draw()
    return figure


def report(draws: Draws, path: str | Path, summary: Any) -> Path:
    """Write the page of draws; see `Draws.report`."""
    place = Path(path).expanduser()
    if place.is_dir():
        checks.fail("path", "the name of a file, such as 'page.html'", str(path))
    known = draws.evaluated()
    judged = summary or draws.judged or known.summary()
    object.__setattr__(draws, "judged", judged)
    illustrations = illustrate(known, known.sampler)
    settings, diagnostics = page_content(known, judged)
    settings["warnings"] = [*settings["warnings"], *illustrations.troubles]
    page = render_page(settings, diagnostics, illustrations, "draws.summary().rows()")
    return write_page(page, place)
