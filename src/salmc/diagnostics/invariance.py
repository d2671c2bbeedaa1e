"""Invariance: a sample of p does not change under Metropolis steps that leave p invariant.

If x_0 ~ p, then after k random-walk Metropolis steps x_k ~ p as well, so that for every function f

    E[f(x_k) − f(x_0)] = 0.

The paired differences of coordinates, squared deviations and log density are tested against zero.
Values of log p are enough, in any dimension and with no heavy-tailed weights. A cloud that is too
narrow spreads when it is moved, one that is too wide contracts, one beside the mode walks toward
it; particles that an SVGD step holds still, and so have a small Stein discrepancy, are seen too.
Like every local test it does not see modes that hold no point, nor wrong weights of separate modes.

The steps are the sample's own covariance times a factor, which is set beforehand so that about a
third of the proposals are accepted.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.diagnostics.point_sets import PointsLike, as_points
from salmc.metropolis import log_ratio, taken
from salmc.programs import compiled
from salmc.target import AbstractTarget

_PILOT_STEPS = 12
"""Each multiplies the step by up to e^1.4: a cloud 10⁶ times too narrow finds its step."""

_WANTED_ACCEPTANCE = 0.3
"""Near the optimum of random-walk Metropolis in most dimensions (0.44 in one, 0.234 in many)."""


class InvarianceTest(NamedTuple):
    """What Metropolis steps did to a sample."""

    p_value: float
    """Of the largest shift under the null that the sample is exact, for all functions together."""
    shift: Float[np.ndarray, " dim"]
    """Move of the mean, in standard deviations after the steps."""
    spread_ratio: Float[np.ndarray, " dim"]
    """Standard deviation after the steps / before them; above 1 the sample was too narrow."""
    log_density_shift: float
    """Move of the mean log density, in its standard deviations after the steps; below 0 the points
    were too close to the modes."""
    moved: Float[np.ndarray, "n dim"]
    """Where the points went: closer to p, or as close."""
    moved_log_density: Float[np.ndarray, " n"]
    """log p there."""
    outside: float = 0.0
    """Share of the proposals where the density is zero: above 0 the support has edges."""

    @property
    def largest_spread_ratio(self) -> float:
        """Of the coordinate that widened most."""
        return float(np.max(self.spread_ratio))

    @property
    def effect(self) -> float:
        """The largest change: of the mean, of log spread or of the mean log density."""
        with np.errstate(divide="ignore"):
            spread = np.abs(np.log(self.spread_ratio))
        changes = [*np.abs(self.shift), *spread, abs(self.log_density_shift)]
        return float(np.max(changes))


def invariance_test(
    target: AbstractTarget, points: PointsLike, *, steps: int = 25, seed: int = 0
) -> InvarianceTest:
    """Move independent points by exact Metropolis steps and test whether the sample changed.

    Args:
        target: its log density is called `steps` + 12 times on all points at once.
        points: (n, dim), nearly independent. Points of zero density are left out.
        steps: of Metropolis; more of them see smaller and slower errors.
        seed: of the proposals.
    """
    checks.integer("steps", steps, 1)
    given = as_points("points", points)
    values = np.asarray(eqx.filter_jit(target.log_densities)(jnp.asarray(given, dtype=float)))
    start = given[np.isfinite(values)]
    if len(start) < 4:
        nothing = np.full(target.dim, np.nan)
        return InvarianceTest(
            0.0, nothing, nothing, float("nan"), given, np.asarray(values, np.float64)
        )
    dim = start.shape[1]
    covariance = np.atleast_2d(np.cov(start, rowvar=False))
    smallest = (1e-6 * (1.0 + np.max(np.abs(start)))) ** 2
    # Shrinking toward the diagonal keeps few points in many dimensions from spoiling the steps.
    shrink = dim / (dim + len(start))
    covariance = (1 - shrink) * covariance + shrink * np.diag(np.diagonal(covariance))
    factor = np.linalg.cholesky(covariance + smallest * np.eye(dim)) * 2.38 / math.sqrt(dim)
    after, log_density, outside = _move(
        target,
        jnp.asarray(start, dtype=float),
        jnp.asarray(factor, dtype=float),
        jax.random.key(seed),
        steps,
    )
    return _compare(
        np.asarray(start, np.float32).astype(np.float64),
        values[np.isfinite(values)].astype(np.float64),
        np.asarray(after, np.float64),
        np.asarray(log_density, np.float64),
    )._replace(outside=float(outside))


@compiled
def _move(
    target: AbstractTarget,
    start: Float[Array, "n dim"],
    factor: Float[Array, "dim dim"],
    key: PRNGKeyArray,
    steps: int,
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, ""]]:
    """Set the step size from where the points are, then take `steps` of that size."""
    initial = (start, target.log_densities(start))
    pilot_key, move_key = jax.random.split(key)

    def metropolis(
        key: PRNGKeyArray, state: tuple[Array, Array], log_step: Array
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        points, values = state
        noise_key, accept_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, points.shape) @ factor.T
        proposals = points + jnp.exp(log_step) * noise
        proposed = target.log_densities(proposals)
        threshold = jnp.log1p(-jax.random.uniform(accept_key, values.shape))
        accepted = taken(threshold, log_ratio(proposed, values))
        points = jnp.where(accepted[:, None], proposals, points)
        told = (jnp.mean(accepted), jnp.mean(proposed == -jnp.inf))
        return (points, jnp.where(accepted, proposed, values)), told

    def tune(log_step: Array, key: PRNGKeyArray) -> tuple[Array, None]:
        _, (rate, _) = metropolis(key, initial, log_step)
        return log_step + 2.0 * (rate - _WANTED_ACCEPTANCE), None

    def advance(state: tuple[Array, Array], key: PRNGKeyArray) -> tuple[tuple[Array, Array], Array]:
        state, (_, outside) = metropolis(key, state, log_step)
        return state, outside

    log_step, _ = jax.lax.scan(tune, jnp.zeros(()), jax.random.split(pilot_key, _PILOT_STEPS))
    final, outside = jax.lax.scan(advance, initial, jax.random.split(move_key, steps))
    return *final, jnp.mean(outside)


def _compare(
    before: np.ndarray, value_before: np.ndarray, after: np.ndarray, value_after: np.ndarray
) -> InvarianceTest:
    """Paired z-tests of the means, the squared deviations and the log density."""
    centre = np.mean(before, axis=0)
    differences = np.concatenate(
        [
            after - before,
            (after - centre) ** 2 - (before - centre) ** 2,
            (value_after - value_before)[:, None],
        ],
        axis=1,
    )
    error = np.std(differences, axis=0, ddof=1) / math.sqrt(len(differences))
    moved = error > 0
    largest = np.max(np.abs(np.mean(differences, axis=0))[moved] / error[moved], initial=0.0)
    # Two-sided, and Bonferroni over the functions.
    p_value = min(1.0, math.erfc(largest / math.sqrt(2)) * max(int(np.sum(moved)), 1))
    sd_before, sd_after = np.std(before, axis=0), np.std(after, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return InvarianceTest(
            p_value=p_value if np.any(moved) else float("nan"),
            shift=(np.mean(after, axis=0) - centre) / sd_after,
            spread_ratio=sd_after / sd_before,
            log_density_shift=_shift(value_before, value_after),
            moved=after,
            moved_log_density=value_after,
        )


def _shift(before: np.ndarray, after: np.ndarray) -> float:
    """Of a mean, in standard deviations; 0 for a density that is the same everywhere."""
    change, spread = float(np.mean(after - before)), float(np.std(after))
    return 0.0 if change == 0.0 else change / spread
