"""Chains that begin elsewhere, all alike."""

import numpy as np
from scipy import stats

from salmc.diagnostics.arrival import LEAST_SHIFT, LEVEL, arrival


def autocorrelated(generator, chains=8, draws=750, correlation=0.9):
    noise = generator.normal(size=(chains, draws, 3))
    found = noise.copy()
    for t in range(1, draws):
        found[:, t] = correlation * found[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return found


def test_stationary_chains_are_calibrated():
    """p-values of one coordinate of 300 runs, autocorrelated: Kolmogorov-Smirnov at 10⁻³."""
    generator = np.random.default_rng(0)
    p_values = [arrival(autocorrelated(generator)[:, :, :1]).p_value for _ in range(300)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_chains_on_their_way_are_seen():
    """Two standard deviations that fade within fifty draws, which leave R-hat at 1.01."""
    generator = np.random.default_rng(0)
    away = 2.0 * np.exp(-np.arange(750) / 50.0)[None, :, None]
    found = arrival(generator.normal(size=(8, 750, 3)) + away)
    assert found.p_value < LEVEL
    assert found.shift > LEAST_SHIFT
    assert "not there yet when they began" in found.sentences()[0]


def test_little_is_not_told_and_few_are_not_asked():
    generator = np.random.default_rng(0)
    found = arrival(generator.normal(size=(64, 1000, 2)) + np.linspace(0.2, 0.0, 1000)[:, None])
    assert found.p_value < LEVEL
    assert found.sentences() == []
    assert arrival(generator.normal(size=(2, 1000, 2))) is None
    assert arrival(np.zeros((8, 1000, 2))).sentences() == []
