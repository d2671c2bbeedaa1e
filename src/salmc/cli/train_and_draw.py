"""The part of `salmc run` that learns a kernel, draws from it, and survives interruptions."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from salmc.cli.checkpoints import claim_checkpoint, unfinished
from salmc.cli.console import INTERRUPTED, complain
from salmc.cli.results import Results
from salmc.errors import ArgumentError
from salmc.progress import BarReporter

if TYPE_CHECKING:
    import numpy as np

    from salmc.learning.settings import PoolSettings
    from salmc.sampling.draws import Draws
    from salmc.sampling.sampler import Sampler
    from salmc.target import AbstractTarget


CHAINS = 32
DRAWS = 2000


@dataclasses.dataclass(frozen=True)
class Plan:
    """What was asked for; None where the default is wanted.

    Settings and steps are of the training, and the seed is of both training and draws. Metropolis
    is by default where that makes draws exact.
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


def train_and_draw(plan: Plan, spec: str, results: Results, *, resume: bool, named: bool) -> None:
    """Learn, draw, judge, write, tell.

    `spec` is the target, or the file of samples for al-mc; `named` tells whether the user named the
    folder, which a training needs that goes on from its checkpoint.
    """
    from salmc.sampling.files.folder import is_ours

    folder = results.folder
    if resume and not named:
        raise ArgumentError(
            "The `--resume` option needs --out with the folder that the training was meant for."
            + unfinished(folder.parent)
        )
    _check(plan)
    checkpoint = claim_checkpoint(
        folder,
        resume=resume,
        overwrite=results.overwrite,
        complete=folder.exists() and is_ours(folder),
    )
    if resume and checkpoint.exists():
        # After Ctrl-C there is a run folder of what was learned until then.
        results = dataclasses.replace(results, overwrite=True)
    results.check_place()
    target, samples, dim = _load(plan, spec)
    _check_size(plan, dim)
    settings = learning_settings(plan, dim)
    if not resume:
        # A checkpoint that is still here belongs to a run that --overwrite gives up.
        checkpoint.unlink(missing_ok=True)
    go_on = f" Use --resume --out {folder} to go on with the training."
    try:
        sampler = learn(
            plan, target, samples, settings, results.quiet, checkpoint=checkpoint, resume=resume
        )
        stopped = results.interrupts.seen
        if stopped:
            complain("Interrupted: drawing with what was learned until now.")
        draws = draw(plan, sampler, quiet=results.quiet)
    except KeyboardInterrupt:
        if not checkpoint.exists():
            raise
        complain(f"Interrupted before there were draws.{go_on}")
        raise typer.Exit(INTERRUPTED) from None

    def finish(written: Path, as_asked: bool) -> None:
        if as_asked and not stopped:
            checkpoint.unlink(missing_ok=True)

    remedy = go_on if stopped else ""
    results.end_run(draws, spec, sampler.target, sampler=sampler, finish=finish, remedy=remedy)


def learn(
    plan: Plan,
    target: "AbstractTarget | None",
    samples: "np.ndarray | None",
    settings: "PoolSettings",
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
    """Draws from the trained kernel, which tell what training took."""
    draws = sampler.sample(
        chains=plan.chains or CHAINS,
        draws=plan.draws or DRAWS,
        seed=plan.seed,
        metropolis=plan.metropolis,
        progress=not quiet,
    )
    seconds = {part: round(float(value), 2) for part, value in sampler.seconds.items()}
    settings = {**draws.settings, "training_seconds": seconds}
    return dataclasses.replace(draws, settings=settings)


def learning_settings(plan: Plan, dim: int) -> "PoolSettings":
    """The defaults for method and kernel, with what was asked for."""
    from salmc.cli.options import with_changes
    from salmc.learning.fit import default_kernel, method_settings

    defaults = method_settings(plan.method, plan.kernel or default_kernel(plan.method), dim)
    steps = {} if plan.steps is None else {"steps": plan.steps}
    return with_changes(defaults, {**plan.settings, **steps})


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
    from salmc.learning.fit import kernels_of
    from salmc.movers import MOVERS

    checks.integer("seed", plan.seed, 0)
    for name in ("chains", "draws", "steps"):
        if getattr(plan, name) is not None:
            checks.integer(name, getattr(plan, name), 1)
    if plan.kernel is not None:
        checks.choice("kernel", plan.kernel, tuple(KERNELS))
        if plan.kernel not in kernels_of(plan.method):
            known = " or ".join(kernels_of(plan.method))
            checks.fail("kernel", f"{known} for {plan.method}", plan.kernel)
    if plan.mover is not None:
        checks.choice("mover", plan.mover, ("auto", "nuts", "trajectories", *MOVERS))
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


def _load(plan: Plan, spec: str) -> "tuple[AbstractTarget | None, np.ndarray | None, int]":
    """The target or the samples, and their dimension."""
    if plan.method == "al-mc":
        samples = _read_samples(Path(spec))
        return None, samples, samples.shape[1]
    from salmc.targets.loading import load_target

    target = load_target(spec)
    return target, None, target.dim


def _read_samples(file: Path) -> "np.ndarray":
    """(n, dim) from a .npy file, or from a .csv file with or without a line of names."""
    import numpy as np

    place = file.expanduser()
    if not place.is_file():
        raise ArgumentError(
            f"There is no file {file}. The method al-mc learns from samples: name a .npy or .csv "
            "file with one sample in each row."
        )
    try:
        # Nothing is unpickled: a file from elsewhere cannot run code.
        loaded = np.load(place, allow_pickle=False) if place.suffix == ".npy" else _table(place)
        samples = np.asarray(loaded, dtype=float)
    except (OSError, ValueError, TypeError) as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise ArgumentError(f"Cannot read samples from {file}: {told[0]}") from error
    samples = samples[:, None] if samples.ndim == 1 else samples
    if samples.ndim != 2 or samples.size == 0:
        raise ArgumentError(
            f"The file {file} must hold a table of numbers, one sample in each row. "
            f"Got an array of shape {samples.shape} instead."
        )
    return samples


def _table(place: Path) -> "np.ndarray":
    import numpy as np

    if place.suffix not in (".csv", ".txt"):
        raise ValueError("its name must end in .npy or .csv.")
    with place.open(encoding="utf-8") as file:
        first = file.readline()
    try:
        [float(word) for word in first.split(",")]
        names = 0
    except ValueError:
        names = 1
    return np.loadtxt(place, delimiter=",", skiprows=names, ndmin=2)
