"""`salmc compare`: several methods on one target, from one start and seed, in one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from salmc.cli.run import judge, sample
from salmc.errors import ArgumentError, SalmcError

if TYPE_CHECKING:
    import jax

    from salmc.movers.base import AbstractMover
    from salmc.report.comparison_folder import Comparison, Result
    from salmc.target import AbstractTarget


def compare(
    target: Annotated[str, typer.Argument(help="A built-in target, or my_model.py:name.")],
    methods: Annotated[
        str, typer.Option(help="Names of methods with commas between; `salmc methods` lists them.")
    ] = "ag-svgd,a-svgd,svgd,sgld",
    particles: Annotated[int, typer.Option(help="Number of particles or chains.")] = 400,
    steps: Annotated[int, typer.Option(help="Number of steps.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    start: Annotated[
        str, typer.Option(help="auto, or normal:V for a start from N(0, V I).")
    ] = "auto",
    keep: Annotated[int, typer.Option(help="About how many of the steps to keep.")] = 200,
    out: Annotated[Path | None, typer.Option(help="The folder to write. [default: runs/…]")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a folder that salmc wrote.")
    ] = False,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no picture.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the folder's name only.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Run several methods on one target, from the same start, and compare them."""
    with one_sentence(debug=debug, spec=target), Interrupts() as interrupts:
        from salmc import checks
        from salmc.cli import tables
        from salmc.cli.options import find_method, parse_start
        from salmc.cli.place import choose_folder, write_somewhere
        from salmc.report.comparison_folder import Comparison, write_comparison
        from salmc.sampling.atomic import check_place
        from salmc.sampling.folder import is_ours
        from salmc.targets.loading import load_target

        for name, value, least in (("steps", steps, 1), ("keep", keep, 1), ("seed", seed, 0)):
            checks.integer(name, value, least)
        checks.integer("particles", particles, 2)
        variance = parse_start(start)
        movers = [find_method(name) for name in _split(methods)]
        folder = choose_folder(out, ("compare", target))
        check_place(folder, overwrite=overwrite, ours=is_ours)
        loaded = load_target(target)
        beginning = _start(loaded, variance, particles, seed)

        results = []
        for mover in movers:
            if interrupts.seen:
                break
            result = _result(
                mover,
                loaded,
                beginning,
                steps,
                seed,
                keep,
                quiet=quiet,
                debug=debug,
                interrupts=interrupts,
            )
            results.append(result)
        settings = {
            "methods": [mover.name for mover in movers],
            "particles": particles,
            "steps": steps,
            "seed": seed,
            "start": start,
            "keep": keep,
        }
        compared = Comparison(target, settings, results)
        if all(result.draws is None for result in results):
            _stop_without_draws(compared, interrupts)

        def write(place: Path) -> Path:
            written, trouble = write_comparison(
                compared, place, plots=not no_plots, overwrite=overwrite
            )
            if trouble:
                complain(trouble)
            return written

        with interrupts.hold():
            written, as_asked = write_somewhere(write, folder)
        console = output()
        if quiet:
            console.print(str(written), soft_wrap=True)
        else:
            tables.print_comparison(console, compared)
            tables.print_files(console, written)
        if interrupts.seen:
            complain("Interrupted; what was computed until then is written.")
            raise typer.Exit(INTERRUPTED)
        if not as_asked:
            raise typer.Exit(BAD_INPUT)


def _split(methods: str) -> list[str]:
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise ArgumentError("The `--methods` option must name at least one method. Got none.")
    return list(dict.fromkeys(names))


def _start(
    target: "AbstractTarget", variance: float | None, particles: int, seed: int
) -> "jax.Array":
    import jax

    from salmc.cli.options import normal_start
    from salmc.movers.start import find_start

    if variance is not None:
        return normal_start(target, variance, particles, seed)
    return find_start(target, jax.random.key(seed), particles)


def _result(
    mover_class: "type[AbstractMover]",
    target: "AbstractTarget",
    beginning: "jax.Array",
    steps: int,
    seed: int,
    keep: int,
    *,
    quiet: bool,
    debug: bool,
    interrupts: Interrupts,
) -> "Result":
    """What one method reached; one that cannot work on this target says so in its line."""
    from salmc.report.comparison_folder import Result

    name = mover_class.name
    try:
        mover = mover_class(target)
        draws = sample(mover, beginning, steps, seed, keep, quiet=quiet, interrupts=interrupts)
    except KeyboardInterrupt:
        return Result(name, trouble="Interrupted before its first step.")
    except Exception as error:
        # One method that fails must not cost what the others reached.
        if debug:
            raise
        return Result(name, trouble=str(error) if isinstance(error, SalmcError) else reason(error))
    draws, summary = judge(draws)
    if summary is None:
        return Result(name, draws, trouble=draws.warnings[-1])
    return Result(name, draws, summary.to_json())


def _stop_without_draws(compared: "Comparison", interrupts: Interrupts) -> None:
    if interrupts.seen:
        raise KeyboardInterrupt
    sentences = dict.fromkeys(result.trouble for result in compared.results)
    complain(f"No method could run. {' '.join(sentences)}")
    raise typer.Exit(BAD_INPUT)
