"""ESS, R-hat, autocorrelation and acceptance of chains whose answers are known."""

import numpy as np
import pytest

from salmc.diagnostics import (
    acceptance_rate,
    autocorrelation,
    density_ratio_acceptance,
    ess_bulk,
    ess_known_moments,
    ess_per_second,
    ess_tail,
    rhat,
)
from salmc.errors import ArgumentError

ZERO, ONE = np.zeros(1), np.ones(1)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_ess_of_an_autoregressive_chain(autoregressive, rho):
    """ESS = T (1 − ρ)/(1 + ρ).

    Lags below ρ_s = 0.05 are left out: at most 0.05 ρ/(1 − ρ) of Σρ_s = ρ/(1 − ρ), so 5 %. The rest
    of the 12 % is noise over 32 chains of 4000 draws.
    """
    chains = autoregressive(rho, 32, 4000)
    expected = 4000 * (1 - rho) / (1 + rho)
    assert ess_known_moments(chains, ZERO, ONE)[0] == pytest.approx(expected, rel=0.12)
    # Bulk ESS counts all chains together.
    assert ess_bulk(chains)[0] / 32 == pytest.approx(expected, rel=0.12)


def test_ess_by_the_formula(autoregressive):
    """The sum written out with loops, as in the paper's tables."""
    chains = autoregressive(0.8, 4, 100)[:, :, 0]
    draws, total = chains.shape[1], 0.0
    for s in range(1, draws):
        correlation = np.mean([np.sum(c[: draws - s] * c[s:]) / (draws - s) for c in chains])
        if correlation <= 0.05:
            break
        total += (1 - s / draws) * correlation
    found = ess_known_moments(chains[:, :, None], ZERO, ONE)
    assert found[0] == pytest.approx(draws / (1 + 2 * total), rel=1e-9)


def test_ess_of_independent_draws_is_all_of_them(autoregressive):
    """ρ_s is 0 ± 1/√(8·500) = 0.016, so none exceeds 0.05 at lag 1 (3 standard errors)."""
    assert ess_known_moments(autoregressive(0.0, 8, 500), ZERO, ONE)[0] == 500.0


def test_ess_of_a_chain_that_stays_in_one_of_two_modes():
    """Every ρ_s is near 1, so ESS is about 1: Σ(1 − s/T) ≈ T/2."""
    generator = np.random.default_rng(0)
    chains = 5.0 + 0.5 * generator.normal(size=(8, 300, 1))
    assert ess_known_moments(chains, ZERO, np.array([5.025]))[0] == pytest.approx(1.0, abs=0.05)


def test_ess_and_rhat_agree_with_arviz_called_one_quantity_at_a_time(autoregressive):
    from arviz_stats.base import array_stats

    chains = np.concatenate([autoregressive(r, 4, 300, seed=3) for r in (0.1, 0.6)], axis=2)
    for k in range(2):
        one = chains[:, :, k]
        assert ess_bulk(chains)[k] == pytest.approx(float(array_stats.ess(one, method="bulk")))
        tail = float(array_stats.ess(one, method="tail", prob=(0.05, 0.95)))
        assert ess_tail(chains)[k] == pytest.approx(tail)
        assert rhat(chains)[k] == pytest.approx(float(array_stats.rhat(one)))


def test_rhat_is_one_for_equal_chains_and_large_for_chains_apart(autoregressive):
    chains = autoregressive(0.0, 4, 500)
    assert rhat(chains)[0] == pytest.approx(1.0, abs=0.01)
    apart = chains + np.array([0.0, 0.0, 0.0, 5.0])[:, None, None]
    assert rhat(apart)[0] > 1.5


def test_autocorrelation_of_an_autoregressive_chain(autoregressive):
    """ρ_s = ρ^s; standard error √((1 + ρ²)/(1 − ρ²)/(32·4000)) ≈ 0.006 at ρ = 0.8."""
    chains = autoregressive(0.8, 32, 4000)
    expected = 0.8 ** np.arange(10)
    for moments in ((ZERO, ONE), (None, None)):
        found = autocorrelation(chains, *moments)
        assert found.shape == (4000, 1)
        np.testing.assert_allclose(found[:10, 0], expected, atol=0.03)


def test_acceptance_from_flags_and_from_densities():
    assert acceptance_rate(np.array([[True, False], [True, True]])) == 0.75
    # Up: 1; down by log 2: 1/2; to zero density: 0; from zero density: 1; NaN counts as zero.
    log_density = np.array([[0.0, 1.0, 1.0 - np.log(2.0), -np.inf, 0.0, np.nan]])
    assert density_ratio_acceptance(log_density) == pytest.approx((1 + 0.5 + 0 + 1 + 0) / 5)


def test_ess_per_second():
    assert ess_per_second(100.0, 4.0) == 25.0
    assert np.isnan(ess_per_second(100.0, 0.0))


def test_wrong_shapes_are_met_at_the_door():
    with pytest.raises(ArgumentError, match="at least 4 draws"):
        ess_bulk(np.zeros((4, 2, 1)))
    with pytest.raises(ArgumentError, match="`std`"):
        ess_known_moments(np.zeros((4, 9, 1)), ZERO, ZERO)
