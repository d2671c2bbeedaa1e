"""What is measured of chains, and the targets and splits that are measured."""

import math

import numpy as np
import pytest

from salmc.sampling.draws import Draws
from salmc_paper.experiments import six_modes
from salmc_paper.harness.jobs import NotAvailableError
from salmc_paper.measures import judging
from salmc_paper.measures.judging import discrepancy, judge_chains, mmd, mmd_path
from salmc_paper.measures.problems import find_split, find_target


@pytest.fixture
def few_subsets(monkeypatch):
    """Less averaging of MMD² than in the experiments: quicker, and enough for gross differences."""
    monkeypatch.setattr(judging, "SUBSETS", 2)


def chains_of(target, positions):
    positions = np.asarray(positions, dtype=np.float32)
    log_density = np.zeros(positions.shape[:2])
    return Draws(positions, log_density, seconds=2.0, target=target)


def test_exact_draws_are_judged_exact_and_shifted_ones_biased(few_subsets):
    target = find_target("mog6")
    exact = np.asarray(target.sample(six_modes.jax.random.key(0), 4000)).reshape(4, 1000, 2)
    good = judge_chains(target, chains_of(target, exact))
    assert good["ess"] > 950
    assert good["ess_per_second"] == pytest.approx(good["ess"] * 4 / 2.0)
    assert abs(good["mmd_squared"]) < 2e-3
    bad = judge_chains(target, chains_of(target, exact + 1.0))
    assert bad["mmd_squared"] > 10 * abs(good["mmd_squared"])
    assert bad["mean_error_max"] > 0.2


def test_forward_passes_which_never_asked_the_density_are_judged(few_subsets):
    target = find_target("mog6")
    exact = np.asarray(target.sample(six_modes.jax.random.key(0), 400)).reshape(4, 100, 2)
    passes = Draws(exact.astype(np.float32), None, seconds=2.0, target=target)
    judged = judge_chains(target, passes)
    known = judge_chains(target, passes.evaluated())
    assert judged["density_ratio_acceptance"] == known["density_ratio_acceptance"] < 1.0


def test_points_between_modes_show_in_the_fine_discrepancy(few_subsets):
    """The median bandwidth hardly sees the shape of modes; the fine one does."""
    target = find_target("mog6")
    exact = np.asarray(target.sample(six_modes.jax.random.key(0), 4000))
    noise = np.random.default_rng(0).normal(size=exact.shape)
    usual, fine = discrepancy(target, exact + 0.6 * noise)
    _, clean = discrepancy(target, exact)
    assert fine > 20 * abs(clean)
    assert fine > usual


def test_given_moments_replace_those_of_the_target():
    target = find_split("heart", 0).target
    draws = chains_of(target, np.random.default_rng(0).normal(size=(4, 500, target.dim)))
    judged = judge_chains(target, draws, np.zeros(target.dim), np.full(target.dim, 2.0))
    assert judged["sd_ratio_max"] == pytest.approx(0.5, abs=0.05)
    assert "mmd_squared" not in judged


def test_the_path_of_mmd_is_that_of_each_beginning():
    generator = np.random.default_rng(0)
    points, exact = generator.normal(size=(30, 2)), generator.normal(size=(50, 2))
    path = mmd_path(points, exact, 2.0)

    def plain_mmd(x, y):
        kernel = lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(-1) / 2.0).mean()  # noqa: E731
        return math.sqrt(max(kernel(x, x) + kernel(y, y) - 2 * kernel(x, y), 0.0))

    for count in (1, 2, 17, 30):
        assert path[count - 1] == pytest.approx(plain_mmd(points[:count], exact), abs=1e-7)
    assert mmd(points, exact, 2.0) == pytest.approx(path[-1])


def test_splits_of_a_data_set_share_a_name_and_differ_in_rows():
    first, second = find_split("heart", 0), find_split("heart", 1)
    assert first.target.name == second.target.name == "heart-split"
    assert first.target.signed_rows.shape == (216, 14)
    assert first.features.shape == (54, 13)
    assert not np.array_equal(first.features, second.features)


def test_a_target_that_is_not_there_is_not_available():
    with pytest.raises(NotAvailableError, match="no-such"):
        find_target("no-such")
