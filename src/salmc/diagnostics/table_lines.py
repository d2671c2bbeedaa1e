"""Lines of the table: one for each coordinate, or for each number of the user's variables."""

import dataclasses
from typing import Any

import numpy as np

from salmc.diagnostics.chain_statistics import ess_bulk, ess_tail, rhat


@dataclasses.dataclass(frozen=True)
class Coordinate:
    """One line of the table. ESS, R-hat and Monte Carlo error are None where not defined."""

    name: str
    mean: float
    sd: float
    low: float
    """5 % quantile."""
    high: float
    """95 % quantile."""
    monte_carlo_error: float | None = None
    """sd/√ESS: the error of `mean` that comes from having few effective draws."""
    ess_bulk: float | None = None
    ess_tail: float | None = None
    rhat: float | None = None


def coordinates_of(
    names: tuple[str, ...], chains: np.ndarray, sample: np.ndarray, particles: bool
) -> tuple[Coordinate, ...]:
    """From (chain, draw, coordinate) chains and the points (n, coordinate) that stand for all."""
    nothing: list[Any] = [None] * len(names)
    bulk, tail, agreement, error = nothing, nothing, nothing, nothing
    if not len(sample):
        nan = float("nan")
        return tuple(Coordinate(name, nan, nan, nan, nan) for name in names)
    sd = np.std(sample, axis=0)
    if not particles and chains.shape[1] >= 4 and np.all(np.isfinite(chains)):
        bulk, tail, agreement = (f(chains).tolist() for f in (ess_bulk, ess_tail, rhat))
        with np.errstate(divide="ignore", invalid="ignore"):
            error = (sd / np.sqrt(np.asarray(bulk))).tolist()
    low, high = np.quantile(sample, [0.05, 0.95], axis=0).tolist()
    columns = (np.mean(sample, axis=0).tolist(), sd.tolist(), low, high)
    rows = zip(names, *columns, error, bulk, tail, agreement, strict=True)
    return tuple(Coordinate(*row) for row in rows)


def variables_of(
    shown: Any, finite: np.ndarray, kept: int, particles: bool
) -> tuple[Coordinate, ...]:
    """Lines for the user's variables, where they are not the coordinates themselves."""
    chains = np.asarray(shown.values, np.float64)[:, -min(kept, shown.values.shape[1]) :]
    rows = coordinates_of(shown.names, chains, shown.flat(kept, particles)[finite], particles)
    # What is the same at every draw, as a diagonal of ones, has nothing to mix.
    return tuple(
        Coordinate(row.name, row.mean, row.sd, row.low, row.high) if fixed else row
        for row, fixed in zip(rows, shown.fixed, strict=True)
    )


def worst_rhat(rows: tuple[Coordinate, ...], *others: float | None) -> float | None:
    """The largest R-hat; NaN is worse than any."""
    values = [value for value in (*(row.rhat for row in rows), *others) if value is not None]
    return max(values, key=lambda value: float("inf") if value != value else value, default=None)


def smallest_ess_of(rows: tuple[Coordinate, ...], *others: float | None) -> float | None:
    """The smaller of bulk and tail ESS; NaN is worse than any."""
    values = [*(ess for row in rows for ess in (row.ess_bulk, row.ess_tail)), *others]
    known = [ess for ess in values if ess is not None]
    return min(known, key=lambda value: -1.0 if value != value else value, default=None)
