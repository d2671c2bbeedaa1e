"""Where results go, and how every command that has some ends: written in full, told, exit code."""

import contextlib
import dataclasses
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from salmc.cli.console import BAD_INPUT, INTERRUPTED, Interrupts, complain, output
from salmc.errors import OutputError, reason

if TYPE_CHECKING:
    from rich.console import Console

    from salmc.diagnostics.summary import Summary
    from salmc.sampling.draws import Draws
    from salmc.sampling.sampler import Sampler
    from salmc.target import AbstractTarget


@dataclasses.dataclass(frozen=True)
class Results:
    """Where and how the results of one command are written and told.

    Only a folder of salmc is ever overwritten; what is quiet prints the folder's name alone.
    """

    folder: Path
    interrupts: Interrupts
    overwrite: bool = False
    plots: bool = True
    quiet: bool = False

    def check_place(self) -> None:
        """Find out before long work whether the folder can be written, and let nobody else do so
        until the command ends."""
        from salmc.sampling.files.atomic import check_place
        from salmc.sampling.files.folder import is_ours
        from salmc.sampling.files.lock import only_writer

        check_place(self.folder, overwrite=self.overwrite, ours=is_ours)
        self.interrupts.enter(only_writer(self.folder))

    def end(
        self,
        write: Callable[[Path], Path],
        tell: "Callable[[Console, Path], None]",
        *,
        finish: Callable[[Path, bool], None] = lambda written, as_asked: None,
        remedy: str = "",
    ) -> None:
        """Write, tell, and leave with the exit code that fits.

        Args:
            write: writes the folder it is given.
            tell: prints what is in a folder.
            finish: called with the folder that was written, and whether it is the one asked for,
                before Ctrl-C counts again.
            remedy: what to do after an interruption.
        """
        from salmc.cli.tables import print_files

        with self.interrupts.hold():
            written, as_asked = _write_somewhere(write, self.folder)
            finish(written, as_asked)
        console = output()
        if self.quiet:
            console.print(str(written), soft_wrap=True)
        else:
            tell(console, written)
            print_files(console, written)
        if self.interrupts.seen:
            complain(f"Interrupted; what was computed until then is written.{remedy}")
            raise typer.Exit(INTERRUPTED)
        if not as_asked:
            raise typer.Exit(BAD_INPUT)

    def end_run(
        self,
        draws: "Draws",
        spec: str | None,
        target: "AbstractTarget | None",
        *,
        sampler: "Sampler | None" = None,
        save_kernel: bool = True,
        note: Callable[[], str] = lambda: "",
        finish: Callable[[Path, bool], None] = lambda written, as_asked: None,
        remedy: str = "",
    ) -> None:
        """Judge draws, write a run folder, tell, and leave.

        Args:
            draws: of the run.
            spec: how the target was named.
            target: the target itself, where there is one.
            sampler: what made the draws: its training gets a picture.
            save_kernel: whether the folder holds the sampler, too.
            note: what else to tell, found when all is written.
            finish, remedy: as for `end`.
        """
        from salmc.cli.tables import print_run
        from salmc.sampling.files.folder import open_run, write_run

        judged, summary = judge(draws)

        def plot(draws: "Draws", folder: Path) -> tuple[str, ...]:
            """Pictures may be interrupted; the writing around them may not."""
            from salmc.report.run_pictures import write_pictures

            try:
                with self.interrupts.hold(False):
                    return write_pictures(draws, folder, sampler)
            except KeyboardInterrupt:
                return ("Interrupted before all pictures were written.",)

        def further_files(folder: Path) -> None:
            if sampler is not None and save_kernel:
                sampler.save(folder / "kernel.salmc")
            _write_page(folder)

        def write(place: Path) -> Path:
            return write_run(
                judged,
                place,
                summary=summary,
                spec=spec,
                plots=plot if self.plots else None,
                extras=further_files,
                command=command_line(),
                overwrite=self.overwrite,
            )

        def tell(console: "Console", folder: Path) -> None:
            print_run(console, open_run(folder, target))
            if note():
                console.print(f"\n{note()}", soft_wrap=True)

        self.end(write, tell, finish=finish, remedy=remedy)


def choose_folder(out: Path | None, *words: str) -> Path:
    """The user's folder, or one under runs/ that is not there yet."""
    if out is not None:
        return out
    stem = "-".join(_slug(word) for word in (*words, time.strftime("%Y%m%d-%H%M%S")))
    folder, count = Path("runs") / stem, 1
    while folder.exists():
        count += 1
        folder = Path("runs") / f"{stem}-{count}"
    return folder


def judge(draws: "Draws") -> "tuple[Draws, Summary | None]":
    """The summary; if it fails or is interrupted, the draws say so and are kept all the same."""
    try:
        draws = draws.evaluated()
        return draws, draws.summary()
    except KeyboardInterrupt:
        trouble = "Interrupted before the diagnostics."
    except Exception as error:
        trouble = f"The diagnostics failed: {reason(error)}"
    return dataclasses.replace(draws, warnings=(*draws.warnings, trouble)), None


def command_line() -> str:
    """What was typed, as a shell would take it again."""
    return shlex.join(["salmc", *sys.argv[1:]])


def _write_page(folder: Path) -> None:
    """The page that shows all; one that fails never costs the run."""
    from salmc.report.html import write_html

    try:
        write_html(folder)
    except Exception as error:
        with contextlib.suppress(OSError):
            (folder / "report.html").unlink(missing_ok=True)
        complain(f"The page report.html could not be written: {reason(error)}")


def _write_somewhere(write: Callable[[Path], Path], folder: Path) -> tuple[Path, bool]:
    """Write to `folder`; if that fails, to a temporary one, so that nothing computed is lost.

    Tells the folder, and whether it is the one that was asked for.
    """
    try:
        return write(folder), True
    except OutputError as error:
        complain(str(error))
        fallback = Path(tempfile.mkdtemp(prefix="salmc-")) / folder.name
        written = write(fallback)
        complain(f"What was computed is in {written} instead.")
        return written, False


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text.removesuffix(".py")).strip("-").lower() or "run"
