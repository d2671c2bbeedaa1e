"""The pool: particles near the target, which stand for real samples while a kernel learns.

    1. a short search for location and scale (`salmc.movers.start`), from values of log p alone;
    2. a mover: tempered SMC until β = 1 and two more rounds, or any other mover for some steps;
    3. after movers other than tempered SMC: copies of the particles fill the pool, and exact moves
       by differential evolution take the copies apart and the mover's bias off.

No exact draws and no known moments of the target are ever looked at.
"""

import time
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc import checks
from salmc.errors import TargetError
from salmc.movers import MOVERS, TemperedSMC
from salmc.movers.advance import advance
from salmc.movers.base import AbstractMover
from salmc.movers.evolution import evolve
from salmc.movers.start import check_at, find_start
from salmc.programs import compiled
from salmc.target import AbstractTarget, Points

_ROUNDS_AT_TARGET = 2
_MOST_ROUNDS = 200
_SETTLING_SWEEPS = 50
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


def fill_pool(
    target: AbstractTarget,
    key: PRNGKeyArray,
    size: int,
    mover: str | AbstractMover = "smc",
    *,
    steps: int = 500,
    particles: int = 1000,
    settle: bool = True,
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

    Raises:
        TargetError: if the density cannot be used, or the mover leaves no particle where it is
            positive.
    """
    mover = find_mover(target, mover)
    count = size if isinstance(mover, TemperedSMC) or not settle else min(size, particles)
    keys = [jax.random.fold_in(key, i) for i in range(4)]
    clock = time.perf_counter()
    start = find_start(target, keys[0], count)
    check_at(target, start)
    seconds = {"start": time.perf_counter() - clock}

    clock = time.perf_counter()
    warnings: list[str] = []
    # With no step to take, a call only compiles.
    if isinstance(mover, TemperedSMC):
        jax.block_until_ready(_temper(mover, keys[1], start, jnp.array(0)))
        seconds["compile"] = time.perf_counter() - clock
        clock = time.perf_counter()
        moved, values, beta = _temper(mover, keys[1], start, jnp.array(_MOST_ROUNDS))
        if float(beta) < 1.0:
            warnings.append(
                f"Tempered SMC reached β = {float(beta):.3g} of 1 in {_MOST_ROUNDS} rounds: the "
                "pool may be too wide. Check the scale of the log density, or use another mover."
            )
    else:
        state = eqx.filter_jit(mover.init)(keys[1], start)
        none = jnp.array(0)
        jax.block_until_ready(advance(mover, state, keys[2], none, none)[1])
        seconds["compile"] = time.perf_counter() - clock
        clock = time.perf_counter()
        state, values, _ = advance(mover, state, keys[2], none, jnp.array(steps))
        moved = state.particles
    moved, values = _only_valid(target, moved, values, size, mover.name)
    if settle and not isinstance(mover, TemperedSMC):
        moved, values = jax.block_until_ready(_settle(target, keys[3], moved, values))
    seconds["mover"] = time.perf_counter() - clock
    return Pool(moved, values, start, seconds, tuple(warnings))


def find_mover(target: AbstractTarget, mover: str | AbstractMover) -> AbstractMover:
    """A mover by its name, with its defaults; or the one given, checked."""
    if isinstance(mover, str):
        made: Any = MOVERS[checks.choice("mover", mover, tuple(MOVERS))]
        return made(target)
    if not isinstance(mover, AbstractMover):
        checks.fail("mover", "a name or a mover", mover)
    if mover.target.dim != target.dim:
        given = f"one of dimension {mover.target.dim}"
        checks.fail("mover", f"a mover of a target of dimension {target.dim}", given)
    return mover


@compiled
def _temper(
    mover: TemperedSMC, key: PRNGKeyArray, start: Points, most: Int[Array, ""]
) -> tuple[Points, Float[Array, " n"], Float[Array, ""]]:
    """Steps until β = 1 and two more; at most `most`, which is traced."""
    init_key, step_key = jax.random.split(key)
    first = mover.init(init_key, start)

    def unfinished(carry: tuple[Array, Array, object]) -> Array:
        i, at_target, _ = carry
        return (i < most) & (at_target < _ROUNDS_AT_TARGET)

    def body(carry: tuple) -> tuple:
        i, at_target, state = carry
        at_target = at_target + (state.beta >= 1.0)
        state, _ = mover.step(jax.random.fold_in(step_key, i), state)
        return i + 1, at_target, state

    zero = jnp.zeros((), dtype=int)
    state = jax.lax.while_loop(unfinished, body, (zero, zero, first))[2]
    # Not the state's own values, which were recovered from tempered ones and have lost digits.
    return state.particles, mover.target.log_densities(state.particles), state.beta


@compiled
def _settle(
    target: AbstractTarget, key: PRNGKeyArray, points: Points, values: Float[Array, " n"]
) -> tuple[Points, Float[Array, " n"]]:
    """Sweeps of differential evolution at the target itself."""

    def sweep(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        return evolve(jax.random.fold_in(key, i), *carry, target.log_densities)[:2]

    return jax.lax.fori_loop(0, _SETTLING_SWEEPS, sweep, (points, values))


def _only_valid(
    target: AbstractTarget, points: Points, values: Float[Array, " n"], size: int, mover: str
) -> tuple[Float[Array, "size dim"], Float[Array, " size"]]:
    """`size` particles: the valid ones, and copies of them in the place of the others."""
    cloud, finite = np.asarray(points), np.isfinite(np.asarray(values))
    valid = np.flatnonzero(finite & np.all(np.isfinite(cloud), axis=1))
    if len(np.unique(cloud[valid], axis=0)) < _FEWEST:
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
