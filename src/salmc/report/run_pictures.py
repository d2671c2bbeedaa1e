"""The pictures of a run: all that apply to its draws. A picture that fails never costs the run."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from salmc.report import autocorrelation, discrepancy, scatter, style, trace, training
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler

PICTURES: dict[str, Callable[[Draws], Figure | None]] = {
    "draws": scatter.figure,
    "trace": trace.figure,
    "autocorrelation": autocorrelation.figure,
    "discrepancy": discrepancy.figure,
}


def write_pictures(draws: Draws, folder: Path, sampler: Sampler | None = None) -> tuple[str, ...]:
    """Write the PNGs into a folder that exists; where there is a sampler, of its training, too.

    Returns:
        What went wrong, in words; empty when nothing did. Ctrl-C leaves out the pictures that
        are still to come, as the draws matter more.
    """
    pictures = {name: partial(make, draws) for name, make in PICTURES.items()}
    if sampler is not None:
        pictures["training"] = partial(training.figure, sampler)
    troubles = []
    for name, make in pictures.items():
        try:
            with style.look():
                figure = make()
                if figure is not None:
                    style.save(figure, folder / f"{name}.png")
        except KeyboardInterrupt:
            troubles.append(f"Interrupted before the picture {name}.png was written.")
            break
        except Exception as error:
            reason = str(error).strip().splitlines()
            told = reason[0] if reason else type(error).__name__
            troubles.append(f"The picture {name}.png could not be drawn: {told}")
    return tuple(troubles)
