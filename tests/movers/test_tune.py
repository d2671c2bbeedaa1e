"""Tuning chooses by discrepancies: it must turn away from settings that are plainly bad."""

import jax
import numpy as np
import pytest

import salmc
from salmc.diagnostics import mmd_squared
from salmc.errors import ArgumentError
from salmc.movers import AGSVGD, SVGD, tune
from salmc.targets import Banana, Mog6


def start(count):
    """Given, where it is not asked how a start is found."""
    return np.sqrt(2.5) * np.random.default_rng(0).normal(size=(count, 2))


def test_turns_away_from_a_step_size_that_is_far_too_small():
    target = Banana()
    poor = SVGD(target, step_size=0.01)
    tuning = tune(poor, particles=100, steps=100, trials=8, progress=False)
    assert float(tuning.mover.step_size) > 0.02
    scores = [trial.score for trial in tuning.trials]
    assert scores == sorted(scores)

    def quality(mover):
        draws = salmc.move(mover, particles=200, steps=100, progress=False)
        return mmd_squared(draws.sample(), target.sample(jax.random.key(0), 2000))

    assert quality(tuning.mover) < quality(poor)


def test_turns_away_from_bandwidths_that_are_far_too_wide():
    """Which of the better settings wins is chance: births and deaths amplify every rounding."""
    poor = AGSVGD(Mog6(), bandwidth=30.0, density_bandwidth=30.0, memory=False)
    tuning = tune(poor, particles=start(200), steps=100, trials=8, progress=False)
    assert min(float(tuning.mover.bandwidth), float(tuning.mover.density_bandwidth)) < 20.0
    (own,) = [trial for trial in tuning.trials if trial.settings["density_bandwidth"] == 30.0]
    assert tuning.trials[0].score < 0.8 * own.score


def test_works_without_a_gradient():
    target = salmc.Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), dim=2)
    tuning = tune(AGSVGD(target), particles=50, steps=20, trials=3, progress=False)
    assert np.isfinite(tuning.trials[0].score)


def test_settings_share_one_compiled_trace():
    def traces(trials):
        count = 0

        def log_density(x):
            nonlocal count
            count += 1
            return -0.5 * (x**2).sum()

        mover = SVGD(salmc.Target(log_density, dim=2))
        tune(mover, particles=20, steps=2, trials=trials, progress=False)
        return count

    assert traces(6) == traces(2)


def test_refuses_no_trials():
    with pytest.raises(ArgumentError, match="`trials`"):
        tune(SVGD(Mog6()), trials=0)
