"""Autocorrelation of the chains: how many steps until a draw has forgotten where it was."""

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from salmc.diagnostics.chain_statistics import autocorrelation
from salmc.report import style
from salmc.report.words import Words
from salmc.sampling.draws import Draws

HEADING = "Autocorrelation"
MOST_QUANTITIES = 6
FORGOTTEN = 0.05


def figure(draws: Draws) -> Figure | None:
    """One line for each judged quantity; None for particles, whose path is not a sample."""
    chains = draws.chains()
    if draws.kind != "chains" or chains.shape[1] < 10:
        return None
    shown = draws.shown.moving()
    quantities, names, moments = shown.values[:, -chains.shape[1] :], shown.names, None
    if draws.target is not None and shown.own:
        flat = np.asarray(draws.target.statistic(jnp.asarray(chains.reshape(-1, draws.dim))))
        quantities = flat.reshape(*chains.shape[:2], -1)
        moments = draws.target.statistic_moments
        if quantities.shape[2] != draws.dim:
            names = tuple(f"statistic {i + 1}" for i in range(quantities.shape[2]))
    mean, std = (None, None) if moments is None else moments
    correlation = autocorrelation(quantities, mean, std)

    # Far lags have few pairs each and show noise only.
    last = _last_lag(correlation)
    stride = int(np.median(np.diff(np.asarray(draws.steps))))
    lags = np.arange(last + 1) * stride
    result = style.new_figure(7.2, 4.2)
    axes = result.add_subplot()
    axes.axhspan(-FORGOTTEN, FORGOTTEN, color="#eef1f4", linewidth=0)
    axes.axhline(0, color=style.FAINT_INK, linewidth=0.8)
    count = min(quantities.shape[2], MOST_QUANTITIES)
    for index in range(count):
        axes.plot(
            lags,
            correlation[: last + 1, index],
            color=style.SERIES[index % len(style.SERIES)],
            marker="o" if last <= 40 else None,
            markersize=3,
            linewidth=1.5,
            label=style.short(names[index], 20),
        )
    top = max(1.02, 1.05 * float(np.nanmax(correlation[: last + 1, :count], initial=1.0)))
    axes.set(xlabel="lag in steps", ylabel="autocorrelation", xlim=(0, lags[-1]), ylim=(-0.25, top))
    axes.grid(axis="y")
    axes.legend(loc="best")  # within: outside, it would cover the title
    name = "draws" if draws.target is None else draws.target.name
    more = f" · first {count} of {quantities.shape[2]}" if quantities.shape[2] > count else ""
    known = "true mean and sd" if moments is not None else "mean and sd of all chains"
    style.title(
        axes,
        f"Autocorrelation of {draws.method} on {name}",
        f"averaged over {len(chains):,} chains, by the {known}{more} · grey: |ρ| < {FORGOTTEN}",
    )
    return result


def words(draws: Draws, figure: Figure) -> Words:
    """What is seen: by which lag each line has fallen."""
    del draws
    told = []
    for line in figure.axes[0].get_lines():
        if str(line.get_label()).startswith("_"):
            continue
        lags, values = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        below = np.flatnonzero(values < FORGOTTEN)
        found = (
            f"from lag {lags[below[0]]:.0f}" if below.size else f"at no lag up to {lags[-1]:.0f}"
        )
        told.append(f"{line.get_label()} {found}")
    return Words(
        f"Autocorrelation is below {FORGOTTEN} for {', '.join(told)}.",
        "How fast a chain forgets where it was. It does not see bias: a wrong sampler can forget "
        "quickly.",
    )


def _last_lag(correlation: np.ndarray) -> int:
    draws = len(correlation)
    forgotten = np.all(np.nan_to_num(correlation) < FORGOTTEN, axis=1)
    first = int(np.argmax(forgotten)) if forgotten.any() else draws
    return max(5, min(int(1.6 * first) + 5, draws // 2))
