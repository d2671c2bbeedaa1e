"""Invariance: a sample of p does not change under Metropolis steps that leave p invariant.

If x_0 ~ p, then after k random-walk Metropolis steps x_k ~ p as well, so that for every function f

    E[f(x_k) − f(x_0)] = 0.

The paired differences of coordinates, squared deviations and log density are tested against zero.
Values of log p are enough, in any dimension and with no heavy-tailed weights. A cloud that is too
narrow spreads when it is moved, one that is too wide contracts, one beside the mode walks toward
it; particles that an SVGD step holds still, and so have a small Stein discrepancy, are seen too.
Like every local test it does not see modes that hold no point, nor wrong weights of separate modes.

The steps are the sample's own covariance, of few points that of the other half, times a factor,
which is set beforehand so that about a third of the proposals are accepted. They are taken on the
host: a program for them would take longer to compile than they do, and the density's own is there
already.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.point_sets import Cloud, Numbers, PointsLike, as_points
from salmc.diagnostics.trial.host import HostDensity
from salmc.target import AbstractTarget

_PILOT_STEPS = 12
"""Each multiplies the step by up to e^1.4: a cloud 10⁶ times too narrow finds its step."""

_WANTED_ACCEPTANCE = 0.3
"""Near the optimum of random-walk Metropolis in most dimensions (0.44 in one, 0.234 in many)."""


_FEW_EACH = 30
"""Points for each coordinate, below which they are moved by each other's covariance."""


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
    # As the density sees them: in single precision, where that is what it computes in.
    given = _rounded(as_points("points", points))
    density = HostDensity(target, given[0])
    values = density.values(given)
    positive = np.isfinite(values)
    start, values_before = given[positive], values[positive]
    if len(start) < 4:
        nothing = np.full(target.dim, np.nan)
        return InvarianceTest(0.0, nothing, nothing, float("nan"), given, values)
    generator = np.random.default_rng(seed)
    if len(start) >= _FEW_EACH * start.shape[1]:
        moved = _moved(density, start, values_before, _factor(start), steps, generator)
        return _compare(start, values_before, *moved[:2])._replace(outside=moved[2])
    # Few points know their own covariance too well: steps would follow what is chance in them, and
    # be no steps that leave p invariant. So each half is moved by the other's.
    halves = np.arange(len(start)) % 2 == 0
    after, values_after, outside = start.copy(), values_before.copy(), 0.0
    for one in (halves, ~halves):
        factor = _factor(start[~one])
        after[one], values_after[one], zero = _moved(
            density, start[one], values_before[one], factor, steps, generator
        )
        outside += zero * float(np.mean(one))
    return _compare(start, values_before, after, values_after)._replace(outside=outside)


def _factor(points: Cloud) -> Float[np.ndarray, "dim dim"]:
    """Of the steps' covariance."""
    dim = points.shape[1]
    covariance = np.atleast_2d(np.cov(points, rowvar=False))
    smallest = (1e-6 * (1.0 + np.max(np.abs(points)))) ** 2
    # Shrinking toward the diagonal keeps few points in many dimensions from spoiling the steps.
    shrink = dim / (dim + len(points))
    covariance = (1 - shrink) * covariance + shrink * np.diag(np.diagonal(covariance))
    return np.linalg.cholesky(covariance + smallest * np.eye(dim)) * 2.38 / math.sqrt(dim)


def _rounded(points: Cloud) -> Cloud:
    return points.astype(jnp.zeros(()).dtype).astype(np.float64)


def _moved(
    density: HostDensity,
    start: Cloud,
    values: Numbers,
    factor: Float[np.ndarray, "dim dim"],
    steps: int,
    generator: np.random.Generator,
) -> tuple[Cloud, Numbers, float]:
    """Set the step size from where the points are, then take `steps` of that size.

    Returns:
        The points, log p there, and the share of proposals where the density is zero.
    """

    def step(points: Cloud, values: Numbers, size: float) -> tuple[Cloud, Numbers, np.ndarray]:
        proposals = _rounded(points + size * generator.normal(size=points.shape) @ factor.T)
        proposed = density.values(proposals)
        accepted = np.log1p(-generator.random(len(points))) < proposed - values
        moved = np.where(accepted[:, None], proposals, points)
        return moved, np.where(accepted, proposed, values), proposed == -np.inf

    size = 1.0
    for _ in range(_PILOT_STEPS):
        moved = step(start, values, size)[0]
        rate = float(np.mean(np.any(moved != start, axis=1)))
        size *= math.exp(2.0 * (rate - _WANTED_ACCEPTANCE))
    points, outside = start, []
    for _ in range(steps):
        points, values, zero = step(points, values, size)
        outside.append(np.mean(zero))
    return points, values, float(np.mean(outside))


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
