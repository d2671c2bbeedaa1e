"""Faults that parts of the library really made, and that were once called trustworthy.

Each beside a right result that differs from it in that fault alone.
"""

import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from benchmarks.honesty_parts_truths import TRUTHS
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.straightened import straight_tests
from salmc.diagnostics.trial.whole_run import batches_of, run_tests

CHAINS, DRAWS = 16, 2000


def langevin(step_size):
    """Exact chains where all coordinates are slow but the last, of which steps are too large."""
    generator = np.random.default_rng(3)
    noise = generator.normal(size=(CHAINS, DRAWS, 5))
    kept = np.array([0.95, 0.95, 0.95, 0.95, 0.3])
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for t in range(1, DRAWS):
        chains[:, t] = kept * chains[:, t - 1] + np.sqrt(1.0 - kept**2) * noise[:, t]
    # ULA widens a normal by 1/√(1 − ε/2).
    chains[..., 4] /= np.sqrt(1.0 - 0.5 * step_size)
    return chains.astype(np.float32)


def judged(positions, target):
    draws = salmc.Draws(positions, None, seconds=1.0, target=target, method="made")
    return draws.summary().verdict


def standard(dim):
    return salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim)


def test_a_bias_in_what_mixes_fast_shows_however_slow_other_coordinates_are():
    """7 % too wide in one of five: 800 draws of the slowest coordinate would not tell."""
    verdict = judged(langevin(0.25), standard(5))
    assert verdict.degree == "not trustworthy", verdict
    assert "Biased: by the scores" in str(verdict)


def test_slow_chains_without_a_bias_are_trusted():
    verdict = judged(langevin(0.0), standard(5))
    assert verdict.degree == "trustworthy", verdict


def bent(kept):
    """x₀ of t₄, x₁ around its square, x₂ on a wave of it: up to some distance."""
    points = TRUTHS["twisted t"].draw(np.random.default_rng(4), 9000)
    return points[np.abs(points[:, 0]) < kept][:6000].reshape(8, 750, 3).astype(np.float32)


def test_a_bent_ridge_without_its_last_hundredth_is_refused():
    """As chains leave it whose proposals never come there; few draws are near its ends."""
    verdict = judged(bent(9.0), TRUTHS["twisted t"].target())
    assert verdict.degree == "not trustworthy", verdict
    assert "x0 end too early" in str(verdict)


def test_a_bent_ridge_of_heavy_tails_is_trusted():
    verdict = judged(bent(np.inf), TRUTHS["twisted t"].target())
    assert verdict.degree == "trustworthy", verdict


def test_few_particles_are_not_called_trustworthy():
    generator = np.random.default_rng(5)
    points = generator.normal(size=(100, 1, 2)).astype(np.float32)
    draws = salmc.Draws(
        points, None, seconds=1.0, kind="particles", target=standard(2), method="made"
    )
    verdict = draws.summary().verdict
    assert verdict.degree == "no problem found", verdict
    assert "100 particles are too few" in str(verdict)


def test_stretches_of_right_draws_have_the_level_that_they_say():
    """Of 20 right samples hardly one has p < 0.01 in either test, and none 10⁻⁴."""
    truth = TRUTHS["twisted t"]
    target, found = truth.target().unbounded, []
    for seed in range(20):
        points = truth.draw(np.random.default_rng([seed, 6]), 1000)
        density = HostDensity(target, points[0], 0.2)
        asked = straight_tests(density, points, target.names, seed)
        assert asked.stretches
        found += [test.p_value for test in (*asked.stretches, *asked.ends[-3:])]
    assert np.mean(np.array(found) < 0.01) <= 0.05
    assert min(found) > 1e-4


@pytest.mark.parametrize("shape", [(32, 200), (4, 2000)])
def test_whole_runs_of_right_chains_have_the_level_that_they_say(shape):
    """Of 40 right runs, correlated in one coordinate and not in others; p > 10⁻⁴ in all."""
    chains, draws = shape
    target, found = standard(3), []
    for seed in range(40):
        noise = np.random.default_rng([seed, 7]).normal(size=(chains, draws, 3))
        for t in range(1, draws):
            noise[:, t, 0] = 0.9 * noise[:, t - 1, 0] + np.sqrt(0.19) * noise[:, t, 0]
        points = noise.reshape(-1, 3)
        batches = batches_of(points, chains, chains * draws / 19.0)
        assert batches is not None
        test = run_tests(HostDensity(target, points[0], 1.0), batches)
        assert test is not None
        found.append(test.p_value)
    assert np.mean(np.array(found) < 0.1) < 0.3
    assert min(found) > 1e-4


def test_a_run_is_not_cut_where_chains_are_not_known():
    assert batches_of(np.zeros((1000, 2)), 0, 500.0) is None
    assert batches_of(np.zeros((1000, 2)), 3, 500.0) is None
    assert batches_of(np.zeros((1000, 2)), 4, 100.0) is None
