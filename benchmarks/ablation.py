"""What each term of the objective buys: one change at a time, per target, seed 0.

Like `learned_kernels`, it adds each result as it comes and can be stopped and resumed.
"""

import json

import salmc
from benchmarks.common import RESULTS, record
from benchmarks.learned_kernels import CHAINS, DRAWS, TARGETS, judge

FLOW = {
    "likelihood + regression (default)": {},
    "likelihood alone": {"regression": 0.0},
    "regression alone": {"likelihood": 0.0},
    "adversarial alone": {"likelihood": 0.0, "regression": 0.0, "adversarial": 1.0},
    "adversarial + likelihood": {"regression": 0.0, "adversarial": 1.0},
    "all three": {"adversarial": 1.0},
    "default + W2 (closed, 0.1)": {"wasserstein": 0.1},
}
MLP = {
    "adversarial + decorrelation (default)": {},
    "adversarial alone": {"decorrelation": 0.0},
    "logistic form (the paper's)": {"adversarial_form": "logistic"},
    "default + W2 (closed, 0.1)": {"wasserstein": 0.1},
    "default + W2 (sinkhorn, 0.1)": {"wasserstein": 0.1, "wasserstein_form": "sinkhorn"},
    "refresh 1.0 (the paper's)": {"refresh": 1.0},
    "no calibration": {"calibrate": False},
}
NAMES = ("mog6", "ring5", "ring", "mog2")


def main() -> None:
    """Everything that is not there yet."""
    path = RESULTS / "ablation.json"
    result = json.loads(path.read_text()) if path.exists() else {}
    for name in NAMES:
        for kernel, variants in (("flow", FLOW), ("mlp", MLP)):
            for label, changes in variants.items():
                key = f"{name} | {kernel} | {label}"
                if key in result:
                    continue
                target = TARGETS[name]()
                sampler = salmc.fit(target, kernel=kernel, settings=changes, progress=False)
                row: dict[str, object] = {}
                for metropolis in (False, True) if kernel == "flow" else (False,):
                    draws = sampler.sample(CHAINS, DRAWS, metropolis=metropolis, progress=False)
                    row["exact" if metropolis else "forward"] = judge(target, draws)
                result[key] = row
                record("ablation", result)
