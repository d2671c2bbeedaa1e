"""The pool: particles near the target, which stand for real samples while a kernel learns.

By default tempered SMC fills it, from a Gaussian that covers the target (`movers.cover`), until
β = 1 and two more rounds. Where its particles then press against that Gaussian, it did not cover:
they are tempered again from a wider one, as long as that finds no less mass. The runs are merged by
their estimates of log ∫ p, so that what one of them has missed is there if another has it.

Any other mover takes some steps from the target's location and scale; copies of its particles fill
the pool, and exact moves by differential evolution take the copies apart and the mover's bias off.

No exact draws and no known moments of the target are ever looked at.
"""

import dataclasses
import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.answers.hunted import with_missed_modes
from salmc.bounds import Bounds, Unbounded
from salmc.diagnostics.straightening.search import find_straight, shows_funnel
from salmc.diagnostics.trial.funnels import as_wide
from salmc.errors import TargetError
from salmc.kernels.layers import Whitening
from salmc.learning.gradient_pool import Trajectories
from salmc.movers import MOVERS, TemperedSMC
from salmc.movers.advance import advance
from salmc.movers.base import AbstractMover, check_at, log_densities
from salmc.movers.climb import balance, can_climb, find_modes
from salmc.movers.cover import Location, find_cover, find_edges, widened
from salmc.movers.evolution import settle_down
from salmc.movers.funnels import particles_through_funnels
from salmc.movers.nuts import NUTS
from salmc.movers.start import find_start, find_support
from salmc.movers.tempered_smc import MOST_ROUNDS, merge, temper
from salmc.programs import on_device
from salmc.progress import AbstractReporter, SilentReporter
from salmc.sampling.trajectories import Trajectory
from salmc.sizes import MANY_DATA, MANY_DIMENSIONS
from salmc.target import AbstractTarget, Points

_MOST_RUNS = 8
_CLIMBS = 8
"""From the pool's most likely particles, as many from any of them, and four times that from the
start, which is wide."""

_LESS = 0.3
"""Estimates of log ∫ p differ by about so much from run to run."""
_MOST_TURNS = 12
_FEWEST = 4
"""Fewer different particles than this show no shape to learn."""


class Pool(NamedTuple):
    """A filled pool, in the target's coordinates."""

    positions: Points
    log_density: Float[Array, " n"]
    start: Points
    """Where the mover began: what the warm-up saw."""
    seconds: dict[str, float]
    warnings: tuple[str, ...]
    covariance: np.ndarray | None = None
    """A guess at the target's, from elsewhere than the positions."""
    target: AbstractTarget | None = None
    """In whose coordinates the positions are, where these are straight already."""
    trajectory: Trajectory | None = None
    """Along the gradient, which moves chains there."""
    whitening: Whitening | None = None
    """The coordinates to learn in, where they are given already."""


Filler = AbstractMover | NUTS | Trajectories
"""What fills a pool: a mover that takes steps, or chains that find their own way."""


def fill_pool(
    target: AbstractTarget,
    key: PRNGKeyArray,
    size: int,
    mover: str | Filler = "smc",
    *,
    steps: int = 500,
    particles: int = 1000,
    settle: bool = True,
    report: AbstractReporter | None = None,
) -> Pool:
    """Particles near the target, from values of its log density and what the mover asks for.

    Args:
        target: what to sample.
        key: the same key gives the same pool.
        size: how many particles.
        mover: its name, or one that was made for this target.
        steps: of movers other than tempered SMC.
        particles: at most so many move; exact moves multiply them afterwards. Particle methods
            cost their square.
        settle: multiply and settle by exact moves; if not, the mover moves all `size` particles.
        report: told of rounds.

    Raises:
        TargetError: if the density cannot be used, or the mover leaves no particle where it is
            positive.
    """
    mover, clock, covariance = find_mover(target, mover), time.perf_counter(), None
    if isinstance(mover, Trajectories):
        found = mover.fill(key, size, report or SilentReporter())
        if found is not None:
            points, values, covariance, straight, trajectory = found
            seconds = {"mover": time.perf_counter() - clock}
            where = (covariance, straight, trajectory)
            return Pool(points, values, points, seconds, (), *where)
        # Chains that began apart stay apart: by tempering, or what is left in many dimensions.
        other = NUTS if target.dim > MANY_DIMENSIONS else TemperedSMC
        mover = other(target)
    fills = isinstance(mover, (TemperedSMC, NUTS))
    count = size if fills or not settle else min(size, particles)
    keys = [jax.random.fold_in(key, i) for i in range(4)]
    warnings: tuple[str, ...] = ()
    if isinstance(mover, NUTS):
        moved, values, start, warnings, covariance = mover.fill(keys[1], size)
        seconds = {}
    elif isinstance(mover, TemperedSMC):
        moved, values, start, seconds, warnings = _tempered(mover, keys, count)
        clock = time.perf_counter() - seconds["mover"]
    else:
        start = find_start(target, keys[0], count)
        check_at(target, start)
        seconds = {"start": time.perf_counter() - clock}
        clock = time.perf_counter()
        state = eqx.filter_jit(mover.init)(keys[1], start)
        # With no step to take, a call only compiles.
        none = jnp.array(0)
        jax.block_until_ready(advance(mover, state, keys[2], none, none)[1])
        seconds["compile"] = time.perf_counter() - clock
        clock = time.perf_counter()
        state, values, _ = advance(mover, state, keys[2], none, jnp.array(steps))
        moved = state.particles
    moved, values = _only_valid(target, moved, values, size, mover.name)
    if settle and not fills:
        moved, values = settle_down(target, keys[3], moved, values)
    seconds["mover"] = time.perf_counter() - clock
    return Pool(moved, values, start, seconds, warnings, covariance)


def without_edges(target: AbstractTarget, pool: Pool) -> tuple[AbstractTarget, Pool]:
    """Target and pool in coordinates without bounds, where the pool shows a box or a half space."""
    if target.outer is not target or target.size > MANY_DATA:
        return target, pool  # its bounds are known; or it is dear, and has none as a rule
    edges = find_edges(
        lambda points: np.asarray(log_densities(target, on_device(points))),
        np.asarray(pool.positions),
    )
    if edges is None:
        return target, pool
    bounds = Bounds(*(on_device(side) for side in edges))
    return _in_coordinates(Unbounded(target, bounds), pool)


def straightened(
    target: AbstractTarget, pool: Pool, key: PRNGKeyArray
) -> tuple[AbstractTarget, Pool]:
    """Target and pool in coordinates in which funnels and bends are straight, settled anew: there
    differences of particles lead into arms that the pool had not come to."""
    found = find_straight(_shuffled(pool.positions))
    if found is None:
        return target, pool
    target, pool = _in_coordinates(Unbounded.with_straight(target, found), pool)
    points, values = pool.positions, pool.log_density
    for number in range(_MOST_TURNS):
        before = np.asarray(points)
        points, values = settle_down(target, jax.random.fold_in(key, number), points, values)
        if as_wide(range(target.dim), before, np.asarray(points)):
            break
    return target, pool._replace(positions=points, log_density=values)


def _in_coordinates(target: Unbounded, pool: Pool) -> tuple[AbstractTarget, Pool]:
    positions = target.inward(pool.positions)
    return target, pool._replace(
        positions=positions,
        log_density=log_densities(target, positions),
        start=target.inward(pool.start),
        covariance=None,
    )


def find_mover(target: AbstractTarget, mover: str | Filler) -> Filler:
    """A mover by its name, with its defaults; or the one given, checked."""
    fillers = {filler.name: filler for filler in (NUTS, Trajectories)}
    if isinstance(mover, str):
        known: dict[str, Any] = {**MOVERS, **fillers}
        return known[checks.choice("mover", mover, tuple(known))](target)
    if not isinstance(mover, (AbstractMover, NUTS, Trajectories)):
        checks.fail("mover", "a name or a mover", mover)
    if mover.target.dim != target.dim:
        given = f"one of dimension {mover.target.dim}"
        checks.fail("mover", f"a mover of a target of dimension {target.dim}", given)
    if mover.target is target.outer:
        return dataclasses.replace(mover, target=target)
    return mover


def _tempered(
    mover: TemperedSMC, keys: list[PRNGKeyArray], count: int
) -> tuple[Points, Float[Array, " n"], Points, dict[str, float], tuple[str, ...]]:
    """Particles by tempering, from wider and wider Gaussians until one covers."""
    target, clock = mover.target, time.perf_counter()
    location = find_cover(target, keys[0])
    start = location.sample(keys[2], count)
    if not check_at(target, start, required=False):
        found = find_support(target, keys[3], count)
        start = start if found is None else found
        check_at(target, start)
        location = Location.of(start)
    seconds = {"start": time.perf_counter() - clock}
    clock = time.perf_counter()
    jax.block_until_ready(temper(mover, keys[1], start, jnp.array(0)))
    seconds["compile"] = time.perf_counter() - clock
    clock, runs, best, points = time.perf_counter(), [], -np.inf, start
    for number in range(_MOST_RUNS):
        key = jax.random.fold_in(keys[1], number)
        runs.append(temper(mover, key, points, jnp.array(MOST_ROUNDS)))
        evidence = float(runs[-1].log_evidence)
        # A wider Gaussian that finds less has lost what a narrower one had.
        if not evidence > best - _LESS:
            break
        best = max(best, evidence)
        wider = widened(location, np.asarray(runs[-1].particles))
        if wider is None:
            break
        location = wider
        points = location.sample(jax.random.fold_in(keys[2], number), count)
        if not check_at(target, points, required=False):
            break  # of a box in many dimensions hardly anything is met from further out
    merged, beta = merge(runs), min(float(run.beta) for run in runs)
    if target.dim <= MANY_DIMENSIONS and can_climb(target):
        merged = _balanced(target, keys[3], start, *merged)
        if shows_funnel(_shuffled(merged[0])):
            merged = particles_through_funnels(target, keys[3], *merged)
    seconds["mover"] = time.perf_counter() - clock
    told = (
        f"Tempered SMC reached β = {beta:.3g} of 1 in {MOST_ROUNDS} rounds: the pool may be too "
        "wide. Check the scale of the log density, or use another mover.",
    )
    return *merged, start, seconds, told if beta < 1.0 else ()


def _balanced(
    target: AbstractTarget,
    key: PRNGKeyArray,
    start: Points,
    points: Points,
    values: Float[Array, " n"],
) -> tuple[Points, Float[Array, " n"]]:
    """Modes that climbs find, at their own weights; where there are several, a hunt for more."""
    # The most likely particles: where a narrow mode holds but a few, it holds these.
    likely = np.argsort(-np.asarray(values))[: 2 * _CLIMBS : 2]
    modes = find_modes(
        target, jnp.concatenate([points[likely], points[:_CLIMBS], start[: 4 * _CLIMBS]])
    )
    if len(modes.positions) < 2:
        return points, values
    points, values, _ = balance(target, key, modes, points, values)
    return with_missed_modes(target, key, points, values)


def _only_valid(
    target: AbstractTarget, points: Points, values: Float[Array, " n"], size: int, mover: str
) -> tuple[Float[Array, "size dim"], Float[Array, " size"]]:
    """`size` particles: the valid ones, and copies of them in the place of the others."""
    cloud, finite = np.asarray(points), np.isfinite(np.asarray(values))
    valid = np.flatnonzero(finite & np.all(np.isfinite(cloud), axis=1))
    if len(np.unique(cloud[valid], axis=0)) < _FEWEST:
        from salmc.diagnostics.trial.tails import require_proper

        require_proper(target)
        raise TargetError(
            f"The mover `{mover}` left {len(valid)} of {len(cloud)} particles where the density "
            f"of `{target.name}` is positive: there is nothing to learn from. Check the log "
            'density near the origin, or use another mover, such as "smc".'
        )
    if len(valid) == len(cloud) == size:
        return points, values
    # Rows that repeat with a period would put all copies of a particle in one half of the pool.
    rows = np.random.default_rng(0).permutation(valid[np.arange(size) % len(valid)])
    return points[rows], values[rows]


def _shuffled(points: Points) -> np.ndarray:
    return np.random.default_rng(0).permutation(np.asarray(points, np.float64))
