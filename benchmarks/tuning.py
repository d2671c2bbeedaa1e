"""Does tuning by discrepancies find good settings? Truth judges here, and only here.

Movers start from settings that are wrong by a factor of ten. The mixture played no part in choosing
defaults; the banana did for some movers.
"""

import jax
import numpy as np

import salmc
from benchmarks.common import record
from salmc.diagnostics import median_bandwidth, mmd_squared
from salmc.movers import AGSVGD, SGLD, SVGD, tune
from salmc.targets import Banana, GaussianMixture

MIXTURE = GaussianMixture(
    weights=np.array([0.5, 0.3, 0.2]),
    means=np.array([[0.0, 0.0, 3.0], [3.0, 0.0, 0.0], [-2.0, 3.0, 0.0]]),
    covariances=np.array([0.3, 0.6, 1.0]),
    name="mixture",
)


def main() -> None:
    """MMD² of a run with the wrong, the tuned and the default settings."""
    result: dict[str, dict[str, object]] = {}
    for target in (MIXTURE, Banana()):
        reference = np.asarray(target.sample(jax.random.key(1000), 2000))
        bandwidth = median_bandwidth(reference)
        for kind in (AGSVGD, SVGD, SGLD):
            default = kind(target)
            wrong = kind(target, step_size=float(default.step_size) / 10)
            tuned = tune(wrong, progress=False)
            row: dict[str, object] = {"best_settings": tuned.trials[0].settings}
            for label, mover in (("default", default), ("wrong", wrong), ("tuned", tuned.mover)):
                draws = salmc.run(mover, particles=400, steps=500, progress=False)
                row[label] = mmd_squared(draws.positions[:, -1], reference, bandwidth)
            result[f"{kind.name} on {target.name}"] = row
    record("tuning", result)
