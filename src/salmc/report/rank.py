"""Ranks: does each chain have its share of the low, the middle and the high draws?

All draws are ranked together. Were the chains alike, the ranks of each would be uniform; drawn is
how far their distribution function is from that of the uniform (Säilynoja, Bürkner & Vehtari
2022), which shows a chain that sits too low or too high, too narrow or too wide.
"""

from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import rankdata

from salmc.diagnostics.chain_statistics import ess_bulk
from salmc.report import style
from salmc.report.words import Words
from salmc.sampling.draws import Draws

HEADING = "Ranks"
MOST_QUANTITIES = 6
MOST_CHAINS = 64
FEWEST_DRAWS = 10
GRID = np.linspace(0.0, 1.0, 101)


def figure(draws: Draws) -> Figure | None:
    """A panel for each of the first few variables, a line for each chain."""
    quantities, of = _quantities(draws)
    if not quantities:
        return None
    count, chains = len(quantities), len(quantities[0].lines)
    columns = min(count, 3)
    rows = -(-count // columns)
    result = style.new_figure(max(3.0 * columns, 5.4), 2.35 * rows + 1.0)
    panels = result.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for quantity, axes in zip(quantities, panels.ravel(), strict=False):
        axes.axhspan(-quantity.band, quantity.band, color=style.GOOD, alpha=0.13, linewidth=0)
        axes.axhline(0, color=style.FAINT_INK, linewidth=0.8)
        for line, apart in zip(quantity.lines, quantity.outside, strict=True):
            colour = style.BAD if apart else style.SERIES[0]
            axes.plot(GRID, line, color=colour, linewidth=0.9, alpha=0.9 if apart else 0.5)
        axes.set_title(style.short(quantity.name, 26), fontsize=9.5)
        axes.grid(axis="y")
    for axes in panels.ravel()[count:]:
        axes.remove()
    edge = max(max(q.band, float(np.max(np.abs(q.lines)))) for q in quantities)
    panels[0, 0].set(xlim=(0, 1), ylim=(-1.15 * edge, 1.15 * edge))
    result.supxlabel("rank, as a share of all draws", fontsize=9.5)
    result.supylabel("chain − all chains", fontsize=9.5)
    more = f", first {count} of {of} numbers" if of > count else ""
    name = "draws" if draws.target is None else draws.target.name
    result.suptitle(f"Ranks of {chains} chains on {name}{more}", x=0.02, ha="left")
    return result


class Quantity(NamedTuple):
    """A number of the user's, and how far the ranks of each chain are from uniform."""

    name: str
    lines: np.ndarray
    band: float

    @property
    def outside(self) -> np.ndarray:
        """(chain,): whether chance does not explain it."""
        return np.max(np.abs(self.lines), axis=1) > self.band


def _quantities(draws: Draws) -> tuple[list[Quantity], int]:
    """The first few, and how many there are; none where ranks say nothing."""
    kept = draws.chains().shape[1]
    if draws.kind != "chains" or len(draws.positions) < 2 or kept < FEWEST_DRAWS:
        return [], 0
    shown = draws.shown.moving()
    values = shown.values[:MOST_CHAINS, -kept:, :MOST_QUANTITIES]
    if not np.all(np.isfinite(values)):
        return [], 0
    found = [
        Quantity(name, departures(values[:, :, i]), band(values[:, :, i]))
        for i, name in enumerate(shown.names[:MOST_QUANTITIES])
    ]
    return found, len(shown.names)


def departures(values: np.ndarray) -> np.ndarray:
    """(chain, grid): distribution function of each chain's ranks, less that of the uniform."""
    chains, draws = values.shape
    ranks = (rankdata(values.ravel()).reshape(chains, draws) - 0.5) / values.size
    return np.array([np.searchsorted(np.sort(row), GRID, "right") / draws - GRID for row in ranks])


def band(values: np.ndarray) -> float:
    """What chance explains, for all chains together: 95 %, by Dvoretzky, Kiefer and Wolfowitz.

    Draws of a chain depend on one another, so its effective draws count; those of chains around
    their own means, as chains that disagree would excuse themselves otherwise.
    """
    chains, draws = values.shape
    around = np.asarray(values, float) - np.mean(values, axis=1, keepdims=True)
    effective = float(ess_bulk(around[..., None])[0]) / chains
    effective = np.clip(effective, 1.0, draws) if np.isfinite(effective) else 1.0
    return float(np.sqrt(np.log(2.0 * chains / 0.05) / (2.0 * effective)))


def words(draws: Draws, figure: Figure) -> Words:
    """What is seen."""
    del figure
    quantities, _ = _quantities(draws)
    lines = sum(len(quantity.lines) for quantity in quantities)
    outside = sum(int(np.sum(quantity.outside)) for quantity in quantities)
    found = f"{outside} of {lines} lines do not stay" if outside else f"All {lines} lines stay"
    alt = f"One line for each chain and number. {found} within the band that chance explains."
    return Words(
        alt,
        "Each line is a chain: how many of its draws are below a rank among all draws, less what "
        "it would be if all chains were alike. A line outside the green band (95 % for all "
        "chains together, by their effective draws) is red: that chain differs "
        "from the rest. Chains that are all wrong in the same way stay inside.",
    )
