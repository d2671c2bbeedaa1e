"""One chain of several that is unlike the others, and chains that only seem so."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import salmc
from salmc.diagnostics.odd_chain import LEVEL, odd_chain


def chains_of(seed, count, draws, dim=3, correlation=0.0):
    noise = np.random.default_rng([seed, count]).normal(size=(count, draws, dim))
    found = noise.copy()
    for t in range(1, draws):
        found[:, t] = correlation * found[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return found


def asked(chains):
    return odd_chain(chains, np.full(chains.shape[:2], np.nan))


@pytest.mark.parametrize(
    ("count", "draws", "correlation"),
    [(4, 500, 0.9), (8, 500, 0.97), (16, 60, 0.97), (64, 60, 0.9), (64, 125, 0.0)],
)
def test_chains_that_are_alike_are_calibrated(count, draws, correlation):
    """Of 60 runs a tenth has p < 0.1 at most, and no heavy tail makes it more."""
    found = []
    for seed in range(60):
        chains = chains_of(seed, count, draws, 3, correlation)
        found.append(asked(stats.t.ppf(stats.norm.cdf(chains), 1.0)))
    assert np.sum([test.p_value < 0.1 for test in found]) <= 14
    assert all(not test.sentences() for test in found)


@pytest.mark.parametrize("count", [16, 64])
def test_a_chain_elsewhere_and_a_chain_that_spreads_more_are_named(count):
    elsewhere = chains_of(0, count, 500)
    elsewhere[3, :, 1] += 1.0
    found = asked(elsewhere)
    assert found.p_value < LEVEL
    assert (found.chain, found.coordinate, found.spreads) == (3, 1, False)
    wide = chains_of(1, count, 500)
    wide[5] *= 1.7
    found = asked(wide)
    assert found.p_value < LEVEL
    assert (found.chain, found.spreads) == (5, True)
    assert "chain 5 spreads more widely" in found.sentences()[0]


def test_a_chain_whose_place_shows_in_its_heights_alone_is_seen():
    """Its signs are turned where coordinates go together: none of them by itself shows it."""
    chains = chains_of(2, 16, 400)
    chains[..., 1] = 0.95 * chains[..., 0] + np.sqrt(1 - 0.95**2) * chains[..., 1]
    chains[7, :, 1] *= -1.0
    precision = np.linalg.inv([[1.0, 0.95], [0.95, 1.0]])
    height = -0.5 * np.einsum("cti,ij,ctj->ct", chains[..., :2], precision, chains[..., :2])
    assert not asked(chains).sentences()
    assert odd_chain(chains, height).chain == 7
    assert odd_chain(chains, height).sentences()


def test_a_chain_that_came_late_and_left_again_is_let_pass():
    """One that was in a light mode for a fifth of its run: that is chance, and shows within it."""
    chains = chains_of(3, 16, 500, 1)
    chains[4, 100:200] += 6.0
    assert not asked(chains).sentences()


def test_few_chains_short_ones_and_constant_coordinates():
    assert asked(chains_of(4, 2, 1000)) is None
    assert asked(chains_of(4, 8, 40)) is None
    still = chains_of(5, 8, 100)
    still[..., 0] = 1.0
    assert asked(still).p_value > 1e-3
    assert not asked(np.zeros((8, 100, 2))).sentences()


def test_it_is_told_where_r_hat_and_ess_are_content():
    chains = chains_of(6, 64, 250, 2).astype(np.float32)
    chains[9, :, 0] += 1.0
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 2)
    draws = salmc.Draws(chains, None, seconds=1.0, target=target, method="made")
    summary = draws.summary(hunt=False)
    assert summary.evidence.largest_rhat < 1.1
    assert summary.evidence.smallest_ess > 400
    assert summary.verdict.degree == "not trustworthy"
    assert "chain 9 lies elsewhere than the others" in str(summary.verdict)
