"""From draws to evidence: choose the points that stand for the target and measure them."""

import dataclasses
from typing import Any, Literal, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc.diagnostics.acceptance import acceptance_rate, density_ratio_acceptance
from salmc.diagnostics.arrays import safe_scale, subset
from salmc.diagnostics.coverage import missed_share
from salmc.diagnostics.density_fit import fit_density
from salmc.diagnostics.ess import ess_bulk, ess_known_moments, ess_per_second, ess_tail
from salmc.diagnostics.evidence import Coordinate, Evidence, Invariance
from salmc.diagnostics.floor import StatisticWithFloor
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.invariance import invariance_test
from salmc.diagnostics.ksd import ksd_squared
from salmc.diagnostics.mmd import median_bandwidth, mmd_floor, mmd_squared
from salmc.diagnostics.modes import mode_weights
from salmc.diagnostics.moments import moment_errors
from salmc.diagnostics.rhat import rhat
from salmc.programs import RUNTIME_ERRORS, failure
from salmc.target import AbstractTarget

DISCREPANCY_POINTS = 2000
"""Points for MMD² and KSD² at most: all pairs of them take about a second."""

INVARIANCE_POINTS = 1000
"""Points moved by Metropolis at most: they show a shift of a tenth of a standard deviation."""

FEWEST_POINTS = 100
"""Points for discrepancies at least, if there are so many, however correlated the chains are."""


@runtime_checkable
class DrawsLike(Protocol):
    """What is read of draws; `salmc.Draws` has it. Properties, as draws are frozen."""

    @property
    def positions(self) -> Any: ...

    @property
    def log_density(self) -> Any: ...

    @property
    def accepted(self) -> Any: ...

    @property
    def seconds(self) -> float: ...

    @property
    def compile_seconds(self) -> float: ...

    @property
    def kind(self) -> Literal["chains", "particles"]: ...

    @property
    def method(self) -> str: ...

    @property
    def target(self) -> Any: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def seen(self) -> Any: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    def chains(self) -> Any: ...


def measure(draws: DrawsLike, seed: int = 0) -> Evidence:
    """Measure everything that can be measured of these draws."""
    chains = np.asarray(draws.chains(), dtype=np.float64)
    kept = slice(np.shape(draws.positions)[1] - chains.shape[1], None)
    log_density = np.asarray(draws.log_density, dtype=np.float64)[:, kept]
    particles = draws.kind == "particles"
    points = chains[:, -1] if particles else chains.reshape(-1, chains.shape[2])
    values = log_density[:, -1] if particles else log_density.reshape(-1)
    finite = np.all(np.isfinite(points), axis=1)
    sample, sample_values = points[finite], values[finite]
    coordinates = _coordinates(draws.names, chains, sample, particles)
    bulk = [row.ess_bulk for row in coordinates if row.ess_bulk is not None]
    # NaN: a coordinate that never moves is worth nothing.
    smallest_bulk = float(np.min(np.nan_to_num(bulk))) if bulk else None
    if particles:
        effective = float(len(sample))
    else:
        effective = 0.0 if smallest_bulk is None else min(smallest_bulk, float(len(sample)))
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
        distinct_particles=distinct_points(sample) if particles and len(sample) > 1 else None,
    )
    evidence = dataclasses.replace(evidence, **_acceptance(draws, log_density, particles))
    if len(sample) < 4:
        return evidence
    generator = np.random.default_rng(seed)
    size = int(np.clip(effective, FEWEST_POINTS, DISCREPANCY_POINTS))
    chosen = subset(len(sample), size, generator)
    if draws.seen is not None:
        missed = missed_share(np.asarray(draws.seen, dtype=np.float64), sample, seed=seed)
        evidence = dataclasses.replace(evidence, missed=missed)
    if draws.target is None:
        figure = gradient_free_ksd_squared(sample[chosen], sample_values[chosen], seed=seed)
        return dataclasses.replace(evidence, ksd=figure, ksd_kind="gradient-free, own reference")
    try:
        found = _without_truth(draws.target, sample[chosen], sample_values[chosen], seed)
    except RUNTIME_ERRORS as error:
        # The draws and what they say of themselves are worth having all the same.
        told = f"The target failed when the draws were compared with it: {failure(error)}"
        return dataclasses.replace(evidence, warnings=(*evidence.warnings, told))
    evidence = dataclasses.replace(evidence, **found)
    return dataclasses.replace(
        evidence, **_against_truth(draws.target, chains, sample, sample[chosen], particles, seed)
    )


def distinct_points(points: np.ndarray) -> int:
    """Number of points that differ by more than about 1e-3 of the spread in some coordinate."""
    cells = np.round((points - np.mean(points, axis=0)) / (1e-3 * safe_scale(points)))
    return len(np.unique(cells, axis=0))


def _coordinates(
    names: tuple[str, ...], chains: np.ndarray, sample: np.ndarray, particles: bool
) -> tuple[Coordinate, ...]:
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


def _nowhere(log_density: np.ndarray) -> tuple[str, ...]:
    """A warning if some draws are where the target is not."""
    share = float(np.mean(log_density == -np.inf))
    if share == 0:
        return ()
    return (f"{share:.2g} of the draws are where the density is zero or NaN.",)


def _acceptance(draws: DrawsLike, log_density: np.ndarray, particles: bool) -> dict[str, Any]:
    if draws.accepted is not None:
        return {"acceptance": acceptance_rate(draws.accepted), "acceptance_kind": "metropolis"}
    if particles or log_density.shape[1] < 2:
        return {}
    ratio = density_ratio_acceptance(log_density)
    return {"acceptance": ratio, "acceptance_kind": "density ratio"}


def _without_truth(
    target: AbstractTarget, points: np.ndarray, values: np.ndarray, seed: int
) -> dict[str, Any]:
    """Discrepancies that need the unnormalised density alone."""
    some = subset(len(points), INVARIANCE_POINTS, np.random.default_rng(seed))
    moved = invariance_test(target, points[some], seed=seed)
    invariance = Invariance(
        moved.p_value,
        moved.effect,
        float(np.max(moved.spread_ratio)),
        float(np.min(moved.spread_ratio)),
    )
    if target.differentiable:
        scores = np.asarray(eqx.filter_jit(target.gradients)(jnp.asarray(points, dtype=float)))
        usable = np.all(np.isfinite(scores), axis=1)
        # A point without a score has zero density or worse: that is told apart in words.
        if np.sum(usable) >= 4:
            ksd = ksd_squared(points[usable], scores[usable].astype(np.float64), seed=seed)
            return {"ksd": ksd, "ksd_kind": "gradient", "invariance": invariance}
    # Points that Metropolis moved are as broad as p asks for, even if the sample collapsed.
    reference = fit_density(moved.moved, seed=seed)
    ksd = gradient_free_ksd_squared(points, values, reference=reference, seed=seed)
    return {"ksd": ksd, "ksd_kind": "gradient-free", "invariance": invariance}


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
        exact = np.asarray(target.sample(jax.random.key(seed), DISCREPANCY_POINTS), np.float64)
        bandwidth = median_bandwidth(exact)
        value = mmd_squared(chosen, exact, bandwidth)
        floor = mmd_floor(exact, len(chosen), len(exact), bandwidth, seed=seed)
        found["mmd"] = StatisticWithFloor(value, floor)
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
