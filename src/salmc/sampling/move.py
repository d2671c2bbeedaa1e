"""`move`: move particles for a number of steps and keep what they did as `Draws`."""

import dataclasses
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.errors import TargetError
from salmc.movers.advance import advance
from salmc.movers.base import AbstractMover, check_at
from salmc.movers.start import find_start
from salmc.programs import RUNTIME_ERRORS, failure, nothing_left, on_device, target_failures
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget


@target_failures()
def move(
    mover: AbstractMover,
    particles: int | Any = 400,
    steps: int = 1000,
    seed: int = 0,
    *,
    keep: int = 200,
    burn_in: float | None = None,
    progress: bool | AbstractReporter = True,
) -> Draws:
    """Move particles toward the mover's target.

    Args:
        mover: any mover, such as `salmc.movers.AGSVGD(target)`.
        particles: how many, or an array (n, dim) of where they start. Given a number, the start
            is found by a short search for the location and scale of the target.
        steps: how many steps to take.
        seed: the same seed gives the same draws.
        keep: about how many steps to keep, evenly spaced; the last is always kept.
        burn_in: leading share of the kept steps that does not count as a sample. By default half
            for movers whose paths are the sample ("chains"), of which it is dropped from summaries
            and ArviZ's posterior, and 0 for particles, whose last cloud is.
        progress: True for a bar, False for silence, or a reporter.

    Returns:
        Draws of kind `mover.kind`. If particles become NaN, the target fails, or the run is
        interrupted by Ctrl-C, the steps kept until then are returned with a warning.
    """
    checks.integer("steps", steps, 1)
    checks.integer("seed", seed, 0)
    checks.integer("keep", keep, 1)
    if burn_in is None:
        burn_in = 0.5 if mover.kind == "chains" else 0.0
    checks.real("burn_in", burn_in, at_least=0.0, at_most=0.99)
    start_key, init_key, step_key = jax.random.split(jax.random.key(seed), 3)
    mover = dataclasses.replace(mover, target=mover.target.unbounded)
    start = starting_particles(mover.target, particles, start_key)
    stride = max(1, -(-steps // keep))

    began = time.perf_counter()
    state = eqx.filter_jit(mover.init)(init_key, start)
    # No steps are taken here: it compiles, so that compilation is not counted as sampling.
    jax.block_until_ready(advance(mover, state, step_key, jnp.array(0), jnp.array(0)))
    compiled = time.perf_counter()

    positions: list[np.ndarray] = []
    log_density: list[np.ndarray] = []
    kept_steps: list[int] = []
    warnings: list[str] = []
    done = 0
    with reporter(progress) as report:
        report.start(f"{mover.name} on {mover.target.name}", steps)
        try:
            while done < steps:
                now = min(stride, steps - done)
                state, values, moved = advance(
                    mover, state, step_key, jnp.array(done), jnp.array(now)
                )
                cloud = np.asarray(state.particles)
                if not np.all(np.isfinite(cloud)):
                    warnings.append(
                        f"Particles became NaN or infinite by step {done + now}; the draws end at "
                        f"step {done}. Use a smaller step size."
                    )
                    break
                done += now
                positions.append(cloud)
                log_density.append(np.asarray(values))
                kept_steps.append(done)
                report.advance(now, move=float(moved), log_density=float(np.median(values)))
        except KeyboardInterrupt:
            warnings.append(f"Interrupted at step {done} of {steps}.")
        except RUNTIME_ERRORS as error:
            sentence = f"The target failed after step {done}: {failure(error)}"
            if not positions:
                raise nothing_left(sentence, error) from error
            warnings.append(sentence)
    seconds = time.perf_counter() - compiled
    if not positions:
        raise TargetError(warnings[0])
    points, values = mover.target.outward(
        jnp.asarray(np.stack(positions, 1)), jnp.asarray(np.stack(log_density, 1))
    )
    return Draws(
        positions=np.asarray(points),
        log_density=np.asarray(values),
        seconds=seconds,
        kind=mover.kind,
        method=mover.name,
        target=mover.target.outer,
        settings={
            "particles": len(start),
            "steps": steps,
            "seed": seed,
            "keep": keep,
            "start": "search" if np.ndim(particles) == 0 else "given",
            **mover_settings(mover),
        },
        steps=np.array(kept_steps),
        burn_in=burn_in,
        compile_seconds=compiled - began,
        warnings=tuple(warnings),
    )


def starting_particles(
    target: AbstractTarget, particles: int | Any, key: PRNGKeyArray
) -> Float[Array, "n dim"]:
    """Check the given start, or find one."""
    if np.ndim(particles) == 0:
        count = checks.integer("particles", particles, 2)
        start = find_start(target, key, count)
    else:
        start = on_device(particles)
        if start.ndim != 2 or start.shape[1] != target.dim or len(start) < 1:
            expectation = f"a number, or an array of shape (n, {target.dim}) for this target"
            checks.fail("particles", expectation, f"shape {start.shape}")
        if not np.all(np.isfinite(start)):
            checks.fail("particles", "finite everywhere", "NaN or infinite entries")
        start = target.inward(start)
    check_at(target, start)
    return start


def mover_settings(mover: AbstractMover) -> dict[str, Any]:
    """The mover's settings as JSON values, for the record."""
    settings = {}
    for name, value in vars(mover).items():
        if eqx.is_array(value) and value.ndim == 0:
            settings[name] = value.item()
        elif value is None or isinstance(value, (bool, int, float, str)):
            settings[name] = value
    return settings
