"""Convergence on Mog6: autocorrelation, and the ratio p(x′)/p(x) of consecutive draws."""

import math

import numpy as np
from matplotlib.figure import Figure

from salmc.report import style
from salmc_paper.display.tables import Table, number
from salmc_paper.experiments.six_modes import LAGS, chains_jobs, shown
from salmc_paper.harness.jobs import Job, Plan, Results

TITLE = "Figure: convergence on Mog6"
PAPER = (
    "Autocorrelation, and the acceptance rate min{1, p(x′)/p(x)} of consecutive draws without a "
    "Metropolis-Hastings step. It finds low autocorrelation and high acceptance rates."
)
WHY: tuple[str, ...] = ()
_WINDOW = 20
_SHOWN = 400
_LAGS = (1, 5, 20)


def jobs(plan: Plan) -> list[Job]:
    """The same chains as the figure of draws."""
    return chains_jobs(plan)


def tables(results: Results) -> list[Table]:
    """Autocorrelation at a few lags, and the mean ratio."""
    lines = []
    for line, record in shown(results):
        worst = _worst(record.arrays["autocorrelation"])
        lines.append(
            (
                line.title,
                *(f"{worst[lag]:.3f}" for lag in _LAGS),
                number(record.figure("density_ratio_acceptance")),
                number(record.figure("acceptance")),
                number(record.figure("mmd_squared"), 2),
                number(record.figure("fine_mmd_squared"), 2),
            )
        )
    columns: tuple[str, ...] = ("sampler", *(f"lag {lag}" for lag in _LAGS))
    columns += ("min{1, p(x′)/p(x)}", "accepted")
    columns += ("MMD²", "fine MMD²")
    note = (
        "Autocorrelation with the true moments, of the coordinate where it is larger. A sampler "
        "whose draws are independent and exact has the ratio of the last row: a higher one is no "
        "merit. Accepted: of the Metropolis-Hastings step where there is one. The paper prints no "
        "numbers here."
    )
    return [Table("Convergence", columns, tuple(lines), note)]


def words(results: Results) -> list[str]:
    """Autocorrelation at lag 1 and the ratio, beside exact draws."""
    found = {line.title: record for line, record in shown(results)}
    first = {t: _worst(r.arrays["autocorrelation"])[1] for t, r in found.items()}
    ratios = {t: r.figure("density_ratio_acceptance") for t, r in found.items()}
    return [
        "Autocorrelation at lag 1: " + ", ".join(f"{t} {v:.3f}" for t, v in first.items()) + ".",
        "Mean of min{1, p(x′)/p(x)}: "
        + ", ".join(f"{t} {v:.3f}" for t, v in ratios.items() if math.isfinite(v))
        + ".",
    ]


def figure(results: Results) -> Figure | None:
    """Autocorrelation of both coordinates, and the ratio over the first draws."""
    made = style.new_figure(12.2, 4.3, headroom=0.35)
    first, second, third = made.subplots(1, 3)
    for line, record in shown(results):
        exact = line.method == "exact"
        look = {
            "color": line.colour,
            "linestyle": "--" if exact else "-",
            "linewidth": 2.4 if exact else 1.7,
            "zorder": 5 if exact else 3,
        }
        values = record.arrays["autocorrelation"]
        for axes, index in ((first, 0), (second, 1)):
            axes.plot(np.arange(len(values)), values[:, index], label=line.title, **look)
        if not line.metropolis:
            ratio = record.arrays["ratio"][:_SHOWN]
            window = min(_WINDOW, len(ratio))
            smooth = np.convolve(ratio, np.ones(window) / window, mode="valid")
            third.plot(np.arange(len(smooth)) + window, smooth, **look)
    for axes, name in ((first, "x₀"), (second, "x₁")):
        axes.axhline(0, color=style.GRID, linewidth=1)
        axes.set(xlabel="lag", ylim=(-0.1, 1.05), xlim=(0, LAGS))
        style.title(axes, f"Autocorrelation of {name}", "with the true mean and variance")
    third.set(xlabel="draw", ylim=(0, 1.02))
    third.grid(axis="y")
    style.title(third, "min{1, p(x′)/p(x)}", f"no MH · mean over chains and {_WINDOW} draws")
    handles, labels = first.get_legend_handles_labels()
    made.legend(handles, labels, loc="upper center", ncols=len(labels), bbox_to_anchor=(0.5, 0.998))
    return made


def _worst(values: np.ndarray) -> np.ndarray:
    """Of the coordinate with the larger sum."""
    return values[:, int(np.argmax(values.sum(axis=0)))]
