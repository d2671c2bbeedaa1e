"""AG-SVGD with its defaults: MMD² after 1000 steps of 400 particles from N(0, 2.5 I).

Seeds 0–4, median. Wanted: ≤ 2e-3 on Mog2, Mog6 and Ring, ≤ 1e-2 on Ring5, ≤ 5e-3 on Mog4. The
same without memory, the same without birth and death and with the plain density estimate as well,
and the floor are beside it: 400 exact draws against 2000.
"""

import statistics
from typing import Any

import salmc
from salmc_paper.harness.jobs import Context, Job, not_interrupted
from salmc_paper.measures.judging import ExactSet, exact_draws
from salmc_paper.measures.problems import find_target, particle_start

SEEDS = 5
SCHEMES: dict[str, dict[str, Any]] = {
    "seeds": {},
    "without_memory": {"memory": False},
    "without_birth_death_and_ratio": {"memory": False, "birth_death": 0.0, "ratio_limit": 0.0},
}


def jobs() -> list[Job]:
    """One for each target."""
    return [
        Job("ag_svgd_quality", name, {"target": name, "particles": 400, "seeds": SEEDS}, _run)
        for name in ("mog2", "mog6", "ring", "ring5", "mog4")
    ]


def _run(context: Context) -> dict[str, Any]:
    target, size = find_target(context["target"]), context["particles"]
    exact = ExactSet.of(target)
    values: dict[str, list[float]] = {name: [] for name in (*SCHEMES, "400_exact_draws")}
    seconds = []
    for seed in range(context["seeds"]):
        for name, settings in SCHEMES.items():
            mover = salmc.movers.AGSVGD(target, **settings)
            start = particle_start(size, target.dim, seed)
            draws = salmc.move(mover, start, seed=seed, progress=False)
            not_interrupted(draws.warnings)
            values[name].append(exact.mmd_squared(draws.sample()))
            if not settings:
                seconds.append(draws.seconds)
        floor = exact_draws(target, size, 2000 + seed)
        values["400_exact_draws"].append(exact.mmd_squared(floor))
    return {
        "median": statistics.median(values["seeds"]),
        **values,
        "seconds": statistics.median(seconds),
    }
