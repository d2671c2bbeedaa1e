"""AG-SVGD with its defaults: MMD² after 1000 steps of 400 particles from N(0, 2.5 I).

Seeds 0–4, median. Wanted: ≤ 2e-3 on Mog2, Mog6 and Ring, ≤ 1e-2 on Ring5, ≤ 5e-3 on Mog4, and at
most 0.5 % of the particles of any mixture between its modes, which MMD² does not see. MMD² with a
fiftieth of the bandwidth is beside it; so are the same without memory, the same without birth and
death and with the plain density estimate as well, and 400 exact draws against the same 2000.

The last three mixtures are such that no setting was chosen on.
"""

import statistics
from typing import Any

import numpy as np

import salmc
from salmc.targets import GaussianMixture
from salmc_paper.harness.jobs import Context, Job, not_interrupted
from salmc_paper.measures.judging import ExactSet, between_modes, exact_draws
from salmc_paper.measures.problems import find_target, particle_start

SEEDS = 5
SCHEMES: dict[str, dict[str, Any]] = {
    "seeds": {},
    "without_memory": {"memory": False},
    "without_birth_death_and_ratio": {"memory": False, "birth_death": 0.0, "ratio_limit": 0.0},
}
EXACT = "400_exact_draws"


def five_modes() -> GaussianMixture:
    """Five modes of the plane, some round, some long, of weights 0.05 to 0.4."""
    means = [[-5.0, 0.0], [-1.0, 4.0], [0.0, -4.0], [4.0, 3.0], [5.0, -3.0]]
    variances = [[0.2, 0.2], [1.0, 0.1], [0.1, 0.6], [0.5, 0.5], [0.05, 0.05]]
    return GaussianMixture(means, variances, [0.15, 0.4, 0.3, 0.05, 0.1], name="five modes")


def three_in_five_dimensions() -> GaussianMixture:
    """Three modes in five dimensions, of weights 0.2, 0.5 and 0.3 and sd 0.3, 0.6 and 0.9."""
    means = np.zeros((3, 5))
    means[0, :2], means[1, 1:3], means[2, 3:] = (-2.5, 1.0), (2.5, -1.0), (-2.0, 3.0)
    return GaussianMixture(means, np.square([0.3, 0.6, 0.9]), [0.2, 0.5, 0.3], name="three in 5-d")


def twelve_modes() -> GaussianMixture:
    """Twelve equal modes of sd 0.35 on three by four places, three apart."""
    means = [[3.0 * i, 3.0 * j] for i in (-1.0, 0.0, 1.0) for j in (-1.5, -0.5, 0.5, 1.5)]
    return GaussianMixture(means, np.full(12, 0.35**2), name="twelve modes")


OTHERS = {
    "five modes": five_modes,
    "three in 5-d": three_in_five_dimensions,
    "twelve modes": twelve_modes,
}


def jobs() -> list[Job]:
    """One for each target."""
    return [
        Job("ag_svgd_quality", name, {"target": name, "particles": 400, "seeds": SEEDS}, _run, 2)
        for name in ("mog2", "mog6", "ring", "ring5", "mog4", *OTHERS)
    ]


def _run(context: Context) -> dict[str, Any]:
    name, size = context["target"], context["particles"]
    target = OTHERS[name]() if name in OTHERS else find_target(name)
    exact = ExactSet.of(target)
    usual: dict[str, list[float]] = {}
    fine: dict[str, list[float]] = {}
    between: dict[str, list[float]] = {}
    seconds = []
    for seed in range(context["seeds"]):
        clouds = {EXACT: exact_draws(target, size, 2000 + seed)}
        for scheme, settings in SCHEMES.items():
            mover = salmc.movers.AGSVGD(target, **settings)
            start = particle_start(size, target.dim, seed)
            draws = salmc.move(mover, start, seed=seed, progress=False)
            not_interrupted(draws.warnings)
            clouds[scheme] = draws.sample()
            if not settings:
                seconds.append(draws.seconds)
        for scheme, cloud in clouds.items():
            usual.setdefault(scheme, []).append(exact.mmd_squared(cloud))
            fine.setdefault(scheme, []).append(exact.fine_mmd_squared(cloud))
            if isinstance(target, GaussianMixture):
                between.setdefault(scheme, []).append(between_modes(target, cloud))
    return {
        "median": statistics.median(usual["seeds"]),
        **usual,
        "fine": fine,
        "between_modes": between,
        "seconds": statistics.median(seconds),
    }
