"""The answer survives an affine change of the target, with default settings and start."""

from typing import Any

import salmc
from salmc.targets import Affine
from salmc_paper.harness.jobs import Context, Job, not_interrupted
from salmc_paper.measures.judging import ExactSet
from salmc_paper.measures.problems import find_target

CHANGES = ((0.0, 1.0), (50.0, 1.0), (50.0, 0.01), (50.0, 100.0))
SEEDS = 5


def jobs() -> list[Job]:
    """One for each target."""
    return [
        Job("affine_change", name, {"target": name, "particles": 400, "seeds": SEEDS}, _run)
        for name in ("mog6", "ring", "mog4")
    ]


def _run(context: Context) -> dict[str, Any]:
    """MMD² after 1000 steps, start found by the search."""
    plain, rows = find_target(context["target"]), {}
    for shift, scale in CHANGES:
        target = Affine(plain, shift, scale)
        exact = ExactSet.of(target)
        values = []
        for seed in range(context["seeds"]):
            mover = salmc.movers.AGSVGD(target)
            draws = salmc.move(mover, context["particles"], seed=seed, progress=False)
            not_interrupted(draws.warnings)
            values.append(exact.mmd_squared(draws.sample()))
        rows[f"shift {shift:g}, scale {scale:g}"] = values
    return rows
