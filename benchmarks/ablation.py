"""What each term of the objective buys: one change at a time, per target, seed 0."""

from typing import Any

from benchmarks.trained_kernels import defaults, train
from salmc_paper.harness.jobs import Context, Job
from salmc_paper.measures.problems import find_target

FLOW: dict[str, dict[str, Any]] = {
    "likelihood + regression (default)": {},
    "likelihood alone": {"regression": 0.0},
    "regression alone": {"likelihood": 0.0},
    "adversarial alone": {"likelihood": 0.0, "regression": 0.0, "adversarial": 1.0},
    "adversarial + likelihood": {"regression": 0.0, "adversarial": 1.0},
    "all three": {"adversarial": 1.0},
    "default + W2 (closed, 0.1)": {"wasserstein": 0.1},
}
MLP: dict[str, dict[str, Any]] = {
    "adversarial + decorrelation (default)": {},
    "adversarial alone": {"decorrelation": 0.0},
    "logistic form (the paper's)": {"adversarial_form": "logistic"},
    "default + W2 (closed, 0.1)": {"wasserstein": 0.1},
    "default + W2 (sinkhorn, 0.1)": {"wasserstein": 0.1, "wasserstein_form": "sinkhorn"},
    "refresh 1.0 (the paper's)": {"refresh": 1.0},
    "no calibration": {"calibrate": False},
}
TARGETS = ("mog6", "ring5", "ring", "mog2")


def jobs() -> list[Job]:
    """A training for each change, of each kernel, on each target."""
    found = []
    for target in TARGETS:
        for kernel, variants in (("flow", FLOW), ("mlp", MLP)):
            for label, changes in variants.items():
                arguments = {"target": target, "kernel": kernel, "changes": changes}
                settings = defaults(2, kernel, **changes)
                name = f"{target} | {kernel} | {label}"
                found.append(
                    Job("ablation", name, arguments, _run, settings=settings, seconds=60.0)
                )
    return found


def _run(context: Context) -> dict[str, Any]:
    kernel, changes = context["kernel"], context["changes"]
    trained = train(find_target(context["target"]), kernel=kernel, settings=changes)
    figures = {"forward": trained.judge(metropolis=False)}
    if kernel == "flow":
        figures["exact"] = trained.judge(metropolis=True)
    return figures
