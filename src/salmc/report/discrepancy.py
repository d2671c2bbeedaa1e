"""How far the cloud is from the target after each kept step, beside what exact draws would score.

MMD² where the target has exact draws; else a Stein discrepancy, which needs none.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from salmc.diagnostics.density_fit import fit_density
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.ksd import ksd_squared
from salmc.diagnostics.mmd import median_bandwidth, mmd_floor, mmd_squared
from salmc.diagnostics.point_sets import StatisticWithFloor, safe_scale
from salmc.diagnostics.summary import number
from salmc.report import style
from salmc.report.words import Words, legend_labels
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget

HEADING = "Distance from the target"
MOST_STEPS = 40
MOST_POINTS = 500
EXACT_POINTS = 1000


@dataclasses.dataclass(frozen=True)
class Path:
    """A discrepancy after some of the steps, and the 95 % quantile for exact draws."""

    steps: np.ndarray
    values: np.ndarray
    floor: float
    label: str
    explanation: str


def figure(draws: Draws) -> Figure | None:
    """The discrepancy over steps; None where there are too few points or steps to tell."""
    path = discrepancy_path(draws)
    if path is None:
        return None
    result = style.new_figure(7.2, 4.2)
    axes = result.add_subplot()
    finite = path.values[np.isfinite(path.values)]
    known = path.floor > 0
    floor = path.floor if known else max(float(np.max(np.abs(finite))) / 100, 1e-9)
    axes.plot(path.steps, path.values, color=style.TRUTH, linewidth=1.7, marker="o", markersize=2.8)
    top = max(float(np.max(finite)) * 1.8, 4 * floor)
    bottom = min(0.0, 1.2 * float(np.min(finite)))
    axes.set(xlabel="step", ylabel=path.label, ylim=(bottom, top), xlim=(0, path.steps[-1] * 1.01))
    if top > 10 * floor:
        # Unbiased estimates fall below zero at the floor: linear there, logarithmic above.
        axes.set_yscale("symlog", linthresh=floor, linscale=0.6)
        decades = 10.0 ** np.arange(np.ceil(np.log10(floor)), np.floor(np.log10(top)) + 1)
        axes.set_yticks([0.0, *decades])
        axes.minorticks_off()
    else:
        axes.yaxis.set_major_formatter("{x:.2g}")
    axes.grid(axis="y")
    if known:
        axes.axhspan(-floor, floor, color=style.GOOD, alpha=0.13, linewidth=0)
        band = Patch(color=style.GOOD, alpha=0.25, label="what exact draws score")
        axes.legend(
            handles=[band], loc="lower right", bbox_to_anchor=(1.0, 1.07), borderaxespad=0.2
        )
    name = "" if draws.target is None else f" on {draws.target.name}"
    heading = f"{path.label[0].upper()}{path.label[1:]} of {draws.method}{name}"
    style.title(axes, heading, path.explanation)
    return result


def words(draws: Draws, figure: Figure) -> Words:
    """What is seen: where the line begins and ends, beside the band."""
    axes = figure.axes[0]
    values = np.asarray(axes.get_lines()[0].get_ydata(), float)
    finite = values[np.isfinite(values)]
    label, who = axes.get_ylabel(), "particles" if draws.kind == "particles" else "chains"
    alt = f"{label} begins at {number(float(finite[0]))} and ends at {number(float(finite[-1]))}."
    known = "what exact draws score" in legend_labels(figure)
    band = " Within the shaded band it cannot be told from exact draws." if known else ""
    caption = f"{label} after each step, over all {who} of that step.{band}"
    return Words(alt, f"{caption[0].upper()}{caption[1:]}")


def discrepancy_path(draws: Draws) -> Path | None:
    """The discrepancy of the cloud at some of the kept steps."""
    if draws.target is None or len(draws.positions) < 20 or draws.positions.shape[1] < 2:
        return None
    chosen = np.unique(np.linspace(0, draws.positions.shape[1] - 1, MOST_STEPS).round().astype(int))
    clouds = style.thin(draws.positions, MOST_POINTS)[:, chosen]
    if not np.all(np.isfinite(clouds)):
        return None
    log_density = style.thin(np.asarray(draws.evaluated().log_density), MOST_POINTS)[:, chosen]
    if draws.target.can_sample:
        values, floor, label, told = _by_exact_draws(draws.target, clouds)
    elif draws.target.differentiable:
        values, floor, label, told = _by_gradient(draws.target, clouds)
    else:
        values, floor, label, told = _by_density(clouds, log_density)
    if not np.any(np.isfinite(values)):
        return None
    steps = np.asarray(draws.steps)[chosen]
    return Path(steps, np.array(values), floor, label, f"{len(clouds):,} points {told}")


Judged = tuple[list[float], float, str, str]


def _by_exact_draws(target: AbstractTarget, clouds: np.ndarray) -> Judged:
    exact = np.asarray(target.sample(jax.random.key(1), EXACT_POINTS))
    bandwidth = median_bandwidth(exact)
    values = [mmd_squared(clouds[:, i], exact, bandwidth) for i in range(clouds.shape[1])]
    floor = mmd_floor(exact, len(clouds), len(exact), bandwidth)
    return values, floor, "MMD²", f"of each step against {len(exact):,} exact draws"


def _by_gradient(target: AbstractTarget, clouds: np.ndarray) -> Judged:
    scale = safe_scale(np.asarray(clouds[:, -1], dtype=float))

    def judge(i: int, bootstrap: int) -> StatisticWithFloor:
        scores = np.asarray(target.gradients(jnp.asarray(clouds[:, i])))
        if not np.all(np.isfinite(scores)):
            return StatisticWithFloor(float("nan"), float("nan"))
        return ksd_squared(clouds[:, i], scores, scale=scale, bootstrap=bootstrap)

    told = "of each step, by the gradient · blind to weights of far modes"
    return *_of_each_step(judge, clouds.shape[1]), "KSD²", told


def _by_density(clouds: np.ndarray, log_density: np.ndarray) -> Judged:
    # One reference for all steps, fitted wherever any of them went: see `gradient_free_ksd`.
    everywhere = style.thin(clouds.reshape(-1, clouds.shape[-1]), 1000)
    reference = fit_density(everywhere, style.thin(log_density.reshape(-1), 1000))

    def judge(i: int, bootstrap: int) -> StatisticWithFloor:
        return gradient_free_ksd_squared(
            clouds[:, i], log_density[:, i], reference=reference, bootstrap=bootstrap
        )

    told = "of each step, by the density alone · blind to places no step has seen"
    return *_of_each_step(judge, clouds.shape[1]), "gradient-free KSD²", told


def _of_each_step(
    judge: Callable[[int, int], StatisticWithFloor], count: int
) -> tuple[list[float], float]:
    """The value of each step, and the floor, which only the last one is asked for."""
    judged = [judge(i, 300 if i == count - 1 else 0) for i in range(count)]
    return [result.value for result in judged], judged[-1].floor
