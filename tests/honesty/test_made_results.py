"""The verdict on results made by hand: no wrong one is trusted, no right one refused.

A tenth of the cases that `benchmarks.honesty` has over several seeds would do for code that works;
all of them are here once, and few of them take a second. The wrong ones name their cause.
"""

import pytest

from benchmarks.honesty import RIGHT, WRONG, make
from benchmarks.honesty_traps import TRAP_RIGHT, TRAP_WRONG
from benchmarks.honesty_values import VALUED_RIGHT, VALUED_WRONG
from benchmarks.honesty_wide import WIDE_RIGHT, WIDE_WRONG
from salmc.diagnostics import against_density
from salmc.diagnostics.trial import host

SLOW = {
    "normal 25-d",
    "centred schools",
    "centred schools without small τ",
    "eight schools, truth known",
    "Metropolis",
    "autocorrelated",
    "box with bounds",
    "exponential with bounds",
    "t3 5-d",
    "funnel without neck",
    "narrow particles 25-d",
    "one of six 10 % too narrow, black box",
    "scales 1e-3 to 1e5",
    "correlation 0.9, 5-d",
    "offset 1e6, sd 100",
    "log gamma",
    "10 % too narrow",
    "one of two modes",
    "shifted by 0.3 sd",
    "shifted by 0.3 sd, black box",
    "scale that hardly anything bounds",
    "chains in different modes",
    "one coordinate 15 % too narrow",
    "still on the way",
    "one chain stuck",
    "normal for t3",
    "strong autocorrelation",
    "half a box",
    "mirrored skew",
    "stuck chains",
    "fifty points again and again",
    "wide mode missing",
    "a mode of a twentieth, 10-d",
    "exp(-|x|^1.5), 6-d",
    "mean of eight data",
    "500 draws of a box",
    "temperature 1/0.9",
    "temperature 1/1.1",
    "a datum left out",
    "without the Jacobian",
    "Gaussian at the mode of a skew density",
    "mean field for correlation 0.9, 5-d",
    "10 % too narrow, black box",
    "centred schools with few small τ",
    "black box",
    # `test_summary` has a narrow cloud in 25 dimensions.
    "correlated 30-d",
    "10 % too narrow in one direction of 30",
    # As the same in fewer dimensions, or with fewer modes.
    "Cauchy 5-d",
    "mirrored modes 8-d",
    "mirrored mode missing, 8-d",
    "six modes",
    # As "near modes" and "eight modes".
    "two modes 0.9 : 0.1",
    "weights 0.5 : 0.5 for 0.9 : 0.1",
    "exchanged labels",
    # As "narrow in wide", "scale 1e-6", "box" and "normal for Laplace".
    "two widths",
    "offset 1e3",
    "disc",
    "Gaussian of the moments of a skew density",
}
"""Cases that others resemble."""

TELLING = {
    "four decimals, 1-d",
    "narrow in wide",
    "comb 10 % too narrow, black box",
    "two far funnels, 0.35 : 0.65 for 0.3 : 0.7",
    "a square without a quarter, an arm too thin",
    "two scales in each of six",
    "outer scale too seldom in one",
    "one direction of 20 narrow, black box",
    "last of three modes narrow",
    "half of what binds three",
    "clipped angle",
    "one chain of 16 elsewhere",
    "gumbel without its last hundredth",
}
"""Traps of which each has led to a test of its own in the verdict."""

SLOW |= {*TRAP_RIGHT, *TRAP_WRONG, *WIDE_RIGHT, *WIDE_WRONG} - TELLING
SLOW |= {*VALUED_RIGHT, *VALUED_WRONG} - TELLING

CAUSES = {
    "one of two modes, black box": "A mode is missing: around (x0 = -5",
    "five of six modes": "A mode is missing: around (x0 = 2.5, x1 = -4.33",
    "exchanged labels missing": "A mode is missing",
    "narrow mode missing": "A mode is missing: around (x0 = 3",
    "weights 0.5 : 0.5 for 0.9 : 0.1": "Weights are off",
    "near modes 0.8 : 0.2 for 0.7 : 0.3": "Weights are off",
    "two of eight modes exchange a third": "Weights are off",
    "Cauchy without tails": "Tails are lacking",
    "funnel without neck": "Draws of x0 end too early",
    "centred schools without small τ": "Draws of x1 end too early",
    "valley cut short": "end too early",
    "funnel with a thin neck": "too few draws are where it is low",
    "centred schools with few small τ": "Biased: x1 governs how widely others spread",
    "one of seven modes 20 % overweight": "Weights are off",
    "comb 10 % too narrow, black box": "Weights are off: modes far from",
    "two far funnels, 0.35 : 0.65 for 0.3 : 0.7": "Modes have wrong weights",
    "half Cauchy cut at its 98 %": "Draws of x0 end too early",
    "one of twenty 15 % too narrow, black box": "x0, given all other coordinates, is too narrow",
    "one direction of 20 narrow, black box": "by the differences of log p the draws' spread",
    "outer scale too seldom in one": "by the differences of log p the draws' outer spread",
    "last of three modes narrow": "in one mode",
    "half of what binds three": "by the differences of log p",
    "clipped angle": "exactly",
    "one chain of 16 elsewhere": "chain 3 lies elsewhere than the others",
    "copied chain": "copies of others",
    "tiled draws": "copies of others",
    "flat tails": "This density does not integrate",
    "flat direction": "does not integrate: far out (along x",
    "wrong sign": "Check its sign",
    "noisy black box": "Noise in the density",
    "half lost in single precision": "Single precision loses the density",
    "values of another density": "They were made for another density",
}


@pytest.fixture(autouse=True)
def less_effort(monkeypatch, request):
    """A part of what users get: what is seen with it is seen with all. What takes it all
    is a needle, and what few draws would not tell."""
    whole = ("narrow mode", "direction of 30", "a table", "black box]", "few small", *TRAP_RIGHT)
    whole += (*TRAP_WRONG, *WIDE_RIGHT, *WIDE_WRONG, *VALUED_RIGHT, *VALUED_WRONG)
    if not any(name in request.node.name for name in whole):
        monkeypatch.setattr(host, "MOST_EFFORT", 0.4)
    monkeypatch.setattr(against_density, "DISCREPANCY_POINTS", 500)
    monkeypatch.setattr(against_density, "INVARIANCE_POINTS", 500)


def some(names):
    return [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in names]


@pytest.mark.parametrize("name", some(RIGHT))
def test_right_results_are_not_refused(name):
    verdict = make(name).summary().verdict
    assert verdict.degree == "trustworthy", verdict


@pytest.mark.parametrize("name", some(WRONG))
def test_wrong_results_are_refused(name):
    verdict = make(name).summary().verdict
    assert verdict.degree == "not trustworthy", verdict
    assert CAUSES.get(name, "") in str(verdict)


def test_there_are_enough_of_both():
    assert len(set(RIGHT) - SLOW) >= 20
    assert len(set(WRONG) - SLOW) >= 20
    assert set(RIGHT) | set(WRONG) >= SLOW | set(CAUSES)
