"""Results of the form that experiments give, made up: nothing is trained or sampled."""

import numpy as np

from salmc_paper.experiments import races
from salmc_paper.harness.jobs import Plan, Record, Results
from salmc_paper.registry import load

CHAIN_FIGURES = {
    "ess": 1800.0,
    "draws": 2000,
    "chains": 32,
    "seconds": 0.5,
    "compile_seconds": 3.0,
    "ess_per_second": 115200.0,
    "rhat": 1.001,
    "mean_error_rms": 0.02,
    "mean_error_max": 0.05,
    "sd_ratio_min": 0.97,
    "sd_ratio_max": 1.04,
    "density_ratio_acceptance": 0.75,
    "acceptance": None,
    "mmd_squared": 1e-4,
    "fine_mmd_squared": 1e-5,
    "weight_error": 0.01,
    "train_seconds": 30.0,
    "train_compile_seconds": 8.0,
    "train_parts": {"training": 30.0, "compile": 8.0},
    "train_steps": 4000,
}


def made_up(job):
    """Figures and arrays of the form that the job would give."""
    generator = np.random.default_rng(0)
    arguments = job.arguments
    if "floor" in arguments:
        return {"floor": 2e-4, "fine_floor": 1e-4}, {}
    if job.experiment == "race":
        racers = {
            races.title(*racer): {
                "ess": 1000.0,
                "mean_error_rms": 0.0123,
                "ess_per_second": speed,
                "overhead_seconds": 30.0,
            }
            for racer, speed in zip(races.LEARNED, (4e5, 2e5, 1e5, 1e4), strict=True)
        }
        if arguments["warmup"] is not None:
            for name, speed in zip(races.NUTS, (5e3, 2e5, 3e5), strict=True):
                figures = {"ess": 900.0, "ess_per_second": speed, "overhead_seconds": 10.0}
                racers[name] = figures
        return {"racers": racers}, {}
    if job.experiment == "mog10":
        runs = arguments["runs"]
        values = {name: list(1.0 + generator.uniform(size=runs)) for name in MEASURES}
        return values, {}
    if job.experiment == "mog4":
        figures = {"weights": [0.25] * 4, "weight_error": 0.01, "mmd_squared": 1e-4, "floor": 2e-3}
        return figures, {"cloud": generator.normal(size=(50, 2))}
    if job.experiment == "ring-chains":
        values = {name: list(generator.normal(size=5)) for name in ("one", "many")}
        clouds = {name: generator.normal(size=(200, 2)) for name in ("one", "many", "start")}
        return {**values, "floor": 0.01}, clouds
    if job.experiment == "six-modes":
        arrays = {
            "cloud": generator.normal(size=(100, 2)),
            "times": np.array([1, 10, 100, 500]),
            "mmd": np.array([0.7, 0.3, 0.1, 0.05]),
            "autocorrelation": np.exp(-np.arange(61))[:, None] * np.ones(2),
            "ratio": np.full(499, 0.75),
        }
        return {**CHAIN_FIGURES, "between_modes": 0.01}, arrays
    if job.experiment == "split":
        moments = {"mean": [0.0] * 14, "std": [1.0] * 14}
        return {**CHAIN_FIGURES, **moments, "accuracy": 0.84, "nuts_accuracy": 0.83}, {}
    assert job.experiment in ("chains", "nuts")
    return {**CHAIN_FIGURES, "warmup_seconds": 5.0}, {}


MEASURES = ("mse_of_mean", "mse_of_variance", "mmd", "mmd_squared")


def results_of(name, plan=None, change=lambda job, figures: figures):
    records = []
    for job in load(name).jobs(plan or Plan(quick=True)):
        figures, arrays = made_up(job)
        records.append(Record(job, "done", change(job, dict(figures)), arrays))
    return Results(records)
