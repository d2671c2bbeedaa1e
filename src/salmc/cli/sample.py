"""`salmc sample`: draw from a kernel that was trained and saved before."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salmc.cli import options as shared
from salmc.cli.console import Interrupts, one_sentence
from salmc.cli.results import Results, choose_folder

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
    metropolis: shared.Metropolis = None,
    tries: Annotated[int, typer.Option(help="Proposals for each Metropolis step.")] = 1,
    seed: shared.Seed = 0,
    start: Annotated[str, typer.Option(help="Where chains start: pool or normal.")] = "pool",
    target: Annotated[
        str | None,
        typer.Option(help="A built-in target, or my_model.py:name.", show_default="as trained"),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with a stream of draws for --out."),
    ] = False,
    out: shared.Out = None,
    overwrite: shared.Overwrite = False,
    no_plots: shared.NoPlots = False,
    quiet: shared.Quiet = False,
    debug: shared.Debug = False,
) -> None:
    """Draw from a trained kernel, judge the draws, and write everything to a folder."""
    with one_sentence(debug=debug, spec=target or ""), Interrupts() as interrupts:
        from salmc.sampling.files.saved import load
        from salmc.targets.loading import load_target

        folder = choose_folder(out, kernel.stem, "sample")
        results = Results(folder, interrupts, overwrite, not no_plots, quiet)
        results.check_place()
        file = kernel / "kernel.salmc" if kernel.is_dir() else kernel
        sampler = load(file, None if target is None else load_target(target))
        asked = {
            "chains": chains,
            "draws": draws,
            "seed": seed,
            "metropolis": metropolis,
            "tries": tries,
            "start": start,
            "progress": not quiet,
        }
        made, stored = _draw(sampler, asked, folder, resume=resume)

        def place_all_draws(written: Path, as_asked: bool) -> None:
            nonlocal stored
            if stored is not None and as_asked:
                stored = stored.rename(written / ALL_DRAWS)

        results.end_run(
            made,
            target or (None if sampler.target is None else sampler.target.name),
            sampler.target,
            sampler=sampler,
            save_kernel=False,
            note=lambda: _where_all_are(made, stored),
            finish=place_all_draws,
        )


def _draw(
    sampler: "Sampler", asked: dict[str, Any], folder: Path, *, resume: bool
) -> "tuple[Draws, Path | None]":
    """The draws to judge; of a run that exceeds memory they are a thinned part, and the rest is
    in a Zarr folder beside the run folder, which it enters when that is written."""
    size = asked["chains"] * asked["draws"] * sampler.kernel.dim * sampler.pool.itemsize
    if size <= MEMORY_LIMIT:
        return sampler.sample(**asked), None
    place = folder.with_name(f"{folder.name}-{ALL_DRAWS}")
    streamed = sampler.sample_to(place, resume=resume, **asked)
    all_draws = {
        "draws": streamed.draws,
        "mean": streamed.mean.tolist(),
        "sd": streamed.sd.tolist(),
        "rhat": streamed.rhat.tolist(),
        "acceptance": None if streamed.acceptance is None else float(streamed.acceptance.mean()),
    }
    settings = {**streamed.thinned.settings, "all_draws": all_draws}
    return dataclasses.replace(streamed.thinned, settings=settings), streamed.path


def _where_all_are(thinned: "Draws", stored: Path | None) -> str:
    if stored is None:
        return ""
    count, every = thinned.settings["all_draws"]["draws"], thinned.settings["every"]
    return (
        f"All {count:,} draws of each chain are in {stored}; the figures above are of every "
        f"{every:,}th."
    )
