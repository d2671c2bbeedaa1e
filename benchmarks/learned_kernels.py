"""Learned kernels with the defaults of `salmc.fit`: ESS, bias and cost, seeds 0–4."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import salmc
from benchmarks.trained_kernels import defaults, train
from salmc.targets import Banana, EightSchools, Gaussian, GaussianMixture, Mog2, Mog6, Ring, Ring5
from salmc_paper.harness.jobs import Context, Job
from salmc_paper.measures.problems import SYNTHETIC

SEEDS = range(5)
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


def jobs() -> list[Job]:
    """The targets of the paper's first table come first."""
    others = [name for name in TARGETS if name not in SYNTHETIC]
    wanted = [(n, k, s) for k in ("flow", "mlp") for n in SYNTHETIC for s in SEEDS]
    wanted += [(n, k, s) for s in SEEDS for k in ("flow", "mlp") for n in others]
    return [_job(*one) for one in wanted]


def _job(name: str, kernel: str, seed: int) -> Job:
    arguments = {"target": name, "kernel": kernel, "seed": seed}
    settings = defaults(_dimension(name), kernel)
    words = f"{name} {kernel} {seed}"
    return Job("learned_kernels", words, arguments, _run, settings=settings, seconds=60.0)


@functools.cache
def _dimension(name: str) -> int:
    return TARGETS[name]().dim


def _run(context: Context) -> dict[str, Any]:
    kernel, seed = context["kernel"], context["seed"]
    trained = train(TARGETS[context["target"]](), kernel=kernel, seed=seed)
    figures = trained.judge(metropolis=kernel == "flow", seed=seed)
    overhead = trained.seconds + figures["compile_seconds"]
    needed = {f"{n:g}": overhead + n / figures["ess_per_second"] for n in EFFECTIVE}
    return {**figures, **trained.costs, "seconds_to_effective_draws": needed}
