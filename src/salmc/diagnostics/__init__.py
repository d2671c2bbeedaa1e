"""Diagnostics. Arrays in, numbers out; `summarize` takes draws and adds words.

* chains: `chain_statistics` (ESS, R-hat, autocorrelation, acceptance);
* a sample against the unnormalised density: `ksd`, `gradient_free_ksd`, `invariance`;
* several samples against each other: `cloud_scores`;
* a sample against what the warm-up saw: `coverage`;
* a sample against the truth: `mmd`, `truth_errors`;
* draws of a classifier on data not seen: `prediction`;
* a sample on trial by the density: `trial` (exact tests, no bootstrap), `hunt` (modes it lacks);
* all of them: `evidence` (numbers), `verdict` (words), `summary` (both, as a table).
"""

from salmc.diagnostics.chain_statistics import (
    acceptance_rate,
    autocorrelation,
    density_ratio_acceptance,
    ess_bulk,
    ess_known_moments,
    ess_per_second,
    ess_tail,
    rhat,
)
from salmc.diagnostics.cloud_scores import CloudScore, compare_clouds
from salmc.diagnostics.coverage import missed_share
from salmc.diagnostics.density_fit import FittedDensity, fit_density
from salmc.diagnostics.evidence import Coordinate, Evidence
from salmc.diagnostics.gradient_free_ksd import gradient_free_ksd_squared
from salmc.diagnostics.invariance import InvarianceTest, invariance_test
from salmc.diagnostics.ksd import ksd_squared
from salmc.diagnostics.mmd import median_bandwidth, mmd_floor, mmd_squared
from salmc.diagnostics.point_sets import StatisticWithFloor
from salmc.diagnostics.prediction import Accuracy, predictive_accuracy
from salmc.diagnostics.summary import Summary, summarize
from salmc.diagnostics.truth_errors import ModeWeights, MomentErrors, mode_weights, moment_errors
from salmc.diagnostics.verdict import Verdict, judge

__all__ = [
    "Accuracy",
    "CloudScore",
    "Coordinate",
    "Evidence",
    "FittedDensity",
    "InvarianceTest",
    "ModeWeights",
    "MomentErrors",
    "StatisticWithFloor",
    "Summary",
    "Verdict",
    "acceptance_rate",
    "autocorrelation",
    "compare_clouds",
    "density_ratio_acceptance",
    "ess_bulk",
    "ess_known_moments",
    "ess_per_second",
    "ess_tail",
    "fit_density",
    "gradient_free_ksd_squared",
    "invariance_test",
    "judge",
    "ksd_squared",
    "median_bandwidth",
    "missed_share",
    "mmd_floor",
    "mmd_squared",
    "mode_weights",
    "moment_errors",
    "predictive_accuracy",
    "rhat",
    "summarize",
]
