"""Ring: one chain of 200 draws against 200 chains of one step."""

import math
from typing import Any

import jax
import numpy as np
from matplotlib.figure import Figure

from salmc.report import scatter, style
from salmc_paper.display.drawing import density_panel
from salmc_paper.display.tables import Table, mean_and_error, number, percent, with_error
from salmc_paper.experiments import rows
from salmc_paper.experiments.training import label, trained
from salmc_paper.harness.jobs import Context, Job, Plan, Product, Results, not_interrupted
from salmc_paper.measures.judging import ExactSet
from salmc_paper.measures.problems import find_target

TITLE = "Figure: one chain or many on Ring"
PAPER = (
    "One chain of 200 updates from N(0, I) against 200 chains of a single update from N(0, I). It "
    "finds that both give draws that approximate the target well."
)
WHY: tuple[str, ...] = ()
VERSION = 1
DRAWS = 200
KERNELS = ("mlp", "flow")
_SETTINGS = {"one": "one chain of 200 draws", "many": "200 chains of one draw"}


def jobs(plan: Plan) -> list[Job]:
    """For each kernel of the first training of Table 1."""
    found = []
    for kernel in KERNELS:
        train = rows.trainings(plan, "ring", kernel)[0]
        runs = plan.number("runs", 20, 4)
        arguments = {"kernel": kernel, "runs": runs, "steps": rows.quick_steps(plan, kernel)}
        name = f"{label('sal-mc', kernel)}, one chain against many, {runs} runs"
        found.append(Job("ring-chains", name, arguments, _run, VERSION, (train,), seconds=10.0))
    return found


def tables(results: Results) -> list[Table]:
    """MMD² of both settings over the runs."""
    lines = []
    for kernel in KERNELS:
        record = results.first(kernel=kernel)
        if record is None:
            continue
        for setting, title in _SETTINGS.items():
            values = record.figures[setting]
            above = float(np.mean(np.array(values) > record.figure("floor")))
            lines.append((label("sal-mc", kernel), title, with_error(values), percent(above, 0)))
    record = results.done()[0]
    note = (
        f"Without a Metropolis step. {len(record.figures['one'])} runs, mean ± standard error. Of "
        f"sets of {DRAWS} exact draws 5 % are above the floor, {number(record.figure('floor'), 2)}."
    )
    columns = ("kernel", "setting", "MMD²", "runs above the floor")
    return [Table("Ring", columns, tuple(lines), note)]


def words(results: Results) -> list[str]:
    """Whether the two settings differ by more than their scatter."""
    sentences = []
    for kernel in KERNELS:
        record = results.first(kernel=kernel)
        if record is None:
            continue
        (one, error_of_one), (many, error_of_many) = (
            mean_and_error(record.figures[name]) for name in _SETTINGS
        )
        difference, error = one - many, math.hypot(error_of_one, error_of_many)
        told = "alike" if abs(difference) < 2 * error else "not alike"
        sentences.append(
            f"{label('sal-mc', kernel)}: the two are {told} (MMD² {number(one, 2)} and "
            f"{number(many, 2)}, difference {number(difference, 2)} ± {number(error, 1)}; "
            f"exact draws are below {number(record.figure('floor'), 2)} in 95 % of cases)."
        )
    return sentences


def figure(results: Results) -> Figure | None:
    """Both settings of each kernel side by side."""
    shown = [(k, r) for k in KERNELS if (r := results.first(kernel=k)) is not None]
    if not shown:
        return None
    target = find_target("ring")
    made = style.new_figure(3.1 * 2 * len(shown), 4.15)
    panels = made.subplots(1, 2 * len(shown), squeeze=False, sharex=True, sharey=True)[0]
    window = (-3.3, 3.3)
    for index, (kernel, record) in enumerate(shown):
        for axes, (setting, title) in zip(
            panels[2 * index : 2 * index + 2], _SETTINGS.items(), strict=True
        ):
            density_panel(axes, target, window, window)
            start = record.arrays["start"][: 1 if setting == "one" else DRAWS]
            scatter.points(axes, start, color=style.FAINT_INK, size=7.0, alpha=0.5)
            scatter.points(axes, record.arrays[setting], size=12.0)
            axes.set(xlim=window, ylim=window, xlabel="x₀")
            axes.set_aspect("equal")
            mean = float(np.mean(record.figures[setting]))
            told = f"{title} · MMD² {number(mean, 1)}"
            style.title(axes, label("sal-mc", kernel), told)
    panels[0].set_ylabel("x₁")
    made.supxlabel("grey: where chains start, N(0, I)", fontsize=8.8, color=style.FAINT_INK)
    return made


def _run(context: Context) -> Product:
    target = find_target("ring")
    sampler = trained(context.needed[0])
    exact = ExactSet.of(target, seed=3)
    measured: dict[str, list[float]] = {name: [] for name in _SETTINGS}
    arrays: dict[str, np.ndarray] = {}
    for seed in range(context["runs"]):
        start = np.asarray(jax.random.normal(jax.random.key(8000 + seed), (DRAWS, target.dim)))
        options: dict[str, Any] = {"seed": seed, "progress": False}
        one = sampler.sample(1, DRAWS, start=start[:1], **options)
        many = sampler.sample(DRAWS, 1, start=start, **options)
        for name, draws in (("one", one), ("many", many)):
            not_interrupted(draws.warnings)
            cloud = draws.positions.reshape(-1, target.dim)
            measured[name].append(exact.mmd_squared(cloud))
            if seed == 0:
                arrays[name] = cloud
        if seed == 0:
            arrays["start"] = start
    return Product({**measured, "floor": exact.floor(DRAWS)}, arrays)
