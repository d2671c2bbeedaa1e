"""Mog10: error of mean and variance and MMD² against sample size, as the paper's figure does.

20 runs of 500 iterations for each method and size, all from N(0, 2.5 I), measured by the
experiment that draws the figure; here are the means alone.
"""

import statistics
from typing import Any

from salmc_paper.experiments.mog10 import SIZES, STEPS, particle_errors
from salmc_paper.harness.jobs import Context, Job

METHODS = ("ag-svgd", "a-svgd", "sgld")
RUNS = 20


def jobs() -> list[Job]:
    """One for each method and size."""
    return [
        Job(
            "mog10",
            f"{method}, {size} particles",
            {"method": method, "particles": size, "runs": RUNS, "steps": STEPS},
            _run,
            entry=(method, str(size)),
        )
        for method in METHODS
        for size in SIZES
    ]


def _run(context: Context) -> dict[str, Any]:
    told = ("method", "particles", "runs", "steps")
    values = particle_errors(*(context[name] for name in told))
    wanted = ("mse_of_mean", "mse_of_variance", "mmd_squared")
    return {name: statistics.fmean(values[name]) for name in wanted}
