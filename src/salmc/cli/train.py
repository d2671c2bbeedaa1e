"""The part of `salmc run` that learns a kernel, draws from it, and survives interruptions.

While a kernel is trained for the run folder NAME, its checkpoints are in the hidden file
`.NAME.checkpoint` beside it, which is removed when the run folder is complete.
"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from salmc.cli.console import INTERRUPTED, complain
from salmc.cli.ending import Ending
from salmc.errors import ArgumentError, OutputError
from salmc.progress import BarReporter

if TYPE_CHECKING:
    import numpy as np

    from salmc.learning.settings import TrainingSettings
    from salmc.sampling.draws import Draws
    from salmc.sampling.sampler import Sampler
    from salmc.target import AbstractTarget


CHAINS = 32
DRAWS = 2000


@dataclasses.dataclass(frozen=True)
class Plan:
    """What was asked for; None where the default is wanted.

    Attributes:
        method: "sal-mc", "al-mc" or "a-nice-mc".
        settings: of the learning, by name.
        seed: of training, and of the draws.
        steps: of training.
        kernel, mover: names.
        chains, draws: how many chains, and draws of each.
        metropolis: whether proposals may be rejected; by default where that makes draws exact.
    """

    method: str
    settings: dict[str, Any]
    seed: int = 0
    steps: int | None = None
    kernel: str | None = None
    mover: str | None = None
    chains: int | None = None
    draws: int | None = None
    metropolis: bool | None = None


def train(plan: Plan, ending: Ending, *, resume: bool, named: bool) -> None:
    """Learn, draw, judge, write, tell.

    Args:
        plan: what was asked for.
        ending: where it goes; its `spec` is the target, or the file of samples for al-mc.
        resume: go on from the checkpoint for this folder, if there is one.
        named: whether the user named the folder.
    """
    if resume and not named:
        raise ArgumentError(
            "The `--resume` option needs --out with the folder that the training was meant for."
            + _unfinished(ending.folder.parent)
        )
    _check(plan)
    checkpoint, ending = _prepare(ending, resume=resume)
    target, samples, dim = _load(plan, ending.spec)
    _check_size(plan, dim)
    settings = learning_settings(plan, dim)
    if not resume:
        # A checkpoint that is still here belongs to a run that --overwrite gives up.
        checkpoint.unlink(missing_ok=True)
    go_on = f" Use --resume --out {ending.folder} to go on with the training."
    try:
        sampler = learn(
            plan, target, samples, settings, ending.quiet, checkpoint=checkpoint, resume=resume
        )
        unfinished = ending.interrupts.seen
        if unfinished:
            complain("Interrupted: drawing with what was learned until now.")
        draws = draw(plan, sampler, quiet=ending.quiet)
    except KeyboardInterrupt:
        if not checkpoint.exists():
            raise
        complain(f"Interrupted before there were draws.{go_on}")
        raise typer.Exit(INTERRUPTED) from None
    written, as_asked = ending.write(draws, sampler)
    if as_asked and not unfinished:
        checkpoint.unlink(missing_ok=True)
    ending.tell(written, as_asked, sampler.target, go_on if unfinished else "")


def learn(
    plan: Plan,
    target: "AbstractTarget | None",
    samples: "np.ndarray | None",
    settings: "TrainingSettings",
    quiet: bool,
    **checkpointing: Any,
) -> "Sampler":
    """The trained sampler, behind a progress bar."""
    from salmc.learning.fit import fit
    from salmc.progress import SilentReporter

    name = plan.method if target is None else target.name
    with SilentReporter() if quiet else TrainingBar(f"finding {name}") as report:
        return fit(
            target,
            method=plan.method,
            kernel=plan.kernel,
            mover=plan.mover or "auto",
            samples=samples,
            settings=settings,
            seed=plan.seed,
            progress=report,
            **checkpointing,
        )


def draw(plan: Plan, sampler: "Sampler", *, quiet: bool) -> "Draws":
    """Draws from the trained kernel, by default the exact way where there is one."""
    from salmc.kernels.base import is_exact

    metropolis = plan.metropolis
    if metropolis is None:
        metropolis = is_exact(type(sampler.kernel)) and sampler.target is not None
    draws = sampler.sample(
        chains=plan.chains or CHAINS,
        draws=plan.draws or DRAWS,
        seed=plan.seed,
        metropolis=metropolis,
        progress=not quiet,
    )
    seconds = {part: round(float(value), 2) for part, value in sampler.seconds.items()}
    settings = {**draws.settings, "training_seconds": seconds}
    return dataclasses.replace(draws, settings=settings)


def checkpoint_place(folder: Path) -> Path:
    """Where the checkpoints of the training for a run folder are."""
    from salmc.sampling.atomic import final_place

    place = final_place(folder)
    return place.with_name(f".{place.name}.checkpoint")


class TrainingBar(BarReporter):
    """Shows that something is going on before the first step of training, too."""

    def __init__(self, description: str) -> None:
        super().__init__()
        self._progress.start()
        self._first = self._progress.add_task(description, total=None, figures="")

    def start(self, description: str, total: int) -> None:
        self._progress.update(self._first, visible=False)
        super().start(description, total)

    def stop(self) -> None:
        # A sentence about bad input stands alone, without a bar above it.
        self._progress.update(self._first, visible=False)
        super().stop()


def _check(plan: Plan) -> None:
    """What can be wrong is found before the long work."""
    from salmc import checks
    from salmc.cli.options import refuse
    from salmc.kernels import KERNELS
    from salmc.movers import MOVERS

    checks.integer("seed", plan.seed, 0)
    for name in ("chains", "draws", "steps"):
        if getattr(plan, name) is not None:
            checks.integer(name, getattr(plan, name), 1)
    if plan.kernel is not None:
        checks.choice("kernel", plan.kernel, tuple(KERNELS))
    if plan.method == "a-nice-mc" and plan.kernel not in (None, "nice"):
        checks.fail("kernel", "nice for a-nice-mc", plan.kernel)
    if plan.mover is not None:
        checks.choice("mover", plan.mover, ("auto", *MOVERS))
    if plan.steps is not None and "steps" in plan.settings:
        raise ArgumentError("The setting `steps` was given twice, by --steps and by --set.")
    if plan.method == "al-mc":
        why = "needs a density, and al-mc has samples alone."
        refuse(why, mover=plan.mover, metropolis=plan.metropolis or None)


def _check_size(plan: Plan, dim: int) -> None:
    from salmc.cli.sample import MEMORY_LIMIT

    chains, draws = plan.chains or CHAINS, plan.draws or DRAWS
    if 4 * chains * draws * dim > MEMORY_LIMIT:
        raise ArgumentError(
            f"{chains:,} chains × {draws:,} draws are too many to keep in memory. Train with "
            f"fewer, then draw to the disk: salmc sample FOLDER --chains {chains} --draws {draws}."
        )


def _prepare(ending: Ending, *, resume: bool) -> tuple[Path, Ending]:
    """The place of the checkpoint, after a look at what is there already."""
    from salmc.sampling.atomic import check_place
    from salmc.sampling.folder import is_ours

    checkpoint = checkpoint_place(ending.folder)
    there = checkpoint.exists()
    if resume and not there and ending.folder.exists() and is_ours(ending.folder):
        raise OutputError(f"The run {ending.folder} is complete: there is nothing to resume.")
    if resume and there:
        # After Ctrl-C there is a run folder of what was learned until then.
        ending = dataclasses.replace(ending, overwrite=True)
    check_place(ending.folder, overwrite=ending.overwrite, ours=is_ours)
    if there and not resume and not ending.overwrite:
        raise OutputError(
            f"There is a checkpoint of an unfinished training for {ending.folder}. Use --resume to "
            "go on with it, or --overwrite to begin anew."
        )
    return checkpoint, ending


def _load(plan: Plan, spec: str) -> "tuple[AbstractTarget | None, np.ndarray | None, int]":
    """The target or the samples, and their dimension."""
    if plan.method == "al-mc":
        from salmc.cli.samples import read_samples

        samples = read_samples(Path(spec))
        return None, samples, samples.shape[1]
    from salmc.targets.loading import load_target

    target = load_target(spec)
    return target, None, target.dim


def learning_settings(plan: Plan, dim: int) -> "TrainingSettings":
    """The defaults for method and kernel, with what was asked for."""
    from salmc.learning.fit import default_kernel, method_settings

    defaults = method_settings(plan.method, plan.kernel or default_kernel(plan.method), dim)
    changes = dict(plan.settings)
    if plan.steps is not None:
        changes["steps"] = plan.steps
    for name, value in changes.items():
        # On the command line 1 and 1.0 are the same number.
        if isinstance(getattr(defaults, name, None), float) and type(value) is int:
            changes[name] = float(value)
    return defaults.replace(**changes)


def _unfinished(parent: Path) -> str:
    """The folders beside which there are checkpoints, for a user who does not know the name."""
    suffix = ".checkpoint"
    names = sorted(file.name[1 : -len(suffix)] for file in parent.glob(f".*{suffix}"))
    if not names:
        return ""
    return f" There are checkpoints for {', '.join(str(parent / name) for name in names)}."
