"""How a command that made draws ends: judged, written in full, told, and with an exit code."""

import contextlib
import dataclasses
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from salmc.cli.console import (
    BAD_INPUT,
    INTERRUPTED,
    Interrupts,
    complain,
    output,
    reason,
)

if TYPE_CHECKING:
    from salmc.diagnostics.summary import Summary
    from salmc.sampling.draws import Draws
    from salmc.sampling.sampler import Sampler


@dataclasses.dataclass(frozen=True)
class Ending:
    """Where and how the results of one command are written.

    Attributes:
        folder: the run folder.
        spec: how the target was named.
        interrupts: Ctrl-C, as the command sees it.
        overwrite: whether a run folder that is there is replaced.
        plots: whether there are pictures.
        quiet: whether only the folder's name is printed.
    """

    folder: Path
    spec: str
    interrupts: Interrupts
    overwrite: bool = False
    plots: bool = True
    quiet: bool = False

    def write(self, draws: "Draws", sampler: "Sampler | None" = None) -> tuple[Path, bool]:
        """Judge the draws and write the folder.

        Returns:
            The folder, and whether it is the one that was asked for.
        """
        from salmc.cli.place import write_somewhere
        from salmc.sampling.folder import write_run

        draws, summary = judge(draws)

        def write(place: Path) -> Path:
            return write_run(
                draws,
                place,
                summary=summary,
                spec=self.spec,
                plots=plotter(self.interrupts, sampler) if self.plots else None,
                extras=further_files(sampler),
                command=command_line(),
                overwrite=self.overwrite,
            )

        with self.interrupts.hold():
            return write_somewhere(write, self.folder)

    def tell(self, folder: Path, as_asked: bool, target: Any, remedy: str = "") -> None:
        """Print what is in the folder, and leave with the exit code that fits."""
        from salmc.cli import tables
        from salmc.sampling.folder import open_run

        console = output()
        if self.quiet:
            console.print(str(folder), soft_wrap=True)
        else:
            tables.print_run(console, open_run(folder, target))
            tables.print_files(console, folder)
        if self.interrupts.seen:
            complain(f"Interrupted; what was computed until then is written.{remedy}")
            raise typer.Exit(INTERRUPTED)
        if not as_asked:
            raise typer.Exit(BAD_INPUT)


def judge(draws: "Draws") -> "tuple[Draws, Summary | None]":
    """The summary; if it fails or is interrupted, the draws say so and are kept all the same."""
    try:
        return draws, draws.summary()
    except KeyboardInterrupt:
        trouble = "Interrupted before the diagnostics."
    except Exception as error:
        trouble = f"The diagnostics failed: {reason(error)}"
    return dataclasses.replace(draws, warnings=(*draws.warnings, trouble)), None


def plotter(interrupts: Interrupts, sampler: "Sampler | None" = None) -> Any:
    """Pictures may be interrupted; the writing around them may not."""

    def plot(draws: "Draws", folder: Path) -> tuple[str, ...]:
        from salmc.report.write import write_pictures

        try:
            with interrupts.hold(False):
                return write_pictures(draws, folder, sampler)
        except KeyboardInterrupt:
            return ("Interrupted before all pictures were written.",)

    return plot


def further_files(sampler: "Sampler | None" = None) -> Callable[[Path], None]:
    """Writes the kernel, and the page that shows all; a page that fails never costs the run."""

    def write(folder: Path) -> None:
        from salmc.report.html import write_html

        if sampler is not None:
            sampler.save(folder / "kernel.salmc")
        try:
            write_html(folder)
        except Exception as error:
            with contextlib.suppress(OSError):
                (folder / "report.html").unlink(missing_ok=True)
            complain(f"The page report.html could not be written: {reason(error)}")

    return write


def command_line() -> str:
    """What was typed, as a shell would take it again."""
    return shlex.join(["salmc", *sys.argv[1:]])
