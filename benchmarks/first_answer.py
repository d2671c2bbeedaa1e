"""What a first answer costs: `salmc.sample` beside BlackJAX's NUTS, each in a fresh process.

CPU seconds of the whole process to 10,000 effective draws, by the smallest of bulk and tail ESS:
with nothing compiled, with the programs of that run on disk, and with the verdict. NUTS has 32
chains, a warm-up of 500 steps and as many draws as are needed; where it is wrong, its error says
so. Errors are of means, in standard deviations of the truth, where that is known.

And what a black box of three dimensions costs in evaluations, for 2,000 effective draws.
"""

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np

from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.processes import measured_apart

TARGETS = ("readme", "mog6", "banana", "eight-schools", "german")
BOXES = ("correlated", "bent", "two modes", "edge")
EFFECTIVE, BOX_EFFECTIVE, BUDGET = 10_000, 2_000, 20_000


def jobs() -> list[Job]:
    """One job for each target, with both samplers; and the black boxes."""
    return [
        *(Job("first_answer", name, {"target": name}, _race, seconds=150.0) for name in TARGETS),
        *(Job("first_answer", f"box, {name}", {"box": name}, _box, seconds=30.0) for name in BOXES),
    ]


def _race(context: Context) -> dict[str, Any]:
    figures = {}
    for sampler in ("salmc", "nuts"):
        with tempfile.TemporaryDirectory() as folder:
            for programs in ("compiled", "on disk"):
                figures[f"{sampler}, programs {programs}"] = measured_apart(
                    __name__, sampler, context["target"], folder
                )
    return figures


def _box(context: Context) -> dict[str, Any]:
    import salmc

    found = []
    for seed in range(3):
        asked: list[int] = []

        def log_densities(points: np.ndarray, asked: list[int] = asked) -> np.ndarray:
            asked.append(len(points))
            return box(context["box"], points)

        target = salmc.Target.from_numpy(log_densities, 3, bounds=[(0, 1)] * 3)
        draws = salmc.sample(target, BOX_EFFECTIVE, evaluations=BUDGET, seed=seed, progress=False)
        found.append(
            {
                "evaluations": sum(asked),
                "smallest_ess": _smallest_ess(draws.positions),
                "mean": np.round(draws.sample().mean(axis=0), 3).tolist(),
                "sd": np.round(draws.sample().std(axis=0), 3).tolist(),
                "warnings": list(draws.warnings),
            }
        )
    return {"seeds": found}


def box(name: str, x: np.ndarray) -> np.ndarray:
    """Log densities on the unit cube."""
    if name == "correlated":
        centred = (x - [0.3, 0.5, 0.7]) / 0.1
        matrix = np.array([[1.0, 0.9, 0.5], [0.9, 1.0, 0.3], [0.5, 0.3, 1.0]])
        return -0.5 * np.sum(centred @ np.linalg.inv(matrix) * centred, axis=1)
    if name == "bent":
        first, second, third = (x - 0.5).T
        bent = (second + 0.3 - 2.0 * first**2) / 0.03
        return -0.5 * ((first / 0.15) ** 2 + bent**2 + (third / 0.1) ** 2)
    if name == "two modes":
        low, high = (-0.5 * np.sum(((x - c) / 0.05) ** 2, axis=1) for c in (0.25, 0.75))
        return np.logaddexp(low + np.log(0.3), high + np.log(0.7))
    return -np.sum(x / 0.3, axis=1)


def measure(sampler: str, name: str, folder: str) -> dict[str, Any]:
    """One sampler on one target, in this process."""
    import jax.numpy as jnp

    import salmc
    from salmc.targets.loading import load_target

    salmc.remember_programs(folder)
    if name == "readme":
        target: Any = salmc.Target(lambda x: -0.5 * jnp.sum((x / 2.0) ** 2), dim=2, mean=[0.0] * 2)
        deviation: Any = np.full(2, 2.0)
    else:
        target = load_target(name)
        deviation = None if target.std is None else np.asarray(target.std)
    draws = salmc.sample(target, EFFECTIVE, progress=False) if sampler == "salmc" else _nuts(target)
    drawn = time.process_time()
    found: dict[str, Any] = {
        "cpu_seconds": drawn,
        "smallest_ess": _smallest_ess(draws.positions),
        "draws": int(np.prod(draws.positions.shape[:2])),
    }
    if target.mean is not None and deviation is not None:
        errors = (draws.sample().mean(axis=0) - np.asarray(target.mean)) / deviation
        found["error_of_means"] = float(np.max(np.abs(errors)))
    if sampler == "salmc":
        verdict = draws.summary().verdict
        found |= {
            "cpu_seconds_with_verdict": time.process_time(),
            "verdict": verdict.sentences[0],
            "method": draws.method,
            "evaluations": draws.settings.get("evaluations"),
        }
    return found


def _nuts(target: Any) -> Any:
    """NUTS with as many draws as its first thousand say are needed."""
    from salmc_paper.measures.nuts import nuts

    draws = nuts(target, draws=500, warmup=500)
    found = _smallest_ess(draws.positions)
    if found >= EFFECTIVE:
        return draws
    wanted = int(np.ceil(1.1 * 500 * EFFECTIVE / max(found, 500.0)))
    return nuts(target, draws=wanted, warmup=500)


def _smallest_ess(positions: np.ndarray) -> float:
    from salmc.request.rounds import smallest_ess

    return smallest_ess(positions)


if __name__ == "__main__":
    print(json.dumps(measure(*sys.argv[1:])))
