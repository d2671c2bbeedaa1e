"""Mog10: errors of mean and variance and MMD against the number of particles."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from salmc.diagnostics import moment_errors
from salmc.report import style
from salmc.target import AbstractTarget
from salmc_paper.display.tables import Table, mean_and_error, number, with_error
from salmc_paper.harness.jobs import Context, Job, Plan, Product, Results, not_interrupted
from salmc_paper.measures.judging import ExactSet, exact_draws, mmd
from salmc_paper.measures.problems import START_VARIANCE, find_target, particle_start

TITLE = "Figure: particles on Mog10"
PAPER = (
    "Ten modes in five dimensions, 20 runs of 500 iterations. It finds AG-SVGD, which needs no "
    "gradient, comparable to A-SVGD when particles are many and best of the three on the variance, "
    "and SGLD the worst. The paper prints no numbers and no parameters of the mixture: this is "
    "a mixture of ours of the same kind."
)
WHY: tuple[str, ...] = (
    "What takes AG-SVGD ahead is its memory, which the paper does not have: draws beside the "
    "particles, of known density and so of known weight, are kept, and the particles come to "
    "represent them evenly. It still needs no gradient. Without memory it is behind: it knows the "
    "target at its particles alone, and in five dimensions some hundred of them tell little "
    "about the density between (decision 0002).",
    "Particles that lie evenly beat exact draws of the same number, since those scatter. Until "
    "memory leads, each step evaluates the density twice for each particle, then once, and twice "
    "in every tenth.",
    "SGLD is not the worst here: the modes of this mixture overlap, so that it mixes, and "
    "with decaying steps it comes as near as exact draws.",
)
VERSION = 1
METHODS = {
    "ag-svgd": "AG-SVGD",
    "ag-svgd without memory": "AG-SVGD, no memory",
    "a-svgd": "A-SVGD",
    "svgd": "SVGD",
    "sgld": "SGLD",
    "spos": "SPOS",
    "exact": "exact draws",
}
SIZES = (50, 100, 200, 400)
STEPS = 500

_SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "a-svgd": ("a-svgd", {"annealing_steps": 400}),
    "ag-svgd without memory": ("ag-svgd", {"memory": False}),
}
"""A-SVGD must know when its annealing ends; the others have their defaults."""

DEFAULTS = {"ag-svgd": {"memory": True, "strays": "reborn"}}
"""Defaults of the library by which results kept of others are told apart."""

_MEASURES = {
    "mse_of_mean": "MSE of the mean",
    "mse_of_variance": "MSE of the variance",
    "mmd": "MMD",
}


def jobs(plan: Plan) -> list[Job]:
    """All runs of one method and size are one job: they share compiled code."""
    runs = plan.number("runs", 20, 2)
    sizes = SIZES[:2] if plan.quick else SIZES
    found = []
    for method, title in METHODS.items():
        for size in sizes:
            arguments = {"method": method, "particles": size, "runs": runs, "steps": STEPS}
            name = f"{title}, {size} particles, {runs} runs"
            cost = 2.0 + runs * size / 400 * (2.5 if "ag-svgd" in method else 0.5)
            settings = DEFAULTS.get(method, {})
            job = Job("mog10", name, arguments, _run, VERSION, settings=settings, seconds=cost)
            found.append(job)
    return found


def tables(results: Results) -> list[Table]:
    """Methods and sizes, mean over the runs with its standard error."""
    lines = []
    for method, title in METHODS.items():
        for record in results.done(method=method):
            size = str(record.job.arguments["particles"])
            measured = (with_error(record.figures[m]) for m in (*_MEASURES, "mmd_squared"))
            lines.append((title, size, *measured))
    columns = ("method", "particles", *_MEASURES.values(), "MMD², unbiased")
    note = (
        f"Mean over the runs ± its standard error, after {STEPS} steps from "
        f"N(0, {START_VARIANCE} I). Particles that lie more evenly than random ones score better "
        "than exact draws."
    )
    return [Table("Mog10", columns, tuple(lines), note)]


def words(results: Results) -> list[str]:
    """Who is ahead at the largest size, and at the smallest."""
    sentences = []
    sizes = sorted({r.job.arguments["particles"] for r in results.done()})
    for size in dict.fromkeys((sizes[-1], sizes[0])):
        for measure, title in _MEASURES.items():
            means = {
                METHODS[r.job.arguments["method"]]: float(np.mean(r.figures[measure]))
                for r in results.done(particles=size)
                if r.job.arguments["method"] != "exact"
            }
            ordered = sorted(means, key=means.__getitem__)
            told = ", ".join(f"{name} {number(means[name], 2)}" for name in ordered)
            sentences.append(f"{title} at {size} particles, best first: {told}.")
    others = [results.first(method=m, particles=sizes[-1]) for m in ("a-svgd", "sgld")]
    for method, scheme in (("ag-svgd", "with"), ("ag-svgd without memory", "without")):
        ours = results.first(method=method, particles=sizes[-1])
        if ours is None or not all(others):
            continue
        best = all(
            np.mean(ours.figures["mse_of_variance"]) < np.mean(other.figures["mse_of_variance"])
            for other in others
            if other is not None
        )
        sentences.append(
            f"That AG-SVGD is the best of the paper's three on the variance is "
            f"{'seen' if best else 'not seen'} here at {sizes[-1]} particles {scheme} memory."
        )
    return sentences


def figure(results: Results) -> Figure | None:
    """Three panels over the number of particles, exact draws as the measure of all."""
    made = style.new_figure(11.4, 4.3, headroom=0.3)
    panels = made.subplots(1, len(_MEASURES))
    for axes, (measure, title) in zip(panels, _MEASURES.items(), strict=True):
        for colour, (method, name) in zip(style.SERIES, METHODS.items(), strict=False):
            records = sorted(
                results.done(method=method), key=lambda record: record.job.arguments["particles"]
            )
            if not records:
                continue
            sizes = [record.job.arguments["particles"] for record in records]
            told = [mean_and_error(record.figures[measure]) for record in records]
            means, errors = zip(*told, strict=True)
            exact = method == "exact"
            axes.errorbar(
                sizes,
                means,
                yerr=errors,
                color=style.INK if exact else colour,
                linestyle="--" if exact else "-",
                linewidth=2.4 if method == "ag-svgd" else 1.4,
                marker=None if exact else "o",
                markersize=4,
                label=name,
                zorder=4 if method == "ag-svgd" else 3,
            )
        axes.set(xscale="log", yscale="log", xlabel="particles")
        shown = sorted({record.job.arguments["particles"] for record in results.done()})
        axes.set_xticks(shown, [str(size) for size in shown])
        axes.minorticks_off()
        axes.grid(axis="y")
        style.title(axes, title)
    handles, labels = panels[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="upper right", ncols=len(labels), bbox_to_anchor=(0.99, 0.995))
    runs = max(len(record.figures["mmd"]) for record in results.done())
    made.suptitle(f"Mog10, mean of {runs} runs ± se", x=0.01, y=0.98, ha="left")
    return made


def particle_errors(
    method: str, size: int, runs: int, steps: int, target: AbstractTarget | None = None
) -> dict[str, list[float]]:
    """What is measured on the particles that a method ends with, a value for each run.

    `target` is Mog10 unless another is given, of known mean and spread and with exact draws.
    """
    from salmc.movers import MOVERS
    from salmc.sampling.move import move

    target = find_target("mog10") if target is None else target
    moments = np.asarray(target.mean), np.asarray(target.std)
    exact = ExactSet.of(target, seed=1000)
    measured: dict[str, list[float]] = {name: [] for name in (*_MEASURES, "mmd_squared")}
    for seed in range(runs):
        if method == "exact":
            cloud = exact_draws(target, size, 2000 + seed)
        else:
            name, settings = _SETTINGS.get(method, (method, {}))
            mover = MOVERS[name](target, **settings)
            start = particle_start(size, target.dim, seed)
            draws = move(mover, start, steps, seed, keep=1, progress=False)
            not_interrupted(draws.warnings)
            cloud = draws.positions[:, -1]
        errors = moment_errors(cloud, *moments)
        measured["mse_of_mean"].append(errors.mean_mse)
        measured["mse_of_variance"].append(errors.variance_mse)
        measured["mmd"].append(mmd(cloud, *exact))
        measured["mmd_squared"].append(exact.mmd_squared(cloud))
    return measured


def _run(context: Context) -> Product:
    told = ("method", "particles", "runs", "steps")
    return Product({**particle_errors(*(context[name] for name in told))})
