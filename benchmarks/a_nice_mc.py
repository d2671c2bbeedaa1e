"""A-NICE-MC with its defaults, and a NICE kernel learned by SAL-MC: ESS, bias and cost.

Chains have exact Metropolis steps. Beside each ESS stands what the paper reports for A-NICE-MC.
"""

from typing import Any

from benchmarks.trained_kernels import defaults, train
from salmc_paper.display import published
from salmc_paper.harness.jobs import Context, Job
from salmc_paper.measures.problems import SYNTHETIC, find_target

SEEDS = range(1)


def jobs() -> list[Job]:
    """A training for each method, seed and target of the paper's first table."""
    found = []
    for method in ("a-nice-mc", "sal-mc"):
        for seed in SEEDS:
            for target in SYNTHETIC:
                arguments = {"target": target, "method": method, "seed": seed}
                settings = defaults(2, "nice", method)
                name = f"{target} {method} {seed}"
                found.append(
                    Job("a_nice_mc", name, arguments, _run, settings=settings, seconds=200.0)
                )
    return found


def _run(context: Context) -> dict[str, Any]:
    target, seed = context["target"], context["seed"]
    trained = train(find_target(target), method=context["method"], kernel="nice", seed=seed)
    paper = published.ess("a-nice-mc", True, target)
    assert paper is not None
    return {
        "paper_ess": paper.value,
        **trained.judge(metropolis=True, seed=seed),
        **trained.costs,
        "steps": trained.sampler.settings["steps"],
        "warnings": list(trained.sampler.warnings),
    }
