"""Errors against the truth, the floor of exact draws, and the rule of what is wrong."""

import numpy as np
import pytest

from benchmarks.peers import densities, truths
from benchmarks.peers.effective import kish, largest_rhat, smallest_ess
from benchmarks.peers.judging import Errors, errors, floor, judged, verdict, yardstick
from salmc.diagnostics.chain_statistics import ess_bulk, ess_tail
from salmc_paper.measures.references import reference

HIGH = Errors(0.1, 0.02, 0.03)
NAMES = sorted(set(densities.DENSITIES) - {"australian", "german", "stretched100"})


@pytest.fixture(scope="module", autouse=True)
def small_truths():
    """Pools of 40,000, which take seconds; German and Heart are part of the package."""
    from salmc.datasets.fetch import SHIPPED

    truths.truth.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(densities.DATA_VARIABLE, str(SHIPPED))
        patch.setattr(truths, "POOL", 40_000)
        patch.setattr(truths, "_PROPOSALS", 60_000)
        yield
    truths.truth.cache_clear()


@pytest.mark.parametrize(
    ("found", "facts", "word"),
    [
        (Errors(0.1, 0.02, 0.03), {}, "right"),
        (Errors(None, 0.02, None), {}, "right"),
        (Errors(0.21, 0.0, 0.0), {}, "wrong"),
        (Errors(0.0, 0.041, 0.0), {}, "wrong"),
        (Errors(0.0, 0.0, 0.061), {}, "wrong"),
        (Errors(np.nan, 0.0, 0.0), {}, "wrong"),
        (Errors(0.0, 0.0, 0.0), {"ess": 900.0}, "short"),
        (Errors(0.5, 0.0, 0.0), {"ess": 900.0}, "wrong"),
        (Errors(0.0, 0.0, 0.0), {"ess": 99.0}, "stuck"),
        (Errors(0.0, 0.0, 0.0), {"ess": np.nan}, "stuck"),
        (Errors(0.5, 0.0, 0.0), {"rhat": 1.06}, "stuck"),
        (Errors(0.0, 0.0, 0.0), {"rhat": np.inf}, "stuck"),
        (Errors(0.0, 0.0, 0.0), {"rhat": 1.04}, "right"),
    ],
)
def test_the_rule(found, facts, word):
    facts = {"ess": 1000.0, "rhat": np.nan, "effective": 1000, **facts}
    assert verdict(found, HIGH, **facts)[0] == word


def test_exact_draws_are_right_and_each_kind_of_error_is_seen():
    truth = truths.truth("mog2")
    generator = np.random.default_rng(3)
    points = truth.pool[generator.integers(len(truth.pool), size=2000)]

    def outcome(points, weights=None):
        weights = np.ones(len(points)) if weights is None else weights
        draws = {"points": points, "weights": weights, "ess": np.array(2000.0), "rhat": np.nan}
        return judged(truth, draws, 2000)

    right = outcome(points)
    assert right["outcome"] == "right"
    assert right["floor"]["modes"] < right["floor_95"]["modes"] < 0.05
    shifted = outcome(points + np.array([0.0, 0.1]))  # 0.2 sd of the second coordinate
    assert shifted["outcome"] == "wrong"
    assert "mean" in shifted["sentence"]
    narrow = outcome(points * np.array([1.0, 0.7]))
    assert "tails" in narrow["sentence"]
    uneven = np.where(points[:, 0] > 0, 1.0, 1.5)
    assert outcome(points, uneven)["outcome"] == "wrong"
    assert outcome(np.full_like(points, np.nan))["outcome"] == "wrong"


def test_the_floor_falls_with_the_root_of_the_draws():
    by = yardstick(truths.truth("schools"))
    few, many = floor(by, 400)["median"], floor(by, 6_400)["median"]
    assert few.mean / many.mean == pytest.approx(4.0, rel=0.3)
    assert few.modes is None


def test_weights_count():
    by = yardstick(truths.truth("mog2"))
    doubled = np.concatenate([by.truth.pool[:1000], by.truth.pool[:500]])
    weights = np.r_[np.full(500, 0.5), np.ones(500), np.full(500, 0.5)]
    assert errors(by, doubled, weights) == pytest.approx(errors(by, by.truth.pool[:1000]))


@pytest.mark.parametrize("name", NAMES)
def test_exact_draws_have_the_density_that_samplers_get(name):
    """A local check of truth against formula: the score has the mean zero at exact draws.

    E[∂ log p] = 0 for densities that vanish at their edges; the tolerance is five standard errors.
    The box has a gradient of zero; the cut of the black box is at 3.3 sd.
    """
    density, truth = densities.DENSITIES[name](), truths.truth(name)
    assert truth.pool.shape[1] == density.dim == len(density.reference)
    points, step = truth.pool[:4000], 1e-4
    values = density.log_density(points, np)
    assert np.all(np.isfinite(values))
    if name in ("box20", "black-box3"):
        return
    for i in range(density.dim):
        shift = np.zeros(density.dim)
        shift[i] = step
        above, below = (density.log_density(points + s, np) for s in (shift, -shift))
        score = (above - below) / (2 * step)
        # Scores of the funnel are heavy-tailed where it is narrow: a bounded weight tames them,
        # and its own slope enters Stein's identity, E[g ∂ log p + ∂g] = 0.
        centre, scale = np.median(points[:, i]), np.std(np.clip(points[:, i], -50, 50))
        z = (points[:, i] - centre) / scale
        weight, slope = np.exp(-0.5 * z**2), -z / scale * np.exp(-0.5 * z**2)
        terms = weight * score + slope
        assert abs(terms.mean()) < 5 * terms.std() / np.sqrt(len(terms)) + 1e-3


@pytest.mark.parametrize("name", ["heart", "german"])
def test_draws_by_importance_agree_with_long_runs_of_nuts(name):
    """Within 0.03: five standard errors of 30,000 draws, and the reference's own error."""
    known, pool = reference(name), truths.truth(name).pool
    assert np.max(np.abs(pool.mean(axis=0) - known.mean) / known.std) < 0.03
    assert np.max(np.abs(pool.std(axis=0) / known.std - 1.0)) < 0.03


@pytest.mark.parametrize("name", ["mog6", "ring5", "switching2", "switching3", "two-widths"])
def test_shares_of_modes_are_those_of_exact_draws(name):
    truth = truths.truth(name)
    found = np.bincount(truth.mode(truth.pool)) / len(truth.pool)
    assert np.max(np.abs(found - truth.shares)) < 0.012  # 4.8 standard errors


def test_effective_draws_are_those_of_arviz():
    generator = np.random.default_rng(1)
    noise = generator.normal(size=(4, 2000, 2))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for t in range(1, 2000):
        chains[:, t] = np.array([0.9, 0.3]) * chains[:, t - 1] + noise[:, t]
    wanted = min(ess_bulk(chains).min(), ess_tail(chains).min())
    assert smallest_ess(chains) == pytest.approx(wanted, rel=0.05)
    assert largest_rhat(chains) < 1.02
    assert largest_rhat(chains + 5.0 * np.arange(4)[:, None, None]) > 1.5
    assert largest_rhat(np.zeros((4, 100, 1))) == np.inf
    assert smallest_ess(np.zeros((4, 100, 1))) == 0.0
    assert kish(np.array([1.0, 1.0, 0.0])) == pytest.approx(2.0)
