"""The evidence: choose the points that stand for the target, and measure all that can be.

`measure` fills an `Evidence`, which a summary shows and a verdict reads.
"""

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from salmc.diagnostics import against_density
from salmc.diagnostics.arrival import Arrival, arrival
from salmc.diagnostics.chain_statistics import (
    acceptance_rate,
    density_ratio_acceptance,
    ess_known_moments,
    ess_per_second,
)
from salmc.diagnostics.coverage import missed_share
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.invariance import InvarianceTest
from salmc.diagnostics.mmd import median_bandwidth, mmd_floor, mmd_squared
from salmc.diagnostics.odd_chain import OddChain, odd_chain
from salmc.diagnostics.point_sets import StatisticWithFloor, safe_scale, subset
from salmc.diagnostics.spoken import Spoken
from salmc.diagnostics.table_lines import (
    Coordinate,
    coordinates_of,
    smallest_ess_of,
    variables_of,
    worst_rhat,
)
from salmc.diagnostics.trial.repeats import Atom, atom, repeated_share
from salmc.diagnostics.trial.trial import Trial
from salmc.diagnostics.truth_errors import ModeWeights, MomentErrors, mode_weights, moment_errors
from salmc.programs import RUNTIME_ERRORS, failure
from salmc.target import AbstractTarget


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
    inner_rhat: float | None = None
    """R-hat of the worst coordinate of the space that is sampled, where the table is of others: a
    table of the user's variables must not hide a coordinate that none of them shows."""
    inner_ess: float | None = None
    """The smaller of bulk and tail ESS in the worst coordinate of that space."""
    acceptance: float | None = None
    acceptance_kind: Literal["metropolis", "density ratio"] | None = None
    ksd: StatisticWithFloor | None = None
    ksd_kind: (
        Literal["gradient", "gradient-free", "gradient-free, own reference", "edges"] | None
    ) = None
    """"edges" where there is no figure, because the density is zero right beside the draws."""
    mmd: StatisticWithFloor | None = None
    invariance: InvarianceTest | None = None
    moments: MomentErrors | None = None
    modes: ModeWeights | None = None
    missed: float | None = None
    """Share of what the warm-up found that no draw went near; see `missed_share`."""
    trial: Trial | None = None
    """What the density itself says of the draws."""
    spoken: Spoken | None = None
    """How what it says is told in the user's variables."""
    repeated: float = 0.0
    """Share of the draws that are copies of others."""
    atom: Atom | None = None
    """One number that is a coordinate of many draws."""
    arrival: Arrival | None = None
    odd_chain: OddChain | None = None
    """The chain that is the least like the others."""
    distinct_particles: int | None = None
    """Particles that differ by more than 1e-3 of the spread; None for chains."""

    @property
    def of_chains(self) -> list[str]:
        """What chains tell of themselves, beside R-hat and ESS."""
        return [s for told in (self.arrival, self.atom) if told for s in told.sentences()]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the coordinates."""
        return tuple(row.name for row in self.coordinates)

    @property
    def truth_known(self) -> bool:
        """Whether anything here was compared with the truth."""
        return not (self.mmd is None and self.moments is None and self.modes is None)

    @property
    def largest_rhat(self) -> float | None:
        """R-hat of the worst coordinate."""
        return worst_rhat(self.coordinates, self.inner_rhat)

    @property
    def smallest_ess(self) -> float | None:
        """The smaller of bulk and tail ESS in the worst coordinate, all chains together."""
        return smallest_ess_of(self.coordinates, self.inner_ess)


def measure(draws: Any, seed: int = 0, hunt: bool = True) -> Evidence:
    """Measure everything that can be measured of draws, `salmc.Draws` or what has its attributes.

    They belong to a later stage, which is why their class is not named here.

    Args:
        draws: with their log density.
        seed: of all random choices.
        hunt: whether to look for modes that the draws lack.
    """
    chains = np.asarray(draws.chains(), dtype=np.float64)
    kept = slice(np.shape(draws.positions)[1] - chains.shape[1], None)
    log_density = np.asarray(draws.log_density, dtype=np.float64)[:, kept]
    particles = draws.kind == "particles"
    points = chains[:, -1] if particles else chains.reshape(-1, chains.shape[2])
    values = log_density[:, -1] if particles else log_density.reshape(-1)
    finite = np.all(np.isfinite(points), axis=1)
    sample, sample_values = points[finite], values[finite]
    inner = coordinates_of(draws.names, chains, sample, particles)
    coordinates, inner_figures = inner, dict[str, Any]()
    shown = draws.shown
    if shown.own:
        coordinates = tuple(
            dataclasses.replace(row, name=name)
            for row, name in zip(inner, shown.names, strict=True)
        )
    else:
        coordinates = variables_of(shown, finite, chains.shape[1], particles)
        inner_figures = {"inner_rhat": worst_rhat(inner), "inner_ess": smallest_ess_of(inner)}
    bulk = [row.ess_bulk for row in coordinates if row.ess_bulk is not None]
    bulk += [row.ess_bulk for row in inner if row.ess_bulk is not None]
    # NaN: a coordinate that never moves is worth nothing.
    smallest_bulk = float(np.min(np.nan_to_num(bulk))) if bulk else None
    effective = float(len(sample)) if particles else min(smallest_bulk or 0.0, float(len(sample)))
    evidence = Evidence(
        method=draws.method,
        target="unknown" if draws.target is None else draws.target.name,
        kind=draws.kind,
        chains=chains.shape[0],
        draws=chains.shape[1],
        dim=chains.shape[2],
        points=len(points),
        finite_points=len(sample),
        effective_points=effective,
        coordinates=coordinates,
        seconds=float(draws.seconds),
        compile_seconds=float(draws.compile_seconds),
        warnings=(*draws.warnings, *_nowhere(values)),
        ess_per_second=(
            None if smallest_bulk is None else ess_per_second(smallest_bulk, draws.seconds)
        ),
        repeated=0.0 if particles else repeated_share(np.asarray(draws.chains())),
        atom=None if particles else atom(np.asarray(draws.chains())),
        arrival=None if particles else arrival(chains),
        odd_chain=None if particles else odd_chain(chains, log_density),
        distinct_particles=distinct_points(sample) if particles and len(sample) > 1 else None,
        **_acceptance(draws, log_density, particles),
        **inner_figures,
    )
    if len(sample) < 4:
        return evidence
    size = int(
        np.clip(effective, against_density.FEWEST_POINTS, against_density.DISCREPANCY_POINTS)
    )
    chosen = subset(len(sample), size, np.random.default_rng(seed))
    seen = None if draws.seen is None else np.asarray(draws.seen, dtype=np.float64)
    if seen is not None:
        evidence = dataclasses.replace(evidence, missed=missed_share(seen, sample, seed=seed))
    if draws.target is None and not np.any(np.isfinite(sample_values)):
        return evidence  # made from samples alone: there is no density to ask
    if draws.target is None:
        figure = gradient_free_ksd_squared(sample[chosen], sample_values[chosen], seed=seed)
        return dataclasses.replace(evidence, ksd=figure, ksd_kind="gradient-free, own reference")
    spoken = Spoken.of(
        draws.target.unbounded,
        sample,
        draws.names,
        shown,
        sample if shown.own else shown.flat(chains.shape[1], particles)[finite],
        draws.numbers_at,
    )
    try:
        found = against_density.against_density(
            draws.target,
            sample,
            sample_values,
            effective,
            spoken.coordinates,
            seen=seen,
            chains=chains.shape[0] if np.all(finite) else 0,
            particles=particles,
            hunt=hunt,
            seed=seed,
        )
    except RUNTIME_ERRORS as error:
        # The draws and what they say of themselves are worth having all the same.
        told = f"The target failed when the draws were compared with it: {failure(error)}"
        return dataclasses.replace(evidence, warnings=(*evidence.warnings, told))
    found |= _against_truth(draws.target, chains, sample, sample[chosen], particles, seed)
    return dataclasses.replace(evidence, spoken=spoken, **found)


def distinct_points(points: np.ndarray) -> int:
    """Number of points that differ by more than about 1e-3 of the spread in some coordinate."""
    cells = np.round((points - np.mean(points, axis=0)) / (1e-3 * safe_scale(points)))
    return len(np.unique(cells, axis=0))


def _nowhere(log_density: np.ndarray) -> tuple[str, ...]:
    """A warning if some draws are where the target is not."""
    share = float(np.mean(log_density == -np.inf))
    if share == 0:
        return ()
    return (f"{share:.2g} of the draws are where the density is zero or NaN.",)


def _acceptance(draws: Any, log_density: np.ndarray, particles: bool) -> dict[str, Any]:
    if draws.accepted is not None:
        return {"acceptance": acceptance_rate(draws.accepted), "acceptance_kind": "metropolis"}
    if particles or log_density.shape[1] < 2 or not np.any(np.isfinite(log_density)):
        return {}
    ratio = density_ratio_acceptance(log_density)
    return {"acceptance": ratio, "acceptance_kind": "density ratio"}


def _mmd(target: AbstractTarget, sample: np.ndarray, seed: int) -> StatisticWithFloor:
    """MMD² to exact draws, made by a seed of their own."""
    drawn = target.sample(jax.random.key(seed), against_density.DISCREPANCY_POINTS)
    exact = np.asarray(drawn, np.float64)
    bandwidth = median_bandwidth(exact)
    floor = mmd_floor(exact, len(sample), len(exact), bandwidth, seed=seed)
    return StatisticWithFloor(mmd_squared(sample, exact, bandwidth), floor)


def _against_truth(
    target: AbstractTarget,
    chains: np.ndarray,
    sample: np.ndarray,
    chosen: np.ndarray,
    particles: bool,
    seed: int,
) -> dict[str, Any]:
    """Whatever the target knows of its truth, for showing only."""
    found: dict[str, Any] = {}
    if target.can_sample:
        found["mmd"] = _mmd(target, chosen, seed)
        if not found["mmd"].ratio <= 1.0:
            # Some exact draws lie unevenly among the modes, and next to them others look far off.
            other = subset(len(sample), len(chosen), np.random.default_rng(seed + 1))
            again = _mmd(target, sample[other], seed + 1)
            found["mmd"] = min(found["mmd"], again, key=lambda mmd: mmd.ratio)
    if target.statistic_moments is not None:
        mean, std = (np.asarray(moment, np.float64) for moment in target.statistic_moments)
        quantities = np.asarray(target.statistic(jnp.asarray(sample, dtype=float)), np.float64)
        found["moments"] = moment_errors(quantities, mean, std)
        if not particles and len(quantities) == chains.shape[0] * chains.shape[1]:
            paths = quantities.reshape(*chains.shape[:2], -1)
            found["ess_known_moments"] = float(np.min(ess_known_moments(paths, mean, std)))
    if target.component_weights is not None:
        labels = np.asarray(target.component(jnp.asarray(sample, dtype=float)))
        found["modes"] = mode_weights(labels, np.asarray(target.component_weights, np.float64))
    return found
