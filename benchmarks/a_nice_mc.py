"""A-NICE-MC with its defaults, and a NICE kernel learned by SAL-MC: ESS, bias and cost.

32 chains × 2000 draws with exact Metropolis steps, judged as in `learned_kernels`. Each result is
added to `results/a_nice_mc.json` as it comes, and what is there already is not run again. Beside
each ESS stands what the paper reports for A-NICE-MC.
"""

import json
import time
from typing import Any

import salmc
from benchmarks.common import RESULTS, record
from benchmarks.learned_kernels import CHAINS, DRAWS, judge
from salmc.targets.loading import load_target

SEEDS = range(1)
PAPER = {"ring": 2000, "mog2": 951, "mog6": 889, "ring5": 335}
"""ESS of A-NICE-MC in the first table of the paper."""


def run_one(name: str, method: str, seed: int) -> dict[str, Any]:
    """Train, sample, judge."""
    target = load_target(name)
    began = time.perf_counter()
    sampler = salmc.fit(target, method=method, kernel="nice", seed=seed, progress=False)
    trained = time.perf_counter() - began
    draws = sampler.sample(CHAINS, DRAWS, seed=seed, metropolis=True, progress=False)
    return {
        "paper_ess": PAPER[name],
        **judge(target, draws),
        "train_seconds": trained,
        "train_parts": sampler.seconds,
        "steps": sampler.settings["steps"],
        "warnings": list(sampler.warnings),
    }


def main() -> None:
    """Everything that is not there yet."""
    path = RESULTS / "a_nice_mc.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    for method in ("a-nice-mc", "sal-mc"):
        for seed in SEEDS:
            for name in PAPER:
                key = f"{name} {method} {seed}"
                if key not in result:
                    result[key] = run_one(name, method, seed)
                    record("a_nice_mc", result)


if __name__ == "__main__":
    main()
