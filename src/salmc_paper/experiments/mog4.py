"""Mog4: where the particles of three methods end on four distant modes of varied width."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from salmc.diagnostics import mode_weights
from salmc.report import scatter, style
from salmc_paper.display.drawing import density_panel
from salmc_paper.display.tables import Table, median, number, percent, with_all
from salmc_paper.harness.jobs import Context, Job, Plan, Product, Results, not_interrupted
from salmc_paper.measures.judging import ExactSet
from salmc_paper.measures.problems import find_target, particle_start

TITLE = "Figure: particles on Mog4"
PAPER = (
    "Four distant modes of varied variance on the plane, particles from N(0, 2.5 I). It finds that "
    "A-SVGD and SGLD “somewhat fail to balance samples from different modes”, whereas AG-SVGD "
    "gives a more accurate approximation. The paper prints no parameters of the mixture: this is "
    "a mixture of ours of the same kind."
)
WHY: tuple[str, ...] = (
    "AG-SVGD as the paper has it (plain) balances the modes no better than its rivals on this "
    "mixture: no particle learns of the weight of a mode that is far away. What makes the "
    "difference here is ours: birth and death between modes, and a memory of weighted draws.",
)
VERSION = 1
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ag-svgd": ("AG-SVGD", "ag-svgd", {}),
    "a-svgd": ("A-SVGD", "a-svgd", {"annealing_steps": 400}),
    "sgld": ("SGLD", "sgld", {}),
    "plain ag-svgd": (
        "AG-SVGD, plain",
        "ag-svgd",
        {"birth_death": 0.0, "ratio_limit": 0.0, "memory": False},
    ),
}
"""The last is eq. 12–14 without what salmc adds: birth and death, the ratio as a ratio, memory."""

_DEFAULTS = {"ag-svgd": {"memory": True, "strays": "reborn"}}
"""Defaults of the library by which results kept of others are told apart."""

PARTICLES, STEPS = 400, 500


def jobs(plan: Plan) -> list[Job]:
    """One for each method and seed."""
    found = []
    for method, (title, _, _) in METHODS.items():
        for run in range(plan.number("runs", 5, 1)):
            arguments = {"method": method, "run": run, "particles": PARTICLES, "steps": STEPS}
            name = f"{title}, run {run}"
            settings = _DEFAULTS.get(method, {})
            job = Job("mog4", name, arguments, _run, VERSION, settings=settings, seconds=3.0)
            found.append(job)
    return found


def tables(results: Results) -> list[Table]:
    """Weights of modes and MMD²."""
    lines = []
    for method, (title, _, _) in METHODS.items():
        records = results.done(method=method)
        if not records:
            continue
        weights = np.mean([record.figures["weights"] for record in records], axis=0)
        errors = [record.figure("weight_error") for record in records]
        values = [record.figure("mmd_squared") for record in records]
        shares = " / ".join(percent(weight, 0) for weight in weights)
        lines.append((title, shares, percent(median(errors), 1), with_all(values, 2)))
    columns = ("method", "weights of the modes, mean", "largest error, median", "MMD²")
    floors = results.values("floor")
    note = (
        f"{PARTICLES} particles, {STEPS} steps. All modes weigh 25 %. MMD²: median, with each run "
        f"in brackets; exact draws are below {number(floors[0]) if floors else '–'} in 95 % of "
        "cases. Plain: without what salmc adds to the paper's AG-SVGD."
    )
    return [Table("Mog4", columns, tuple(lines), note)]


def words(results: Results) -> list[str]:
    """Which method balances the modes best."""
    errors, distances = {}, {}
    for method, (title, _, _) in METHODS.items():
        records = results.done(method=method)
        if records:
            errors[title] = median([record.figure("weight_error") for record in records])
            distances[title] = median([record.figure("mmd_squared") for record in records])
    ordered = sorted(errors, key=errors.__getitem__)
    told = ", ".join(f"{name} {percent(errors[name], 1)}" for name in ordered)
    sentences = [f"Largest error of a mode's weight (median over runs), best first: {told}."]
    three = {name: distances[name] for name in ("AG-SVGD", "A-SVGD", "SGLD") if name in distances}
    if len(three) == 3:
        seen = min(three, key=three.__getitem__) == "AG-SVGD"
        sentences.append(
            f"That AG-SVGD is the most accurate of the three is {'seen' if seen else 'not seen'} "
            f"(MMD² {', '.join(f'{name} {number(v, 2)}' for name, v in three.items())})."
        )
    return sentences


def figure(results: Results) -> Figure | None:
    """The clouds of one run side by side, with the share of each mode."""
    shown = [(m, r) for m in METHODS if (r := results.first(method=m)) is not None]
    if not shown:
        return None
    target = find_target("mog4")
    centres = np.asarray(target.means)  # type: ignore[attr-defined]
    window = ((-7.2, 7.2), (-7.6, 7.0))
    made = style.new_figure(3.3 * len(shown), 3.95, headroom=0.1)
    panels = made.subplots(1, len(shown), squeeze=False, sharex=True, sharey=True)[0]
    for axes, (method, record) in zip(panels, shown, strict=True):
        density_panel(axes, target, *window)
        scatter.points(axes, record.arrays["cloud"], most=PARTICLES, size=9.0)
        for centre, weight in zip(centres, record.figures["weights"], strict=True):
            off = abs(weight - 0.25) > 0.05
            axes.annotate(
                percent(weight, 0),
                xy=centre,
                xytext=(centre[0] * 1.0, centre[1] + math.copysign(2.75, centre[1])),
                ha="center",
                va="center",
                fontsize=9.5,
                fontweight="bold" if off else "normal",
                color=style.BAD if off else style.INK,
                path_effects=[withStroke(linewidth=3, foreground="white")],
                zorder=6,
            )
        axes.set(xlim=window[0], ylim=window[1], xlabel="x₀")
        axes.set_aspect("equal")
        told = f"MMD² {number(record.figure('mmd_squared'), 2)}"
        style.title(
            axes, METHODS[method][0], f"{told} · exact below {number(record.figure('floor'), 1)}"
        )
    panels[0].set_ylabel("x₁")
    return made


def _run(context: Context) -> Product:
    from salmc.movers import MOVERS
    from salmc.sampling.move import move

    target = find_target("mog4")
    _, name, settings = METHODS[context["method"]]
    size, seed = context["particles"], context["run"]
    start = particle_start(size, target.dim, seed)
    draws = move(
        MOVERS[name](target, **settings), start, context["steps"], seed, keep=1, progress=False
    )
    not_interrupted(draws.warnings)
    cloud = draws.positions[:, -1]
    exact = ExactSet.of(target)
    assert target.component_weights is not None
    weights = mode_weights(target.component(jnp.asarray(cloud)), target.component_weights)
    figures: dict[str, Any] = {
        "weights": weights.weights,
        "weight_error": weights.largest_error,
        "mmd_squared": exact.mmd_squared(cloud),
        "floor": exact.floor(size),
        "seconds": draws.seconds,
    }
    return Product(figures, {"cloud": cloud})
