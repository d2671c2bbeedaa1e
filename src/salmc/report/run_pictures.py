"""The pictures of draws with their words: all that apply, as a reader needs them.

A picture that fails never costs the run.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from salmc.report import (
    autocorrelation,
    chain_path,
    dark,
    discrepancy,
    modes,
    rank,
    scatter,
    scatter_words,
    style,
    trace,
    training,
)
from salmc.report.illustrations import Illustration, Illustrations
from salmc.report.words import Words
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler


class Kind(NamedTuple):
    """A kind of picture: what makes it (None where it does not apply), and what it says."""

    heading: str
    figure: Callable[[Any], Figure | None]
    words: Callable[[Any, Figure], Words]


PICTURES: dict[str, Kind] = {
    "draws": Kind(scatter_words.HEADING, scatter.figure, scatter_words.words),
    "modes": Kind(modes.HEADING, modes.figure, modes.words),
    "discrepancy": Kind(discrepancy.HEADING, discrepancy.figure, discrepancy.words),
    "rank": Kind(rank.HEADING, rank.figure, rank.words),
    "autocorrelation": Kind(autocorrelation.HEADING, autocorrelation.figure, autocorrelation.words),
    "trace": Kind(trace.HEADING, trace.figure, trace.words),
}
TRAINING = Kind(training.HEADING, training.figure, training.words)


def illustrate(draws: Draws, sampler: Sampler | None = None) -> Illustrations:
    """Draw all that applies; where there is a sampler, its training, too.

    What goes wrong is told in words, beside the pictures. Ctrl-C leaves out those that are still
    to come, as the draws matter more.
    """
    work: dict[str, tuple[Kind, Any]] = {name: (kind, draws) for name, kind in PICTURES.items()}
    if sampler is not None:
        work["training"] = (TRAINING, sampler)
    made, troubles, path = [], [], None
    name = ""
    try:
        for name, (kind, content) in work.items():
            try:
                illustration = _illustration(name, kind, content)
            except Exception as error:
                troubles.append(f"The picture {name}.png could not be drawn: {_told(error)}")
                continue
            if illustration is not None:
                made.append(illustration)
        name = "of a chain"
        try:
            path = chain_path.chain_path(draws)
        except Exception as error:
            troubles.append(f"The picture of a chain could not be drawn: {_told(error)}")
    except KeyboardInterrupt:
        told = name if name not in work else f"{name}.png"
        troubles.append(f"Interrupted before the picture {told} was written.")
    return Illustrations(tuple(made), path, tuple(troubles))


def write_pictures(draws: Draws, folder: Path, sampler: Sampler | None = None) -> tuple[str, ...]:
    """Write what `illustrate` makes into a folder that exists.

    Returns:
        What went wrong, in words; empty when nothing did.
    """
    illustrations = illustrate(draws, sampler)
    return (*illustrations.troubles, *illustrations.write(folder))


def _illustration(name: str, kind: Kind, content: Any) -> Illustration | None:
    with style.look():
        figure = kind.figure(content)
        if figure is None:
            return None
        alt, caption = kind.words(content, figure)
        light = style.as_png(figure)
        dark.on_dark_paper(figure)
        return Illustration(name, kind.heading, caption, alt, light, style.as_png(figure))


def _told(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
