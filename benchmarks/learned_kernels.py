"""Learned kernels with the defaults of `salmc.fit`: ESS, bias and cost, seeds 0–4.

32 chains × 2000 draws. Each result is added to `results/learned_kernels.json` as it comes, and what
is there already is not run again, so `python -m benchmarks learned_kernels` can be stopped and
resumed. MMD² is the mean over ten subsets of 2000 draws against as many sets of 2000 exact draws,
so that its own noise is small; the truth judges here, and only here.
"""

import json
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import salmc
from benchmarks.common import RESULTS, record
from salmc.diagnostics import ess_known_moments, median_bandwidth, mmd_squared, rhat
from salmc.targets import Banana, EightSchools, Gaussian, GaussianMixture, Mog2, Mog6, Ring, Ring5

SEEDS = range(5)
CHAINS, DRAWS, SUBSETS = 32, 2000, 10
EFFECTIVE = (1e4, 1e5, 1e6)


def two_far_gaussians() -> GaussianMixture:
    """Two 20-d Gaussians five standard deviations apart."""
    means = np.zeros((2, 20))
    means[:, 0] = (-2.5, 2.5)
    return GaussianMixture(means, np.ones(2), weights=np.array([0.5, 0.5]), name="two20")


def numpy_only() -> salmc.Target:
    """Three unlike coordinates, written in NumPy: skewed, a noisy multiple of it, heavy-tailed.

    x₁ = log Gamma(2),  x₂ = 3 x₁ + N(0, ½²),  x₃ = 100 t₁₀
    """

    def log_densities(points: np.ndarray) -> np.ndarray:
        first, second, third = points.astype(np.float64).T
        skewed = 2.0 * first - np.exp(first)
        return skewed - 2.0 * (second - 3.0 * first) ** 2 - 5.5 * np.log1p(third**2 / 1e5)

    def sample(key: jax.Array, n: int) -> jax.Array:
        keys = jax.random.split(key, 3)
        first = jax.random.loggamma(keys[0], 2.0, (n,))
        second = 3.0 * first + 0.5 * jax.random.normal(keys[1], (n,))
        return jnp.stack([first, second, 100.0 * jax.random.t(keys[2], 10.0, (n,))], axis=1)

    mean, variance = 0.4227843351, 0.6449340668  # of log Gamma(2): ψ(2) and ψ'(2)
    return salmc.Target.from_numpy(
        log_densities,
        3,
        name="numpy3",
        mean=np.array([mean, 3.0 * mean, 0.0]),
        std=np.sqrt([variance, 9.0 * variance + 0.25, 12500.0]),
        sample=sample,
    )


TARGETS = {
    "ring": Ring,
    "mog2": Mog2,
    "mog6": Mog6,
    "ring5": Ring5,
    "gaussian10": lambda: Gaussian.with_condition_number(10, 1000.0),
    "banana": Banana,
    "two20": two_far_gaussians,
    "eight-schools": EightSchools,
    "numpy3": numpy_only,
}


PAPER = ("ring", "mog2", "mog6", "ring5")
"""The targets of the paper's first table; they come first."""


def discrepancy(target: salmc.AbstractTarget, draws: np.ndarray) -> float:
    """Mean MMD² over subsets."""
    generator = np.random.default_rng(0)
    values = []
    for i in range(SUBSETS):
        exact = np.asarray(target.sample(jax.random.key(5000 + i), 2000))
        chosen = generator.choice(len(draws), 2000, replace=False)
        values.append(mmd_squared(draws[chosen], exact, median_bandwidth(exact)))
    return float(np.mean(values))


def judge(target: salmc.AbstractTarget, draws: salmc.Draws) -> dict[str, Any]:
    """ESS with the bias figures beside it."""
    moments = target.statistic_moments
    flat = draws.positions.reshape(-1, target.dim)
    values = np.asarray(target.statistic(jnp.asarray(flat)))
    paths = values.reshape(CHAINS, DRAWS, -1)
    ess = float(np.min(ess_known_moments(paths, moments.mean, moments.std)))
    result: dict[str, Any] = {
        "ess": ess,
        "mmd_squared": discrepancy(target, flat),
        "rhat": float(np.max(rhat(draws.positions))),
        "mean_error": float(np.max(np.abs(flat.mean(0) - target.mean) / target.std)),
        "sd_ratio": [float(value) for value in (flat.std(0) / target.std)],
        "sample_seconds": draws.seconds,
        "sample_compile_seconds": draws.compile_seconds,
        "ess_per_second": ess * CHAINS / draws.seconds,
        "acceptance": None if draws.accepted is None else float(np.mean(draws.accepted)),
        "trustworthy": draws.summary().verdict.trustworthy,
        "verdict": draws.summary().verdict.sentences[:2],
    }
    if target.component_weights is not None:
        labels = np.asarray(target.component(jnp.asarray(flat)))
        weights = np.bincount(labels, minlength=len(target.component_weights)) / len(labels)
        result["weight_error"] = float(np.max(np.abs(weights - target.component_weights)))
    return result


def run_one(name: str, kernel: str, seed: int) -> dict[str, Any]:
    """Train, sample, judge."""
    target = TARGETS[name]()
    began = time.perf_counter()
    sampler = salmc.fit(target, kernel=kernel, seed=seed, progress=False)
    trained = time.perf_counter() - began
    metropolis = kernel == "flow"
    draws = sampler.sample(CHAINS, DRAWS, seed=seed, metropolis=metropolis, progress=False)
    result = judge(target, draws)
    rate = result["ess_per_second"]
    overhead = trained + draws.compile_seconds
    result["train_seconds"] = trained
    result["train_parts"] = sampler.seconds
    result["seconds_to_effective_draws"] = {f"{n:g}": overhead + n / rate for n in EFFECTIVE}
    return result


def main() -> None:
    """Everything that is not there yet."""
    path = RESULTS / "learned_kernels.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    jobs = [(n, k, s) for k in ("flow", "mlp") for n in PAPER for s in SEEDS]
    jobs += [(n, k, s) for s in SEEDS for k in ("flow", "mlp") for n in TARGETS if n not in PAPER]
    for name, kernel, seed in jobs:
        key = f"{name} {kernel} {seed}"
        if key in result:
            continue
        result[key] = run_one(name, kernel, seed)
        record("learned_kernels", result)


if __name__ == "__main__":
    main()
