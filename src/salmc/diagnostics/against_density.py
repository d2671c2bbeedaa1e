"""Draws against the unnormalised density: figures of bias to show, and the trial that decides."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from salmc.diagnostics.density_fit import fit_density
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.invariance import invariance_test
from salmc.diagnostics.ksd import ksd_squared
from salmc.diagnostics.point_sets import Cloud, Numbers, subset
from salmc.diagnostics.trial.frame import spaced
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.trial import Trial, put_on_trial
from salmc.target import AbstractTarget

DISCREPANCY_POINTS = 2000
"""Cloud for MMD² and KSD² at most: all pairs of them take about a second."""

INVARIANCE_POINTS = 1000
"""Cloud moved by Metropolis at most: they show a shift of a tenth of a standard deviation."""

FEWEST_POINTS = 100
"""Cloud for discrepancies at least, if there are so many, however correlated the chains are."""

EDGES = 0.01
"""Share of Metropolis proposals of zero density from which on the support has edges. Stein's
identity does not hold there, so that its discrepancy would find fault with exact draws."""


def against_density(
    target: AbstractTarget,
    sample: Cloud,
    values: Numbers,
    effective: float,
    names: Sequence[str],
    *,
    seen: Cloud | None,
    chains: int,
    particles: bool,
    hunt: bool,
    seed: int,
) -> dict[str, Any]:
    """Fields of an `Evidence`, from the density alone.

    Args:
        target: as the user knows it.
        sample: (n, dim), finite draws, chain after chain.
        values: (n,), log p as it came with them.
        effective: how many independent draws they are worth.
        names: of the coordinates.
        seen: what training had found.
        chains: how many chains of one length they are; 0 where that is not known.
        particles: whether they are particles, which count as independent.
        hunt: whether to look for modes that they lack.
        seed: of all random choices.
    """
    # Without bounds there are no edges that we know of.
    inner = target.unbounded
    points, values = _inward(inner, sample, values)
    some_seen = None if seen is None else _inward(inner, seen, np.zeros(len(seen)))[0]
    trial = put_on_trial(
        inner,
        points,
        values,
        effective,
        names,
        seen=some_seen,
        chains=chains,
        independent=particles,
        search=hunt,
        seed=seed,
    )
    generator = np.random.default_rng(seed)
    worth = effective if particles else effective / 2
    size = int(np.clip(worth, FEWEST_POINTS, DISCREPANCY_POINTS))
    chosen = generator.permutation(spaced(len(points), size, generator))
    figures = _figures(inner, points[chosen], values[chosen], trial, seed)
    return {"trial": trial, **figures}


def _inward(inner: AbstractTarget, sample: Cloud, values: Numbers) -> tuple[Cloud, Numbers]:
    if inner.outer is inner:
        return sample, values
    points = np.asarray(inner.inward(jnp.asarray(sample, dtype=float)), np.float64)
    _, less = inner.outward(jnp.asarray(points, dtype=float), jnp.zeros(len(points)))
    return points, values - np.asarray(less, np.float64)


def _figures(
    target: AbstractTarget, points: Cloud, values: Numbers, trial: Trial | None, seed: int
) -> dict[str, Any]:
    """The change under Metropolis steps, and a Stein discrepancy beside its floor."""
    most = INVARIANCE_POINTS if trial is None else round(INVARIANCE_POINTS * max(trial.effort, 0.2))
    some = subset(len(points), most, np.random.default_rng(seed))
    moved = invariance_test(target, points[some], seed=seed)
    if moved.outside > EDGES:
        return {"invariance": moved, "ksd_kind": "edges"}
    if target.differentiable:
        scores = HostDensity(target, points[0]).gradients(points)
        usable = np.all(np.isfinite(scores), axis=1)
        # A point without a score has zero density or worse: that is told apart in words.
        if np.sum(usable) >= 4:
            ksd = ksd_squared(points[usable], scores[usable], seed=seed)
            return {"ksd": ksd, "ksd_kind": "gradient", "invariance": moved}
    # Cloud that Metropolis moved are as broad as p asks for, even if the sample collapsed.
    reference = fit_density(moved.moved, seed=seed)
    ksd = gradient_free_ksd_squared(points, values, reference=reference, seed=seed)
    return {"ksd": ksd, "ksd_kind": "gradient-free", "invariance": moved}
