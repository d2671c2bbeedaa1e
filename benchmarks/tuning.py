"""Does tuning by discrepancies find good settings? Truth judges here, and only here.

Movers start from settings that are wrong by a factor of ten. The mixture played no part in choosing
defaults; the banana did for some movers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import salmc
from salmc.movers import AGSVGD, SGLD, SVGD, tune
from salmc.targets import Banana, GaussianMixture
from salmc_paper.harness.jobs import Context, Job, not_interrupted
from salmc_paper.measures.judging import ExactSet


def mixture() -> GaussianMixture:
    """Three unlike modes in three dimensions."""
    return GaussianMixture(
        weights=np.array([0.5, 0.3, 0.2]),
        means=np.array([[0.0, 0.0, 3.0], [3.0, 0.0, 0.0], [-2.0, 3.0, 0.0]]),
        covariances=np.array([0.3, 0.6, 1.0]),
        name="mixture",
    )


TARGETS: dict[str, Callable[[], salmc.AbstractTarget]] = {"mixture": mixture, "banana": Banana}
MOVERS: dict[str, Any] = {mover.name: mover for mover in (AGSVGD, SVGD, SGLD)}


def jobs() -> list[Job]:
    """One for each mover and target."""
    return [
        Job("tuning", f"{method} on {target}", {"method": method, "target": target}, _run)
        for target in TARGETS
        for method in MOVERS
    ]


def _run(context: Context) -> dict[str, Any]:
    """MMD² of a run with the wrong, the tuned and the default settings."""
    target, kind = TARGETS[context["target"]](), MOVERS[context["method"]]
    exact = ExactSet.of(target)
    default = kind(target)
    wrong = kind(target, step_size=float(default.step_size) / 10)
    tuned = tune(wrong, progress=False)
    figures: dict[str, Any] = {"best_settings": tuned.trials[0].settings}
    for label, mover in (("default", default), ("wrong", wrong), ("tuned", tuned.mover)):
        draws = salmc.move(mover, 400, 500, progress=False)
        not_interrupted(draws.warnings)
        figures[label] = exact.mmd_squared(draws.positions[:, -1])
    return figures
