"""`salmc sample`: draw from a kernel that was trained and saved before."""

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
)
from salmc.cli.ending import command_line, further_files, judge, plotter

if TYPE_CHECKING:
    from salmc.sampling.draws import Draws
    from salmc.sampling.sampler import Sampler

MEMORY_LIMIT = 2**28
"""Bytes of positions that are kept in memory and judged in full; more go straight to the disk."""

ALL_DRAWS = "all-draws.zarr"


def sample(
    kernel: Annotated[
        Path, typer.Argument(help="A .salmc file, or a run folder with kernel.salmc in it.")
    ],
    chains: Annotated[int, typer.Option(help="Number of chains.")] = 32,
    draws: Annotated[int, typer.Option(help="Draws of each chain, as in 10_000_000.")] = 2000,
    metropolis: Annotated[
        bool, typer.Option("--metropolis", help="Reject some proposals, for exact draws.")
    ] = False,
    tries: Annotated[int, typer.Option(help="Proposals for each Metropolis step.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    start: Annotated[str, typer.Option(help="Where chains start: pool or normal.")] = "pool",
    target: Annotated[
        str | None,
        typer.Option(help="A built-in target, or my_model.py:name. [default: as trained]"),
    ] = None,
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
    """Draw from a trained kernel, judge the draws, and write everything to a folder."""
    with one_sentence(debug=debug, spec=target or ""), Interrupts() as interrupts:
        from salmc.cli import tables
        from salmc.cli.place import choose_folder, write_somewhere
        from salmc.sampling.atomic import check_place
        from salmc.sampling.folder import is_ours, open_run, write_run
        from salmc.sampling.sampler import load
        from salmc.targets.loading import load_target

        folder = choose_folder(out, (kernel.stem, "sample"))
        check_place(folder, overwrite=overwrite, ours=is_ours)
        file = kernel / "kernel.salmc" if kernel.is_dir() else kernel
        sampler = load(file, None if target is None else load_target(target))
        spec = target or (None if sampler.target is None else sampler.target.name)
        options = {
            "chains": chains,
            "draws": draws,
            "seed": seed,
            "metropolis": metropolis,
            "tries": tries,
            "start": start,
            "progress": not quiet,
        }
        made, stored = _draw(sampler, options, folder)
        made, summary = judge(made)

        def write(place: Path) -> Path:
            return write_run(
                made,
                place,
                summary=summary,
                spec=spec,
                plots=None if no_plots else plotter(interrupts, sampler),
                extras=further_files(),
                command=command_line(),
                overwrite=overwrite,
            )

        with interrupts.hold():
            written, as_asked = write_somewhere(write, folder)
            if stored is not None and as_asked:
                stored.rename(written / ALL_DRAWS)
        console = output()
        if quiet:
            console.print(str(written), soft_wrap=True)
        else:
            tables.print_run(console, open_run(written, sampler.target))
            if stored is not None:
                _tell_stored(console, made, written / ALL_DRAWS if as_asked else stored)
            tables.print_files(console, written)
        if interrupts.seen:
            complain("Interrupted; what was computed until then is written.")
            raise typer.Exit(INTERRUPTED)
        if not as_asked:
            raise typer.Exit(BAD_INPUT)


def _draw(sampler: "Sampler", options: dict[str, Any], folder: Path) -> "tuple[Draws, Path | None]":
    """The draws to judge; of a run that exceeds memory they are a thinned part, and the rest is
    in a Zarr folder beside the run folder, which it enters when that is written."""
    size = options["chains"] * options["draws"] * sampler.kernel.dim * sampler.pool.itemsize
    if size <= MEMORY_LIMIT:
        return sampler.sample(**options), None
    streamed = sampler.sample_to(folder.with_name(f"{folder.name}-{ALL_DRAWS}"), **options)
    all_draws = {
        "draws": streamed.draws,
        "mean": streamed.mean.tolist(),
        "sd": streamed.sd.tolist(),
        "rhat": streamed.rhat.tolist(),
        "acceptance": None if streamed.acceptance is None else float(streamed.acceptance.mean()),
    }
    settings = {**streamed.thinned.settings, "all_draws": all_draws}
    return dataclasses.replace(streamed.thinned, settings=settings), streamed.path


def _tell_stored(console: Any, thinned: "Draws", place: Path) -> None:
    count, every = thinned.settings["all_draws"]["draws"], thinned.settings["every"]
    console.print(
        f"\nAll {count:,} draws of each chain are in {place}; the figures above are of every "
        f"{every:,}th.",
        soft_wrap=True,
    )
