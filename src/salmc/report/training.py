"""The course of training: what was minimised, and whether the kernel got better by it."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from salmc.diagnostics.summary import number
from salmc.report import style
from salmc.report.words import Words
from salmc.sampling.sampler import Sampler

HEADING = "Training"
LOSSES = {
    "kernel_loss": "kernel: all terms",
    "adversarial": "kernel: adversarial",
    "wasserstein": "kernel: W₂",
    "decorrelation": "kernel: decorrelation",
    "likelihood": "−log likelihood",
    "regression": "log-ratio regression",
    "critic_loss": "critic",
}
ACCEPTANCES = {
    "acceptance": "proposals of the kernel",
    "mixture_acceptance": "jumps between modes",
    "latent_acceptance": "local moves of the pool",
    "move_acceptance": "moves of the pool",
}
_RESOLUTION = 1e-3
"""MMD² below it is noise: linear there, logarithmic above."""


def figure(sampler: Sampler) -> Figure | None:
    """Losses at the left; at the right acceptance, or what progress was judged by."""
    history = {name: np.asarray(values, float) for name, values in sampler.history.items()}
    steps = history.get("step")
    if steps is None or not len(steps):
        return None
    result = style.new_figure(9.6, 3.9)
    left, right = result.subplots(1, 2)
    _lines(left, steps, history, LOSSES)
    left.set_ylim(*_limits([history[name] for name in LOSSES if name in history]))
    style.title(left, f"Training of the {sampler.kernel.name} kernel", "losses")
    if "acceptance" in history:
        _lines(right, steps, history, ACCEPTANCES)
        right.set_ylim(0, 1)
        style.title(right, "Acceptance", "share that a Metropolis step takes")
    else:
        _progress(right, steps, history.get("figure", np.full_like(steps, np.nan)), sampler)
    for axes in (left, right):
        axes.set(xlabel="step", xlim=(0, float(steps[-1]) * 1.02))
        axes.grid(axis="y")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best")
    return result


def words(sampler: Sampler, figure: Figure) -> Words:
    """What is seen: where each line begins and ends."""
    told = []
    for axes in figure.axes:
        for line in axes.get_lines():
            values = np.asarray(line.get_ydata(), float)
            values = values[np.isfinite(values)]
            if len(values):
                name = str(line.get_label())
                name = axes.get_title("left") if name.startswith("_") else name
                told.append(f"{name} from {number(values[0])} to {number(values[-1])}")
    steps = int(np.asarray(sampler.history["step"])[-1])
    better = (
        " Higher acceptance means proposals that are closer to independent exact draws."
        if "acceptance" in sampler.history
        else ""
    )
    return Words(
        f"Over {steps:,} steps: {'; '.join(told)}.",
        f"What was minimised, and whether the kernel got better by it.{better}",
    )


def _lines(axes: Axes, steps: np.ndarray, history: dict[str, Any], names: dict[str, str]) -> None:
    marker = "o" if len(steps) <= 60 else None
    for place, (name, label) in enumerate(names.items()):
        if name not in history:
            continue
        # Not every chunk tells every figure.
        known = np.isfinite(history[name])
        axes.plot(
            steps[known],
            history[name][known],
            label=label,
            color=style.SERIES[place],
            linewidth=2.0 if place == 0 else 1.3,
            marker=marker,
            markersize=3,
        )


def _progress(axes: Axes, steps: np.ndarray, values: np.ndarray, sampler: Sampler) -> None:
    """The figure on which training was judged, where that is not acceptance."""
    by_likelihood = sampler.method == "al-mc" and bool(sampler.settings.get("likelihood"))
    axes.plot(steps, values, color=style.SERIES[0], linewidth=1.7, marker="o", markersize=3)
    if by_likelihood:
        style.title(axes, "−log likelihood", "of samples that were held out")
        return
    finite = values[np.isfinite(values)]
    top = 1.3 * np.max(finite, initial=_RESOLUTION)
    if top > 10 * _RESOLUTION:
        axes.set_yscale("symlog", linthresh=_RESOLUTION)
        decades = 10.0 ** np.arange(np.log10(_RESOLUTION), np.floor(np.log10(top)) + 1)
        axes.set_yticks([0.0, *decades])
        axes.minorticks_off()
    axes.set_ylim(min(0.0, 1.3 * float(np.min(finite, initial=0.0))), top)
    style.title(axes, "MMD² to the pool", "what training saw of the target; 0 is best")


def _limits(lines: list[np.ndarray]) -> tuple[float, float]:
    """Around where the lines settle: the first chunk is often far above all others."""
    settled = np.concatenate([line[min(1, len(line) - 1) :] for line in lines] or [np.zeros(1)])
    return style.window(settled, margin=0.15)
