"""`salmc run`: one method on one target, judged and written to a folder."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salmc.cli.console import Interrupts, one_sentence
from salmc.cli.ending import Ending

if TYPE_CHECKING:
    from salmc.movers.base import AbstractMover
    from salmc.sampling.draws import Draws


def _option(panel: str, explanation: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=explanation, rich_help_panel=panel, **more)


PARTICLES = 400
STEPS = 1000
KEEP = 200

# Options that belong to one kind of method stand under its name in the help.
_learned = partial(_option, "Methods that learn a kernel")
_mover = partial(_option, "Movers")


def run(
    target: Annotated[
        str,
        typer.Argument(help="A built-in target, or my_model.py:name; for al-mc a file of samples."),
    ],
    method: Annotated[str, typer.Option(help="`salmc methods` lists them.")] = "sal-mc",
    steps: Annotated[
        int | None,
        typer.Option(
            help="Number of steps.", show_default=f"as the kernel needs; {STEPS} for movers"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the method; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder to write.", show_default="runs/…")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run folder that is there already.")
    ] = False,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw no pictures.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the folder's name only.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    kernel: Annotated[
        str | None,
        _learned("What is learned: flow, nice or mlp.", show_default="flow; nice for a-nice-mc"),
    ] = None,
    mover: Annotated[
        str | None, _learned("What fills the pool that is learned from.", show_default="auto")
    ] = None,
    chains: Annotated[int | None, _learned("Number of chains.", show_default="32")] = None,
    draws: Annotated[int | None, _learned("Draws of each chain.", show_default="2000")] = None,
    metropolis: Annotated[
        bool | None,
        _learned(
            "Reject some proposals.",
            "--metropolis/--no-metropolis",
            show_default="where that makes draws exact",
        ),
    ] = None,
    resume: Annotated[
        bool,
        _learned("Go on with a training for --out that did not finish.", "--resume"),
    ] = False,
    particles: Annotated[
        int | None, _mover("Number of particles or chains.", show_default=str(PARTICLES))
    ] = None,
    start: Annotated[
        str | None,
        _mover("auto, or normal:V for a start from N(0, V I).", show_default="auto"),
    ] = None,
    keep: Annotated[
        int | None, _mover("About how many of the steps to keep.", show_default=str(KEEP))
    ] = None,
) -> None:
    """Learn a kernel for a target and draw from it, or move particles; judge what came of it, and
    write everything to a folder."""
    with one_sentence(debug=debug, spec=target), Interrupts() as interrupts:
        from salmc.cli.options import find_method, parse_settings, refuse
        from salmc.cli.place import choose_folder

        chosen = parse_settings(settings or [])
        mover_class = find_method(method)
        folder = choose_folder(out, (target, method))
        ending = Ending(
            folder, target, interrupts, overwrite=overwrite, plots=not no_plots, quiet=quiet
        )
        if mover_class is None:
            from salmc.cli.train import Plan, train

            refuse(
                f"is for movers, and {method} learns a kernel: use --chains and --draws.",
                particles=particles,
                start=start,
                keep=keep,
            )
            plan = Plan(method, chosen, seed, steps, kernel, mover, chains, draws, metropolis)
            train(plan, ending, resume=resume, named=out is not None)
            return
        refuse(
            f"is for methods that learn a kernel, and {method} is a mover. Leave it out, or use "
            "--method sal-mc.",
            kernel=kernel,
            mover=mover,
            chains=chains,
            draws=draws,
            metropolis=metropolis,
            resume=resume or None,
        )
        _move(
            mover_class,
            chosen,
            ending,
            PARTICLES if particles is None else particles,
            STEPS if steps is None else steps,
            seed,
            KEEP if keep is None else keep,
            start or "auto",
        )


def _move(
    mover_class: "type[AbstractMover]",
    settings: dict[str, Any],
    ending: Ending,
    particles: int,
    steps: int,
    seed: int,
    keep: int,
    start: str,
) -> None:
    """Run a mover, and end."""
    from salmc.cli.options import make_mover, normal_start, parse_start
    from salmc.sampling.atomic import check_place
    from salmc.sampling.folder import is_ours
    from salmc.targets.loading import load_target

    variance = parse_start(start)
    check_place(ending.folder, overwrite=ending.overwrite, ours=is_ours)
    mover = make_mover(mover_class, load_target(ending.spec), settings)
    beginning: Any = particles
    if variance is not None:
        beginning = normal_start(mover.target, variance, particles, seed)
    draws = move(
        mover, beginning, steps, seed, keep, quiet=ending.quiet, interrupts=ending.interrupts
    )
    if variance is not None:
        draws = dataclasses.replace(draws, settings={**draws.settings, "start": start})
    written, as_asked = ending.write(draws)
    ending.tell(written, as_asked, mover.target)


def move(
    mover: "AbstractMover",
    particles: Any,
    steps: int,
    seed: int,
    keep: int,
    *,
    quiet: bool,
    interrupts: Interrupts,
) -> "Draws":
    """The draws of a mover, up to an interruption."""
    from salmc.errors import TargetError
    from salmc.sampling.move import move as run_mover

    try:
        return run_mover(
            mover, particles=particles, steps=steps, seed=seed, keep=keep, progress=not quiet
        )
    except TargetError:
        # With no step done there is nothing to return, which `run` can only say by an error.
        if interrupts.seen:
            raise KeyboardInterrupt from None
        raise
