"""Mog10: error of mean and variance and MMD² against sample size, as the paper's figure does.

20 runs of 500 iterations for each method and size, all from N(0, 2.5 I).
"""

import jax
import jax.numpy as jnp
import numpy as np

import salmc
from benchmarks.common import record
from salmc.diagnostics import median_bandwidth, mmd_squared, moment_errors
from salmc.targets import Mog10

METHODS = ("ag-svgd", "a-svgd", "sgld")
SIZES = (50, 100, 200, 400)
RUNS = 20


def settings(method: str) -> dict[str, float]:
    """A-SVGD must know when its annealing ends; the others have their defaults."""
    return {"annealing_steps": 400} if method == "a-svgd" else {}


def main() -> None:
    """Run and record."""
    target = Mog10()
    reference = np.asarray(target.sample(jax.random.key(1000), 2000))
    bandwidth = median_bandwidth(reference)
    result: dict[str, dict[str, dict[str, float]]] = {}
    for method in METHODS:
        result[method] = {}
        for size in SIZES:
            means, variances, discrepancies = [], [], []
            for seed in range(RUNS):
                start = jnp.sqrt(2.5) * jax.random.normal(jax.random.key(100 + seed), (size, 5))
                mover = salmc.movers.MOVERS[method](target, **settings(method))
                draws = salmc.run(
                    mover, particles=start, steps=500, seed=seed, keep=1, progress=False
                )
                cloud = draws.positions[:, -1]
                errors = moment_errors(cloud, np.asarray(target.mean), np.asarray(target.std))
                means.append(errors.mean_mse)
                variances.append(errors.variance_mse)
                discrepancies.append(mmd_squared(cloud, reference, bandwidth))
            result[method][str(size)] = {
                "mse_of_mean": float(np.mean(means)),
                "mse_of_variance": float(np.mean(variances)),
                "mmd_squared": float(np.mean(discrepancies)),
            }
            print(method, size, result[method][str(size)], flush=True)
    record("mog10", result)
