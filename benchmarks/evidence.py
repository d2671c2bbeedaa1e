"""Evidence: `draws.log_evidence()` beside nested sampling, on densities whose log Z is known.

Gaussians of equal correlations, two modes of 0.3 : 0.7, a bent ridge, and a funnel, in 2, 10 and 25
dimensions. Nested samplers have a uniform prior on a box that holds all but nothing of the mass;
salmc has the density alone, as a black box with that box as its bounds, and once as a JAX function.
Each in a fresh process, with its defaults; `salmc.sample(target, effective=4000)`.
"""

import functools
import json
import math
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

METHODS = {"salmc": None, "salmc, black box": None, "dynesty": "dynesty", "nautilus": "nautilus"}
CASES = ("correlated", "two modes", "bent", "funnel")
DIMENSIONS = (2, 10, 25)
EDGE = 12.0
"""Half of the width of the box: beyond it lies less than 10⁻⁴ of any of these."""

EFFECTIVE, LIMIT = 4000, 300.0


def log_density(case: str, x: Any, xp: Any) -> Any:
    """Of points (…, dim), by NumPy or JAX."""
    dim = x.shape[-1]
    if case == "correlated":
        # Precision of unit variances and correlations of 0.5: 2 I − 2/(dim + 1) 1 1ᵀ.
        return -xp.sum(x**2, axis=-1) + xp.sum(x, axis=-1) ** 2 / (dim + 1)
    if case == "two modes":
        low, high = (-0.5 * xp.sum((x - centre) ** 2, axis=-1) for centre in (-3.0, 3.0))
        return xp.logaddexp(low + math.log(0.3), high + math.log(0.7))
    if case == "bent":
        bent = x[..., 1] - 0.3 * (x[..., 0] ** 2 - 4.0)
        rest = xp.sum(x[..., 2:] ** 2, axis=-1)
        return -0.5 * ((x[..., 0] / 1.5) ** 2 + (bent / 0.5) ** 2 + rest)
    rest = xp.sum(x[..., 1:] ** 2, axis=-1)
    return -0.5 * (x[..., 0] ** 2 + rest * xp.exp(-x[..., 0])) - 0.5 * (dim - 1) * x[..., 0]


def log_evidence(case: str, dim: int) -> float:
    """The integral over all of space."""
    gaussian = 0.5 * dim * math.log(2.0 * math.pi)
    if case == "correlated":
        return gaussian + 0.5 * ((dim - 1) * math.log(0.5) + math.log(0.5 * (dim + 1)))
    return gaussian + (math.log(1.5 * 0.5) if case == "bent" else 0.0)


def jobs() -> list[Any]:
    """One for each density, dimension and method."""
    from salmc_paper.harness.jobs import Job

    return [
        Job(
            "evidence",
            f"{case} {dim}-d, {method}",
            {"case": case, "dim": dim, "method": method, "seed": 0},
            functools.partial(_run),
            entry=(case, f"{dim}-d", method),
            seconds=60.0,
        )
        for case in CASES
        for dim in DIMENSIONS
        for method in METHODS
    ]


def _run(context: Any) -> dict[str, Any]:
    from benchmarks.peers.environments import python_of
    from benchmarks.peers.processes import explained

    root = Path(__file__).parents[1]
    python = python_of(METHODS[context["method"]])
    asked = [context["case"], str(context["dim"]), context["method"], str(context["seed"])]
    sources = [str(root), *([str(root / "src")] if METHODS[context["method"]] is None else [])]
    done = subprocess.run(
        [python, "-m", __name__, *asked],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        outcome, sentence = explained(done.returncode, done.stderr, {"cpu_limit": LIMIT})
        return {"outcome": outcome, "sentence": sentence}
    figures = json.loads(done.stdout.splitlines()[-1])
    truth = log_evidence(context["case"], context["dim"])
    value, error = figures["log_evidence"], figures["standard_error"]
    judged = {} if value is None else {"off": value - truth, "z": (value - truth) / error}
    return {"outcome": "done", "truth": truth, **figures, **judged}


def measure(case: str, dim: int, method: str, seed: int) -> dict[str, Any]:
    """One method on one density, in this process and its environment."""
    evaluations = 0

    def values(points: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        points = np.atleast_2d(points)
        evaluations += len(points)
        with np.errstate(all="ignore"):
            return np.maximum(log_density(case, points, np), -1e100)

    volume = dim * math.log(2.0 * EDGE)
    if method == "dynesty":
        import dynesty

        transform = lambda u: EDGE * (2.0 * u - 1.0)  # noqa: E731
        generator = np.random.default_rng(seed)
        one = lambda x: float(values(x)[0])  # noqa: E731
        sampler = dynesty.NestedSampler(one, transform, dim, rstate=generator)
        sampler.run_nested(print_progress=False)
        found = (sampler.results.logz[-1] + volume, sampler.results.logzerr[-1], "")
    elif method == "nautilus":
        import nautilus

        prior = nautilus.Prior()
        for _ in range(dim):
            prior.add_parameter(dist=(-EDGE, EDGE))
        sampler = nautilus.Sampler(prior, values, vectorized=True, pass_dict=False, seed=seed)
        sampler.run(discard_exploration=True)
        found = (sampler.log_z + volume, 1.0 / math.sqrt(sampler.n_eff), "")
    else:
        import jax.numpy as jnp

        import salmc

        if method == "salmc":
            target = salmc.Target(lambda x: log_density(case, x, jnp), dim)
        else:
            target = salmc.Target.from_numpy(values, dim, bounds=[(-EDGE, EDGE)] * dim)
        draws = salmc.sample(target, EFFECTIVE, seed=seed, progress=False)
        told = draws.log_evidence()
        found = (told.value, told.standard_error, str(told))
    value, error, sentence = found
    known = math.isfinite(value)
    return {
        "log_evidence": float(value) if known else None,
        "standard_error": float(error) if known else None,
        "sentence": sentence,
        "cpu_seconds": time.process_time(),
        "evaluations": evaluations or None,
        **({"way": draws.method} if method.startswith("salmc") else {}),
    }


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CPU, (int(LIMIT), int(LIMIT) + 10))
    name, size, who, number = sys.argv[1:]
    print(json.dumps(measure(name, int(size), who, int(number))))
