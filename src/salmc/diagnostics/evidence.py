"""The numbers that a summary shows and a verdict reads. Data only; `measure` fills it."""

import dataclasses
from typing import Literal

from salmc.diagnostics.floor import StatisticWithFloor
from salmc.diagnostics.modes import ModeWeights
from salmc.diagnostics.moments import MomentErrors


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


@dataclasses.dataclass(frozen=True)
class Invariance:
    """What exact Metropolis steps did to the sample; see `invariance_test`."""

    p_value: float
    effect: float
    largest_spread_ratio: float
    smallest_spread_ratio: float


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """All that was measured. None stands for "not known here"."""

    method: str
    target: str
    kind: Literal["chains", "particles"]
    chains: int
    draws: int
    dim: int
    points: int
    """Points that stand for the target."""
    finite_points: int
    effective_points: float
    """What the points are worth: the smallest bulk ESS, or the number of particles."""
    coordinates: tuple[Coordinate, ...]
    seconds: float
    compile_seconds: float
    warnings: tuple[str, ...]
    ess_known_moments: float | None = None
    """Smallest ESS per chain by the paper's estimator, where the true moments are known."""
    ess_per_second: float | None = None
    """Smallest bulk ESS of all chains together, per second of sampling."""
    acceptance: float | None = None
    acceptance_kind: Literal["metropolis", "density ratio"] | None = None
    ksd: StatisticWithFloor | None = None
    ksd_kind: Literal["gradient", "gradient-free", "gradient-free, own reference"] | None = None
    mmd: StatisticWithFloor | None = None
    invariance: Invariance | None = None
    moments: MomentErrors | None = None
    modes: ModeWeights | None = None
    missed: float | None = None
    """Share of what the warm-up found that no draw went near; see `missed_share`."""
    distinct_particles: int | None = None
    """Particles that differ by more than 1e-3 of the spread; None for chains."""

    @property
    def truth_known(self) -> bool:
        """Whether anything here was compared with the truth."""
        return not (self.mmd is None and self.moments is None and self.modes is None)

    @property
    def largest_rhat(self) -> float | None:
        """R-hat of the worst coordinate."""
        values = [row.rhat for row in self.coordinates if row.rhat is not None]
        return max(
            values, key=lambda value: float("inf") if value != value else value, default=None
        )

    @property
    def smallest_ess(self) -> float | None:
        """The smaller of bulk and tail ESS in the worst coordinate, all chains together."""
        values = [ess for row in self.coordinates for ess in (row.ess_bulk, row.ess_tail)]
        known = [ess for ess in values if ess is not None]
        return min(known, key=lambda value: -1.0 if value != value else value, default=None)
