"""`salmc compare`: several methods on one target, from one start and seed, in one table."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from salmc.cli import options as shared
from salmc.cli.console import BAD_INPUT, Interrupts, complain, one_sentence
from salmc.cli.results import Results, choose_folder, judge
from salmc.cli.run import move
from salmc.cli.train_and_draw import Plan, draw, learn, learning_settings
from salmc.errors import ArgumentError, SalmcError, reason

if TYPE_CHECKING:
    import jax

    from salmc.movers.base import AbstractMover
    from salmc.report.comparison import Result
    from salmc.report.comparison_folder import Comparison
    from salmc.sampling.draws import Draws
    from salmc.target import AbstractTarget


def compare(
    target: Annotated[str, typer.Argument(help="A built-in target, or my_model.py:name.")],
    methods: Annotated[
        str,
        typer.Option(
            help="Names with commas between; `salmc methods` lists them. sal-mc:mlp is sal-mc with "
            "the kernel mlp."
        ),
    ] = "sal-mc,ag-svgd,a-svgd,svgd,sgld",
    particles: Annotated[int, typer.Option(help="Number of particles or chains.")] = 400,
    steps: shared.Steps = None,
    seed: shared.Seed = 0,
    start: Annotated[
        str, typer.Option(help="auto, or normal:V for a start from N(0, V I).")
    ] = "auto",
    keep: Annotated[int, typer.Option(help="About how many of the steps to keep.")] = 200,
    out: shared.Out = None,
    overwrite: shared.Overwrite = False,
    no_plots: shared.NoPlots = False,
    quiet: shared.Quiet = False,
    debug: shared.Debug = False,
) -> None:
    """Run several methods on one target and compare them; movers begin from the same start."""
    with one_sentence(debug=debug, spec=target), Interrupts() as interrupts:
        from salmc import checks
        from salmc.cli.tables import print_comparison
        from salmc.report.comparison_folder import Comparison, write_comparison
        from salmc.targets.loading import load_target

        mover_steps = shared.MOVER_STEPS if steps is None else steps
        for name, value, least in (("steps", mover_steps, 1), ("keep", keep, 1), ("seed", seed, 0)):
            checks.integer(name, value, least)
        checks.integer("particles", particles, 2)
        variance = shared.parse_start(start)
        contenders = [_contender(name, seed, steps) for name in _split(methods)]
        folder = choose_folder(out, "compare", target)
        place = Results(folder, interrupts, overwrite, not no_plots, quiet)
        place.check_place()
        loaded = load_target(target)
        beginning: Any = None
        if not all(isinstance(contender, Plan) for _, contender in contenders):
            beginning = _start(loaded, variance, particles, seed)

        def draws_of(contender: "Plan | type[AbstractMover]") -> "Draws":
            if isinstance(contender, Plan):
                return _learn(contender, loaded, quiet=quiet)
            return move(contender(loaded), beginning, mover_steps, seed, keep, place)

        results = []
        for label, contender in contenders:
            if interrupts.seen:
                break
            results.append(_result(label, partial(draws_of, contender), debug=debug))
        settings = {
            "methods": [label for label, _ in contenders],
            "particles": particles,
            "steps": steps,
            "seed": seed,
            "start": start,
            "keep": keep,
        }
        compared = Comparison(target, settings, results)
        if all(result.draws is None for result in results):
            _stop_without_draws(compared, interrupts)

        def write(where: Path) -> Path:
            written, trouble = write_comparison(
                compared, where, plots=not no_plots, overwrite=overwrite
            )
            if trouble:
                complain(trouble)
            return written

        place.end(write, lambda console, _: print_comparison(console, compared))


def _split(methods: str) -> list[str]:
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise ArgumentError("The `--methods` option must name at least one method. Got none.")
    return list(dict.fromkeys(names))


def _contender(
    label: str, seed: int, steps: int | None
) -> "tuple[str, Plan | type[AbstractMover]]":
    """A mover, or what to learn: "sal-mc", or with another kernel "sal-mc:mlp"."""
    from salmc import checks
    from salmc.learning.fit import kernels_of

    name, colon, kernel = label.partition(":")
    mover = shared.find_method(name)
    if name == "al-mc":
        raise ArgumentError("The method al-mc learns from samples, so it cannot be compared here.")
    if mover is not None:
        if colon:
            raise ArgumentError(f"The method {name} is a mover and has no kernel. Got {label!r}.")
        return label, mover
    if colon:
        checks.choice("kernel", kernel, kernels_of(name))
    return label, Plan(name, {}, seed, steps, kernel or None)


def _learn(plan: Plan, target: "AbstractTarget", *, quiet: bool) -> "Draws":
    """Train and draw, as `salmc run` does."""
    sampler = learn(plan, target, None, learning_settings(plan, target.dim), quiet)
    return draw(plan, sampler, quiet=quiet)


def _start(
    target: "AbstractTarget", variance: float | None, particles: int, seed: int
) -> "jax.Array":
    import jax

    from salmc.movers.start import find_start

    if variance is not None:
        return shared.normal_start(target, variance, particles, seed)
    return find_start(target, jax.random.key(seed), particles)


def _result(name: str, make: "Callable[[], Draws]", *, debug: bool) -> "Result":
    """What one method reached; one that cannot work on this target says so in its line."""
    from salmc.report.comparison import Result

    try:
        draws = make()
    except KeyboardInterrupt:
        return Result(name, trouble="Interrupted before its first step.")
    except Exception as error:
        # One method that fails must not cost what the others reached.
        if debug:
            raise
        return Result(name, trouble=str(error) if isinstance(error, SalmcError) else reason(error))
    seconds = float(sum(draws.settings.get("training_seconds", {}).values()))
    draws, summary = judge(draws)
    if summary is None:
        return Result(name, draws, trouble=draws.warnings[-1], training_seconds=seconds)
    return Result(name, draws, summary.to_json(), training_seconds=seconds)


def _stop_without_draws(compared: "Comparison", interrupts: Interrupts) -> None:
    if interrupts.seen:
        raise KeyboardInterrupt
    sentences = dict.fromkeys(result.trouble for result in compared.results)
    complain(f"No method could run. {' '.join(sentences)}")
    raise typer.Exit(BAD_INPUT)
