"""What is measured on draws: the same figures for every method.

ESS is that of the paper's tables (`diagnostics.ess_known_moments`): of one chain, averaged over the
chains, of the quantity that mixes worst. It sees autocorrelation alone, so that a biased sampler
can score the number of draws. Beside it stand MMD² against exact draws, or the error of mean and sd
against a long reference run where there are no exact draws.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

from salmc.diagnostics import (
    acceptance_rate,
    density_ratio_acceptance,
    ess_known_moments,
    median_bandwidth,
    mmd_floor,
    mmd_squared,
    mode_weights,
    moment_errors,
    rhat,
)
from salmc.diagnostics.point_sets import squared_distances
from salmc.sampling.draws import Draws
from salmc.target import AbstractTarget
from salmc.targets import GaussianMixture

SUBSETS, POINTS = 10, 2000
"""MMD² is the mean over this many subsets of that many draws, each against fresh exact draws."""

FINE = 0.02
"""A bandwidth for the shape of modes, as a share of the usual one, which sees their weights: the
median distance is that between modes, and points strewn between them hardly show in it."""

_EXACT_STREAM = 5000
_NORMAL_QUANTILE = 1.645
"""95 % of a normal distribution lie below this many standard deviations."""


def judge_chains(
    target: AbstractTarget, draws: Draws, mean: Any = None, std: Any = None
) -> dict[str, Any]:
    """ESS, R-hat, acceptance and bias of chains.

    Args:
        target: what the draws should follow.
        draws: chains; what comes before their burn-in is left out.
        mean, std: of the coordinates, from a reference run, for a target that does not know them.
    """
    positions = np.asarray(draws.chains(), dtype=np.float64)
    chains, count, dim = positions.shape
    flat = positions.reshape(-1, dim)
    if mean is None:
        moments = target.statistic_moments
        assert moments is not None
        judged = np.asarray(target.statistic(jnp.asarray(flat, dtype=float)))
        paths = judged.reshape(chains, count, -1)
        ess = ess_known_moments(paths, moments.mean, moments.std)
        mean, std = np.asarray(target.mean), np.asarray(target.std)
    else:
        ess = ess_known_moments(positions, mean, std)
    errors = moment_errors(flat, mean, std)
    smallest = float(np.min(ess))
    # Forward passes alone, without a Metropolis step, have not asked the density.
    log_density = np.asarray(draws.evaluated().log_density)[:, -count:]
    result: dict[str, Any] = {
        "ess": smallest,
        "draws": count,
        "chains": chains,
        "seconds": draws.seconds,
        "compile_seconds": draws.compile_seconds,
        "ess_per_second": smallest * chains / draws.seconds,
        "rhat": float(np.max(rhat(positions))) if count >= 4 else None,
        "mean_error_rms": float(np.sqrt(np.mean(errors.mean_error**2))),
        "mean_error_max": float(np.max(np.abs(errors.mean_error))),
        "sd_ratio_min": float(np.min(errors.sd_ratio)),
        "sd_ratio_max": float(np.max(errors.sd_ratio)),
        "density_ratio_acceptance": density_ratio_acceptance(log_density),
        "acceptance": None if draws.accepted is None else acceptance_rate(draws.accepted),
    }
    if target.can_sample:
        result["mmd_squared"], result["fine_mmd_squared"] = discrepancy(target, flat)
    if target.component_weights is not None:
        labels = target.component(jnp.asarray(flat, dtype=float))
        result["weight_error"] = mode_weights(labels, target.component_weights).largest_error
    return result


def discrepancy(target: AbstractTarget, points: np.ndarray) -> tuple[float, float]:
    """Mean MMD² over `SUBSETS` subsets of the draws, so that its own noise is small.

    Returns:
        With the usual bandwidth, and with `FINE` times it.
    """
    generator = np.random.default_rng(0)
    size = min(POINTS, len(points))
    values = []
    for i in range(SUBSETS):
        chosen = generator.choice(len(points), size, replace=False)
        values.append(_both(points[chosen], exact_draws(target, POINTS, i)))
    usual, fine = np.mean(values, axis=0)
    return float(usual), float(fine)


def discrepancy_floor(
    target: AbstractTarget, points: int = POINTS, pairs: int = 50
) -> tuple[float, float]:
    """The 95 % quantiles of `discrepancy` for draws that are exact and independent.

    A mean over ten sets is near normal, so the standard deviation of single values, which come
    from `pairs` pairs of sets of exact draws, is enough.
    """
    values = []
    for i in range(pairs):
        first = exact_draws(target, points, 10_000 + 2 * i)
        second = exact_draws(target, POINTS, 10_001 + 2 * i)
        values.append(_both(first, second))
    usual, fine = _NORMAL_QUANTILE * np.std(values, axis=0, ddof=1) / np.sqrt(SUBSETS)
    return float(usual), float(fine)


def _both(points: np.ndarray, exact: np.ndarray) -> tuple[float, float]:
    bandwidth = median_bandwidth(exact)
    return (
        mmd_squared(points, exact, bandwidth),
        mmd_squared(points, exact, FINE * bandwidth),
    )


def between_modes(target: GaussianMixture, points: Any) -> float:
    """The share of points that lie beyond four standard deviations of every mode of a mixture.

    Four in the plane; in other dimensions so many that of a mode's own draws as few, 0.03 %, do.
    """
    apart = np.asarray(points, dtype=float).reshape(-1, 1, target.dim) - np.asarray(target.means)
    z = np.einsum("kij,nkj->nki", np.asarray(target.whitenings), apart)
    nearest = np.min(np.sum(z**2, axis=2), axis=1)
    return float(np.mean(nearest > chi2.isf(np.exp(-8.0), target.dim)))


def mmd(points: np.ndarray, exact: np.ndarray, bandwidth: float) -> float:
    """MMD, the root of the estimate that pairs each point with itself, too.

    It never is below zero, and falls as 1/√n for n independent draws: what a picture over the
    number of draws needs. As a measure of bias the unbiased MMD² is better.
    """
    return float(mmd_path(np.asarray(points), exact, bandwidth)[-1])


def mmd_path(points: np.ndarray, exact: np.ndarray, bandwidth: float) -> np.ndarray:
    """`mmd` of the first t points, for every t from 1 on, from sums that grow with t."""
    points, exact = np.asarray(points, dtype=float), np.asarray(exact, dtype=float)
    centre = exact.mean(axis=0)
    points, exact = points - centre, exact - centre
    within = np.exp(-squared_distances(points, points) / bandwidth)
    # Row t of the lower triangle is what point t adds, once for each order and once for itself.
    added = 2.0 * np.tril(within, -1).sum(axis=1) + np.diagonal(within)
    across = np.exp(-squared_distances(points, exact) / bandwidth).mean(axis=1)
    truth = np.exp(-squared_distances(exact, exact) / bandwidth).mean()
    count = np.arange(1, len(points) + 1)
    square = np.cumsum(added) / count**2 - 2.0 * np.cumsum(across) / count + truth
    return np.sqrt(np.maximum(square, 0.0))


class ExactSet(NamedTuple):
    """Exact draws that clouds of points are compared with, and the bandwidth that suits them.

    Attributes:
        points: the draws.
        bandwidth: the median of their squared distances.
    """

    points: np.ndarray
    bandwidth: float

    @classmethod
    def of(cls, target: AbstractTarget, n: int = POINTS, seed: int = 0) -> "ExactSet":
        """Of a target that can be sampled exactly; see `exact_draws`."""
        points = exact_draws(target, n, seed)
        return cls(points, median_bandwidth(points))

    def mmd_squared(self, points: np.ndarray) -> float:
        """MMD² of a cloud, unbiased."""
        return mmd_squared(points, self.points, self.bandwidth)

    def fine_mmd_squared(self, points: np.ndarray) -> float:
        """MMD² with `FINE` times the bandwidth: it sees points strewn between modes."""
        return mmd_squared(points, self.points, FINE * self.bandwidth)

    def floor(self, size: int) -> float:
        """Which MMD² of `size` exact draws exceeds in 5 % of cases."""
        return mmd_floor(self.points, size, len(self.points), self.bandwidth)


def exact_draws(target: AbstractTarget, n: int, seed: int = 0) -> np.ndarray:
    """Exact draws, from a stream that no training or sampling uses."""
    key = jax.random.fold_in(jax.random.key(_EXACT_STREAM), seed)
    return np.asarray(target.sample(key, n), dtype=np.float64)
