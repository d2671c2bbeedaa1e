"""`salmc run`: one method on one target, judged and written to a folder."""

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salmc.cli import options as shared
from salmc.cli.console import Interrupts, one_sentence
from salmc.cli.results import Results, choose_folder

if TYPE_CHECKING:
    from salmc.movers.base import AbstractMover
    from salmc.sampling.draws import Draws


def _option(panel: str, explanation: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=explanation, rich_help_panel=panel, **more)


PARTICLES = 400
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
    steps: shared.Steps = None,
    seed: shared.Seed = 0,
    settings: shared.Settings = None,
    out: shared.Out = None,
    overwrite: shared.Overwrite = False,
    no_plots: shared.NoPlots = False,
    quiet: shared.Quiet = False,
    debug: shared.Debug = False,
    kernel: Annotated[
        str | None,
        _learned(
            "What is learned: flow, mixture, nice or mlp.", show_default="flow; nice for a-nice-mc"
        ),
    ] = None,
    mover: Annotated[
        str | None, _learned("What fills the pool that is learned from.", show_default="auto")
    ] = None,
    chains: Annotated[int | None, _learned("Number of chains.", show_default="32")] = None,
    draws: Annotated[int | None, _learned("Draws of each chain.", show_default="2000")] = None,
    effective: Annotated[
        int | None,
        _learned(
            "Effective draws to reach, with as little training as they need; not with --draws."
        ),
    ] = None,
    evaluations: Annotated[
        int | None, _learned("Evaluations of the density, at most; with --effective.")
    ] = None,
    metropolis: Annotated[
        bool | None, _learned(*shared.METROPOLIS, show_default=shared.METROPOLIS_DEFAULT)
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
        chosen = shared.parse_settings(settings or [])
        mover_class = shared.find_method(method)
        folder = choose_folder(out, target, method)
        results = Results(folder, interrupts, overwrite, not no_plots, quiet)
        if mover_class is None:
            from salmc.cli.train_and_draw import Plan, train_and_draw

            shared.refuse(
                f"is for movers, and {method} learns a kernel: use --chains and --draws.",
                particles=particles,
                start=start,
                keep=keep,
            )
            if effective is not None or evaluations is not None:
                from salmc.cli.ask import Request, ask

                shared.refuse(
                    "is left to the run that --effective asks for. Leave one of them out.",
                    steps=steps,
                    kernel=kernel,
                    mover=mover,
                    draws=draws,
                    metropolis=metropolis,
                    resume=resume or None,
                    set=settings,
                    method=None if method == "sal-mc" else method,
                )
                ask(Request(effective, evaluations, chains, seed), target, results)
                return
            plan = Plan(method, chosen, seed, steps, kernel, mover, chains, draws, metropolis)
            train_and_draw(plan, target, results, resume=resume, named=out is not None)
            return
        shared.refuse(
            f"is for methods that learn a kernel, and {method} is a mover. Leave it out, or use "
            "--method sal-mc.",
            kernel=kernel,
            mover=mover,
            chains=chains,
            draws=draws,
            effective=effective,
            evaluations=evaluations,
            metropolis=metropolis,
            resume=resume or None,
        )
        from salmc.targets.loading import load_target

        variance = shared.parse_start(start or "auto")
        results.check_place()
        moving = shared.make_mover(mover_class, load_target(target), chosen)
        beginning: Any = PARTICLES if particles is None else particles
        if variance is not None:
            beginning = shared.normal_start(moving.target, variance, beginning, seed)
        made = move(
            moving,
            beginning,
            shared.MOVER_STEPS if steps is None else steps,
            seed,
            KEEP if keep is None else keep,
            results,
        )
        if variance is not None:
            made = dataclasses.replace(made, settings={**made.settings, "start": start})
        results.end_run(made, target, moving.target)


def move(
    mover: "AbstractMover", particles: Any, steps: int, seed: int, keep: int, results: Results
) -> "Draws":
    """The draws of a mover, up to an interruption."""
    from salmc.errors import TargetError
    from salmc.sampling.move import move as run_mover

    show = not results.quiet
    try:
        return run_mover(
            mover, particles=particles, steps=steps, seed=seed, keep=keep, progress=show
        )
    except TargetError:
        # With no step done there is nothing to return, which `run` can only say by an error.
        if results.interrupts.seen:
            raise KeyboardInterrupt from None
        raise
