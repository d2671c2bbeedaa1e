"""Mog10: error of mean and variance and MMD² against sample size, as the paper's figure does.

20 runs of 500 iterations for each method and size, all from N(0, 2.5 I), measured by the
experiment that draws the figure; here are the means alone. Two mixtures that no setting was chosen
on are beside it, of other dimensions, weights and widths, with 10 runs.
"""

import statistics
from typing import Any

import numpy as np

from salmc.targets import GaussianMixture
from salmc_paper.experiments.mog10 import DEFAULTS, SIZES, STEPS, particle_errors
from salmc_paper.harness.jobs import Context, Job

METHODS = ("ag-svgd", "ag-svgd without memory", "a-svgd", "sgld", "exact")
RUNS, OTHER_RUNS = 20, 10


def three_modes() -> GaussianMixture:
    """Three modes in three dimensions, of weights 0.5, 0.3 and 0.2 and sd 0.4, 0.9 and 0.6."""
    means = [[-2.0, 0.0, 1.0], [2.0, 1.5, -1.0], [0.5, -2.0, -0.5]]
    return GaussianMixture(means, np.square([0.4, 0.9, 0.6]), [0.5, 0.3, 0.2], name="three modes")


def four_modes() -> GaussianMixture:
    """Four modes in four dimensions, long and narrow, each turned its own way."""
    generator = np.random.default_rng(6)
    factors = 0.4 * generator.normal(size=(4, 4, 4))
    covariances = factors @ np.swapaxes(factors, 1, 2) + 0.1 * np.eye(4)
    means = 1.5 * generator.normal(size=(4, 4))
    return GaussianMixture(means, covariances, [0.4, 0.3, 0.2, 0.1], name="four modes")


OTHERS = {"three modes": three_modes, "four modes": four_modes}


def jobs() -> list[Job]:
    """One for each method and size, of Mog10 and of the others."""
    found = []
    for method in METHODS:
        for size in SIZES:
            arguments = {"method": method, "particles": size, "runs": RUNS, "steps": STEPS}
            settings = DEFAULTS.get(method, {})
            name, entry = f"{method}, {size} particles", (method, str(size))
            found.append(Job("mog10", name, arguments, _run, settings=settings, entry=entry))
    for target in OTHERS:
        for method in METHODS:
            for size in (SIZES[0], SIZES[-1]):
                arguments = {
                    "target": target,
                    "method": method,
                    "particles": size,
                    "runs": OTHER_RUNS,
                    "steps": STEPS,
                }
                name = f"{target}, {method}, {size} particles"
                place = (target, method, str(size))
                settings = DEFAULTS.get(method, {})
                found.append(Job("mog10", name, arguments, _run, settings=settings, entry=place))
    return found


def _run(context: Context) -> dict[str, Any]:
    other = context.arguments.get("target")
    values = particle_errors(
        context["method"],
        context["particles"],
        context["runs"],
        context["steps"],
        None if other is None else OTHERS[other](),
    )
    wanted = ("mse_of_mean", "mse_of_variance", "mmd_squared")
    return {name: statistics.fmean(values[name]) for name in wanted}
