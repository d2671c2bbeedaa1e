"""`salmc run`: one method on one target, judged and written to a folder."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salmc.cli.console import (
    BAD_INPUT,
    INTERRUPTED,
    Interrupts,
    complain,
    one_sentence,
    output,
    reason,
)

if TYPE_CHECKING:
    from salmc.diagnostics.summary import Summary
    from salmc.movers.base import AbstractMover
    from salmc.sampling.draws import Draws


def run(
    target: Annotated[str, typer.Argument(help="A built-in target, or my_model.py:name.")],
    method: Annotated[str, typer.Option(help="`salmc methods` lists them.")] = "ag-svgd",
    particles: Annotated[int, typer.Option(help="Number of particles or chains.")] = 400,
    steps: Annotated[int, typer.Option(help="Number of steps.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method; repeatable."),
    ] = None,
    start: Annotated[
        str, typer.Option(help="auto, or normal:V for a start from N(0, V I).")
    ] = "auto",
    keep: Annotated[int, typer.Option(help="About how many of the steps to keep.")] = 200,
    out: Annotated[Path | None, typer.Option(help="The folder to write. [default: runs/…]")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run folder that is there already.")
    ] = False,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the folder's name only.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Move particles toward a target, judge them, and write everything to a folder."""
    with one_sentence(debug=debug, spec=target), Interrupts() as interrupts:
        from salmc.cli.options import (
            find_method,
            make_mover,
            normal_start,
            parse_settings,
            parse_start,
        )
        from salmc.cli.place import choose_folder, write_somewhere
        from salmc.sampling.atomic import check_place
        from salmc.sampling.folder import is_ours, open_run, write_run
        from salmc.targets.loading import load_target

        chosen_settings, variance = parse_settings(settings or []), parse_start(start)
        mover_class = find_method(method)
        folder = choose_folder(out, (target, method))
        check_place(folder, overwrite=overwrite, ours=is_ours)
        mover = make_mover(mover_class, load_target(target), chosen_settings)

        beginning: Any = particles
        if variance is not None:
            beginning = normal_start(mover.target, variance, particles, seed)
        draws = sample(mover, beginning, steps, seed, keep, quiet=quiet, interrupts=interrupts)
        if variance is not None:
            draws = dataclasses.replace(draws, settings={**draws.settings, "start": start})
        draws, summary = judge(draws)

        def write(place: Path) -> Path:
            return write_run(
                draws,
                place,
                summary=summary,
                spec=target,
                plots=None if no_plots else plotter(interrupts),
                overwrite=overwrite,
            )

        with interrupts.hold():
            written, as_asked = write_somewhere(write, folder)
        _tell(open_run(written, mover.target), written, quiet=quiet)
        if interrupts.seen:
            complain("Interrupted; what was computed until then is written.")
            raise typer.Exit(INTERRUPTED)
        if not as_asked:
            raise typer.Exit(BAD_INPUT)


def sample(
    mover: "AbstractMover",
    particles: Any,
    steps: int,
    seed: int,
    keep: int,
    *,
    quiet: bool,
    interrupts: Interrupts,
) -> "Draws":
    """The draws, up to an interruption."""
    from salmc.errors import TargetError
    from salmc.sampling.run import run as run_mover

    try:
        return run_mover(
            mover, particles=particles, steps=steps, seed=seed, keep=keep, progress=not quiet
        )
    except TargetError:
        # With no step done there is nothing to return, which `run` can only say by an error.
        if interrupts.seen:
            raise KeyboardInterrupt from None
        raise


def judge(draws: "Draws") -> "tuple[Draws, Summary | None]":
    """The summary; if it fails or is interrupted, the draws say so and are kept all the same."""
    try:
        return draws, draws.summary()
    except KeyboardInterrupt:
        trouble = "Interrupted before the diagnostics."
    except Exception as error:
        trouble = f"The diagnostics failed: {reason(error)}"
    return dataclasses.replace(draws, warnings=(*draws.warnings, trouble)), None


def plotter(interrupts: Interrupts) -> Any:
    """Pictures may be interrupted; the writing around them may not."""

    def plot(draws: "Draws", folder: Path) -> tuple[str, ...]:
        from salmc.report.write import write_pictures

        try:
            with interrupts.hold(False):
                return write_pictures(draws, folder)
        except KeyboardInterrupt:
            return ("Interrupted before all pictures were written.",)

    return plot


def _tell(opened: Any, folder: Path, *, quiet: bool) -> None:
    from salmc.cli import tables

    console = output()
    if quiet:
        console.print(str(folder), soft_wrap=True)
        return
    tables.print_run(console, opened)
    tables.print_files(console, folder)
