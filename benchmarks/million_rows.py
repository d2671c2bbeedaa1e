"""A logistic regression of 10⁶ rows and 10 features: time, peak memory, and whether it is right.

`salmc.fit` with its defaults and 32 × 500 exact draws, and `salmc.sample(effective=10_000)`, each
in a process of its own; what an evaluation costs beside one pass over the data (a matrix product of
the same points with all rows). With so many data the posterior is Gaussian to within 10⁻³ of its
width, so the truth is the maximum, found by Newton's steps in double precision, and the inverse of
the Hessian there. "Right": no mean is off by more than 0.05 sd, no sd by more than 5 %.
"""

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.processes import measured_apart

ROWS, FEATURES = 10**6, 10
SEEDS = range(3)
_NEWTON = 12
_POINTS = 32


def jobs() -> list[Job]:
    """One for each way and seed."""
    return [
        Job("million_rows", f"{way} {seed}", {"way": way, "seed": seed}, _run, seconds=300.0)
        for seed in SEEDS
        for way in ("fit", "sample")
    ]


def _run(context: Context) -> dict[str, Any]:
    return measured_apart(__name__, context["way"], str(context["seed"]))


def data() -> tuple[np.ndarray, np.ndarray]:
    """Features and labels, correlated and on different scales."""
    generator = np.random.default_rng(11)
    mixing = np.eye(FEATURES) + 0.4 * generator.normal(size=(FEATURES, FEATURES))
    features = generator.standard_normal((ROWS, FEATURES), np.float32) @ mixing.astype(np.float32)
    weights = generator.normal(size=FEATURES) * 0.5
    chances = 1.0 / (1.0 + np.exp(-(features @ weights - 0.3)))
    return features, (generator.random(ROWS) < chances).astype(int)


def laplace(rows: np.ndarray, prior_scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The maximum, and standard deviations by the inverse Hessian, in double precision."""
    found = np.zeros(rows.shape[1])
    for _ in range(_NEWTON):
        gradient, hessian = -found / prior_scale**2, np.eye(len(found)) / prior_scale**2
        for part in np.array_split(rows, 20):
            wide = part.astype(np.float64)
            chance = 1.0 / (1.0 + np.exp(wide @ found))
            gradient += wide.T @ chance
            hessian += wide.T @ (wide * (chance * (1.0 - chance))[:, None])
        found = found + np.linalg.solve(hessian, gradient)
    return found, np.sqrt(np.diag(np.linalg.inv(hessian)))


def measure(way: str, seed: int) -> dict[str, Any]:
    """One way to draws, in this process."""
    import salmc

    features, labels = data()
    target = salmc.targets.LogisticRegression(features, labels)
    del features, labels
    loaded = _peak()
    began, cpu = time.perf_counter(), time.process_time()
    if way == "fit":
        sampler = salmc.fit(target, seed=seed, progress=False)
        prepared = time.perf_counter() - began
        draws = sampler.sample(draws=500, seed=seed, progress=False)
    else:
        draws = salmc.sample(target, 10_000, seed=seed, progress=False)
        prepared = float(draws.settings["search_seconds"])
    drawn, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = _peak()
    summary = draws.summary()
    mean, sd = laplace(np.asarray(target.signed_rows), float(target.prior_scale))
    flat = draws.positions.reshape(-1, draws.dim).astype(np.float64)
    off = float(np.max(np.abs(flat.mean(axis=0) - mean) / sd))
    wide = float(np.max(np.abs(flat.std(axis=0) / sd - 1.0)))
    return {
        "seconds_prepared": prepared,
        "seconds_drawn": drawn,
        "cpu_seconds": cpu,
        "peak_gb": peak,
        "peak_gb_before": loaded,
        "peak_gb_with_summary": _peak(),
        "mean_off": off,
        "sd_off": wide,
        "right": off <= 0.05 and wide <= 0.05,
        "smallest_ess": summary.evidence.smallest_ess,
        "verdict": summary.verdict.degree,
        "sentences": summary.verdict.sentences[:3],
        "method": draws.method,
        "over_one_pass": _over_one_pass(target),
    }


def _over_one_pass(target: Any) -> float:
    """Seconds of log densities at some points, over those of the product with all rows alone."""
    import equinox as eqx
    import jax.numpy as jnp

    from salmc_paper.harness.timing import take_turns

    points = jnp.zeros((_POINTS, target.dim))
    evaluate = eqx.filter_jit(lambda target, points: target.log_densities(points))
    product = eqx.filter_jit(lambda target, points: jnp.sum(points @ target.signed_rows.T, axis=1))
    timed = take_turns(
        {"all": lambda: evaluate(target, points), "product": lambda: product(target, points)}
    )
    return timed["all"].best / timed["product"].best


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
