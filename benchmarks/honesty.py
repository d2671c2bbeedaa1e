"""Is the verdict honest? No wrong result may be called trustworthy, and no right one the opposite.

Three kinds of rows. Results made by hand (`honesty_right`, `honesty_wrong`, and in pairs
`honesty_subtle`, `honesty_traps`, `honesty_wide` and
`honesty_values`), of which the truth is known without any
sampler; results that parts of the library make where they succeed and fail (`honesty_parts`); and
real fits of `hard_posteriors`, with defaults, with too little training and with the
kernel that is not exact, of which its figures tell whether they came out right. Each row has our
degree, and beside it what R-hat and ESS alone say by the usual limits of ArviZ (R-hat ≤ 1.01,
ESS ≥ 400).
"""

import time
from typing import Any

import numpy as np

import salmc
from benchmarks import hard_posteriors, honesty_parts
from benchmarks.honesty_right import RIGHT as CLEAR_RIGHT
from benchmarks.honesty_subtle import SUBTLE_RIGHT, SUBTLE_WRONG
from benchmarks.honesty_traps import TRAP_RIGHT, TRAP_WRONG
from benchmarks.honesty_truths import CHAINS
from benchmarks.honesty_values import VALUED_RIGHT, VALUED_WRONG
from benchmarks.honesty_wide import WIDE_RIGHT, WIDE_WRONG
from benchmarks.honesty_wrong import WRONG as CLEAR_WRONG
from salmc_paper.harness.jobs import Context, Job, not_interrupted

RIGHT = CLEAR_RIGHT | SUBTLE_RIGHT | TRAP_RIGHT | WIDE_RIGHT | VALUED_RIGHT
WRONG = CLEAR_WRONG | SUBTLE_WRONG | TRAP_WRONG | WIDE_WRONG | VALUED_WRONG
SEEDS = (4, 5)
"""None of those on which anything was tried while the verdict was built: 0 to 3, and 7."""

FITS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "little training": {"steps": 60},
    "mlp": {"kernel": "mlp"},
}


def jobs() -> list[Job]:
    """Seed by seed; results made by hand first, as they take seconds."""
    made = [_job("made", name, seed, 10.0) for seed in SEEDS for name in (*RIGHT, *WRONG)]
    fits = [
        _job(kind, name, seed, 90.0)
        for seed in SEEDS
        for kind in FITS
        for name in hard_posteriors.CASES
    ]
    parts = [_job("part", name, seed, 30.0) for seed in SEEDS for name in honesty_parts.PARTS]
    return made + parts + fits


def _job(kind: str, name: str, seed: int, seconds: float) -> Job:
    arguments = {"kind": kind, "case": name, "seed": seed}
    return Job("honesty", f"{kind}: {name} {seed}", arguments, _run, seconds=seconds)


def make(name: str, seed: int = 0) -> salmc.Draws:
    """A result made by hand."""
    generator = np.random.default_rng([seed, *name.encode()])
    target, points = (RIGHT if name in RIGHT else WRONG)[name](generator)
    if points.ndim == 2:
        length = len(points) // CHAINS
        points = points[: CHAINS * length].reshape(CHAINS, length, -1)
    positions = np.asarray(points, np.float32)
    values = None
    if name == "values of another density":
        values = np.asarray(-np.sum(np.abs(positions), axis=2), np.float32)
    kind: Any = "particles" if "particles" in name else "chains"
    return salmc.Draws(positions, values, seconds=1.0, kind=kind, target=target, method="made")


def _run(context: Context) -> dict[str, Any]:
    kind, name, seed = context["kind"], context["case"], context["seed"]
    if kind == "made":
        draws, right = make(name, seed), name in RIGHT
    elif kind == "part":
        draws, beside = honesty_parts.make(name, seed)
        right = beside.degree == "right"
    else:
        draws, right = _fitted(kind, name, seed)
    began = time.perf_counter()
    summary = draws.summary(seed=seed)
    rhat, ess = summary.evidence.largest_rhat, summary.evidence.smallest_ess
    usual = rhat is not None and ess is not None and rhat <= 1.01 and ess >= 400
    return {
        "right": right,
        "degree": summary.verdict.degree,
        "sentences": summary.verdict.sentences[:3],
        "arviz": "good" if usual else "bad",
        "rhat": rhat,
        "ess": ess,
        "evaluations": None
        if summary.evidence.trial is None
        else summary.evidence.trial.evaluations,
        "summary_seconds": time.perf_counter() - began,
    }


def _fitted(kind: str, name: str, seed: int) -> tuple[salmc.Draws, bool]:
    """Draws of a real fit, and whether its figures are within what is allowed."""
    case = hard_posteriors.CASES[name]
    sampler = salmc.fit(case.target(), seed=seed, progress=False, **FITS[kind])
    draws = sampler.sample(seed=seed, progress=False)
    not_interrupted(draws.warnings)
    found = case.figures(draws.positions.reshape(-1, draws.dim))
    errors = (abs(found[figure] - truth) <= most for figure, (truth, most) in case.truth.items())
    return draws, all(errors)
