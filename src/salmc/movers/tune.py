"""`tune`: choose a mover's settings for a target by a Stein discrepancy, never by the truth.

The paper searched a grid against the true distribution, which nobody has in earnest. Here each
trial runs the mover for a while from one common start with other settings, and the clouds that
come of it are judged together (`cloud_scores`): by the kernel Stein discrepancy where the
target has a gradient, else by the gradient-free one, and by MMD² against one density fitted to
the union of all clouds, since no Stein discrepancy sees a mode that a cloud misses.

The first trial has the mover's own settings, so tuning never makes things worse by its measure.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.diagnostics.cloud_scores import compare_clouds
from salmc.diagnostics.ksd import ksd_squared
from salmc.errors import TargetError
from salmc.movers.advance import advance
from salmc.movers.base import AbstractMover, check_at
from salmc.movers.start import find_start
from salmc.programs import on_device
from salmc.progress import AbstractReporter, reporter

TUNED = ("step_size", "bandwidth", "density_bandwidth", "regularisation")
"""Settings that are tuned, where a mover has them."""

_LARGEST_FACTOR = 5.0
"""Trials multiply each setting by up to this factor, or divide by it."""


class Trial(NamedTuple):
    """Settings that were tried and how they did; a smaller score is better."""

    settings: dict[str, float]
    score: float
    """Stein discrepancy and MMD² in units of what exact draws would have; inf if it failed."""


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The mover with the best settings, and all trials, the best first."""

    mover: AbstractMover
    trials: tuple[Trial, ...]


def tune(
    mover: AbstractMover,
    *,
    particles: int | Any = 200,
    steps: int = 300,
    trials: int = 16,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
) -> Tuning:
    """Choose step sizes, bandwidths and η of a mover for its target.

    Args:
        mover: the mover to tune; its own settings are the first trial and the centre of the rest.
        particles: how many each trial moves, or an array (n, dim) of where they start.
        steps: how many steps each trial takes.
        trials: how many settings to try.
        seed: the same seed tries the same settings.
        progress: True for a bar, False for silence, or a reporter.
    """
    checks.integer("steps", steps, 1)
    checks.integer("trials", trials, 2)
    start_key, run_key = jax.random.split(jax.random.key(checks.integer("seed", seed, 0)))
    if np.ndim(particles) == 0:
        start = find_start(mover.target, start_key, checks.integer("particles", particles, 10))
    else:
        start = on_device(particles)
    check_at(mover.target, start)
    names = [name for name in TUNED if hasattr(mover, name)]

    candidates = [mover]
    generator = np.random.default_rng(seed)
    for _ in range(trials - 1):
        factors = _LARGEST_FACTOR ** generator.uniform(-1.0, 1.0, size=len(names))
        candidates.append(_with_factors(mover, names, factors))

    clouds, values = [], []
    with reporter(progress) as report:
        report.start(f"tuning {mover.name} on {mover.target.name}", trials)
        for candidate in candidates:
            state = eqx.filter_jit(candidate.init)(run_key, start)
            state, log_density, _ = advance(
                candidate, state, run_key, jnp.array(0), jnp.array(steps)
            )
            clouds.append(np.asarray(state.particles))
            values.append(np.asarray(log_density))
            report.advance(1)

    scores = _scores(mover, start, clouds, values)
    results = [
        (Trial({name: float(getattr(c, name)) for name in names}, score), c)
        for c, score in zip(candidates, scores, strict=True)
    ]
    results.sort(key=lambda result: result[0].score)
    if not np.isfinite(results[0][0].score):
        raise TargetError(
            f"All {trials} trials of {mover.name} on `{mover.target.name}` ended in NaN or at zero "
            "density. Start nearer to the target: pass an array as `particles`."
        )
    return Tuning(results[0][1], tuple(trial for trial, _ in results))


def _with_factors(mover: AbstractMover, names: list[str], factors: np.ndarray) -> AbstractMover:
    """The mover with the named settings multiplied."""
    values = [getattr(mover, name) * factor for name, factor in zip(names, factors, strict=True)]
    return eqx.tree_at(lambda m: [getattr(m, name) for name in names], mover, values)


def _scores(
    mover: AbstractMover, start: Any, clouds: list[np.ndarray], values: list[np.ndarray]
) -> list[float]:
    """One score for each cloud; infinite for one that has NaN or no point of positive density."""
    usable = [
        i
        for i, cloud in enumerate(clouds)
        if np.all(np.isfinite(cloud)) and np.mean(np.isfinite(values[i])) > 0.5
    ]
    scores = [float("inf")] * len(clouds)
    if not usable:
        return scores
    good = [np.isfinite(values[i]) for i in usable]
    points = [clouds[i][mask] for i, mask in zip(usable, good, strict=True)]
    densities = [values[i][mask] for i, mask in zip(usable, good, strict=True)]
    start_values = np.asarray(mover.target.log_densities(start))
    seen = np.isfinite(start_values)
    also = (np.asarray(start)[seen], start_values[seen])
    judged = compare_clouds(points, densities, also=also)
    # Particles at zero density count against a cloud: exact draws have none.
    lost = [1.0 / np.mean(mask) for mask in good]
    if not mover.target.differentiable:
        for i, result, penalty in zip(usable, judged, lost, strict=True):
            scores[i] = result.score * penalty
        return scores
    scale = np.std(np.concatenate(points), axis=0)
    gradients = eqx.filter_jit(mover.target.gradients)
    for i, cloud, result, penalty in zip(usable, points, judged, lost, strict=True):
        ksd = ksd_squared(
            cloud, np.asarray(gradients(jnp.asarray(cloud))), scale=scale, statistic="v"
        )
        scores[i] = (ksd.ratio + result.mmd_score) * penalty
    return scores
