"""Climbs of densities that give values alone, and the modes that black boxes have for it."""

import numpy as np
import pytest

import salmc
from salmc.answers.mixture.answer import mixture_answer
from salmc.answers.mixture.evaluator import Evaluator
from salmc.answers.mixture.valued_climbs import climbs_affordable, find_valued_modes


def two_modes(x):
    """A third of the mass around (−3, …) with sd 1, two thirds around (3, …) with sd ½."""
    wide = -0.5 * np.sum((x + 3.0) ** 2, axis=1)
    narrow = -0.5 * np.sum((x - 3.0) ** 2, axis=1) / 0.25 + x.shape[1] * np.log(2.0)
    return np.logaddexp(wide, narrow + np.log(2.0))


def bent(x):
    """A ridge along which climbs that end early would look like many modes."""
    return -0.5 * (x[:, 0] ** 2 + ((x[:, 1] - x[:, 0] ** 2) / 0.1) ** 2)


def starts(dim, count=40):
    return 4.0 * np.random.default_rng(0).normal(size=(count, dim))


@pytest.mark.parametrize("dim", [2, 5])
def test_modes_are_found_as_wide_as_they_are(dim):
    evaluator = Evaluator(salmc.Target.from_numpy(two_modes, dim))
    found = find_valued_modes(evaluator, starts(dim))
    order = np.argsort(found.positions[:, 0])
    assert len(order) == 2
    tops = np.outer([-3.0, 3.0], np.ones(dim))
    np.testing.assert_allclose(found.positions[order], tops, atol=0.1)
    widths = np.sqrt(np.sum(found.factors**2, axis=2))[order]
    assert np.all(np.abs(np.log(widths[0] / 1.0)) < np.log(2.0))
    assert np.all(np.abs(np.log(widths[1] / 0.5)) < np.log(2.0))
    assert evaluator.points < 400 * (dim + 2)


def test_a_ridge_has_one_top():
    found = find_valued_modes(Evaluator(salmc.Target.from_numpy(bent, 2)), starts(2))
    assert len(found.positions) == 1
    np.testing.assert_allclose(found.positions[0], 0.0, atol=0.2)


def test_starts_without_density_and_a_flat_one_have_no_modes():
    nowhere = salmc.Target.from_numpy(lambda x: np.full(len(x), -np.inf), 2)
    assert not len(find_valued_modes(Evaluator(nowhere), starts(2)).positions)
    slope = salmc.Target.from_numpy(lambda x: np.minimum(x[:, 0], 1e6), 2)
    assert not len(find_valued_modes(Evaluator(slope), starts(2)).positions)


def test_of_a_budget_climbs_take_a_part():
    target = salmc.Target.from_numpy(two_modes, 5)
    assert climbs_affordable(Evaluator(target, 100)) == 0
    for limit in (1000, 4000, 20_000):
        evaluator = Evaluator(target, limit)
        find_valued_modes(evaluator, starts(5))
        assert evaluator.points < 0.5 * limit


def test_a_black_box_keeps_its_narrow_mode():
    """Draws of wide proposals come near the wide mode alone, in six dimensions."""
    answer = mixture_answer(salmc.Target.from_numpy(two_modes, 6), 0)
    assert answer.usable
    assert answer.several
    share = np.mean(answer.sampler.pool[:, 0] > 0.0)
    assert abs(share - 2 / 3) < 0.05
    assert answer.evaluations["points"] < 15_000


def test_labels_of_a_black_box_exchange():
    """From (1, 9) climbs in both orders of two labels: exchanged draws show the other mode."""

    def density(x):
        ordered = -0.5 * (((x - [1.0, 9.0]) / 0.3) ** 2).sum(1)
        return np.logaddexp(ordered, -0.5 * (((x - [9.0, 1.0]) / 0.3) ** 2).sum(1))

    target = salmc.Target.from_numpy(
        density, 2, names=["mu[0]", "mu[1]"], start=np.array([[1.0, 9.0]])
    )
    pool = mixture_answer(target, 1).sampler.pool
    assert 0.4 < np.mean(pool[:, 0] > pool[:, 1]) < 0.6
