"""Adaptive importance sampling: weights, modes that are not lost, budgets, funnels."""

import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.answer import mixture_answer
from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.effort import FRUGAL, Effort
from salmc.answers.mixture.evaluator import BudgetSpentError, Evaluator
from salmc.answers.mixture.weighted_draws import Archive, effective_count, tempered
from salmc.diagnostics.straightening.search import find_straight

LITTLE = Effort(each=512, particles=128, sweeps=10)


def target(log_density, dim, **options):
    return salmc.Target(log_density, dim, **options)


def adapted(log_density, dim, effort=LITTLE, limit=None, seed=0):
    evaluator = Evaluator(target(log_density, dim), limit)
    adaptation = Adaptation(evaluator, np.random.default_rng(seed), effort, Archive.empty(dim))
    adaptation.run(np.zeros(dim), np.sqrt(2.5) * np.eye(dim))
    return adaptation


def gaussian(mean, sd):
    return lambda x: -0.5 * jnp.sum(((x - mean) / sd) ** 2)


def test_tempered_weights_count_as_asked():
    log_weights = np.random.default_rng(0).normal(0.0, 5.0, 1000)
    weights, beta = tempered(log_weights, 300.0)
    assert 0.0 < beta < 1.0
    assert np.sum(weights) ** 2 / np.sum(weights**2) == pytest.approx(300.0, rel=1e-3)
    assert tempered(np.zeros(10), 5.0)[1] == 1.0
    assert tempered(np.array([-np.inf, 0.0]), 1.0)[0].tolist() == [0.0, 1.0]


def test_weights_of_all_proposals_estimate_the_evidence():
    """∫ p = 1 for a normalised density, within four standard errors of the weights."""
    generator, archive = np.random.default_rng(0), Archive.empty(1)
    for scale in (0.5, 3.0):
        one = Mixture.of_gaussians(np.ones(1), np.zeros((1, 1)), np.full((1, 1, 1), scale))
        points = one.sample(generator, 2000)
        archive.add(one, points, -0.5 * points[:, 0] ** 2 - 0.5 * np.log(2 * np.pi))
    weights = np.exp(archive.log_weights())
    assert np.exp(archive.log_evidence()) == pytest.approx(
        1.0, abs=4.0 * np.std(weights) / np.sqrt(4000)
    )
    assert effective_count(archive.log_weights()) > 2000


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 1.0), (1000.0, 0.5), (0.0, 1e-4), (-3e5, 1e4)])
def test_a_gaussian_is_found_at_any_place_and_scale(mean, sd):
    found = adapted(gaussian(mean, sd), 2)
    assert found.settled
    assert found.efficiency > 0.8
    points = found.archive.points[found.archive.resampled(found.generator, 4000)]
    assert np.mean(points, axis=0) == pytest.approx(mean, abs=0.15 * sd)
    assert np.std(points, axis=0) == pytest.approx(sd, rel=0.1)


def test_two_distant_modes_keep_their_weights():
    def log_density(x):
        left, right = (-0.5 * jnp.sum((x - c) ** 2) / 0.25 for c in (-5.0, 5.0))
        return jnp.logaddexp(left + jnp.log(0.3), right + jnp.log(0.7))

    found = adapted(log_density, 2)
    points = found.archive.points[found.archive.resampled(found.generator, 4000)]
    assert np.mean(points[:, 0] > 0) == pytest.approx(0.7, abs=0.05)
    assert found.settled


def funnel(x):
    """x₀ ~ N(0, 3²), four others N(0, exp x₀)."""
    return -(x[0] ** 2) / 18 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-x[0]) - 2.0 * x[0]


def test_a_funnel_is_not_taken_for_a_mixture():
    found = adapted(funnel, 5, LITTLE._replace(repairs=1, turns=0))
    assert not found.settled or found.efficiency < 0.25


def test_a_funnel_is_a_mixture_once_it_is_straight(monkeypatch):
    some = Effort(particles=256, sweeps=20, rounds=12, repairs=1, climbs=8, hunts=0)
    monkeypatch.setattr("salmc.answers.mixture.answer.effort_for", lambda target, limit: some)
    answer = mixture_answer(target(funnel, 5))
    assert answer.usable
    assert answer.efficiency > 0.6
    scale = answer.sampler.pool[:, 0]
    assert np.quantile(scale, [0.05, 0.5, 0.95]) == pytest.approx([-4.93, 0.0, 4.93], abs=0.5)


def test_coordinates_that_suit_no_mixture_are_left_again(monkeypatch):
    def log_density(x):
        return jnp.logaddexp(gaussian(-4.0, 0.5)(x), gaussian(4.0, 1.0)(x) - 2 * jnp.log(2.0))

    # Both modes are round: these coordinates bend them by many of their widths.
    ridge = np.random.default_rng(0).normal(size=(1000, 2))
    ridge[:, 1] += 200.0 * ridge[:, 0] ** 2
    bent = find_straight(ridge)
    assert bent is not None
    monkeypatch.setattr("salmc.answers.mixture.straightened.find_straight", lambda points: bent)
    little = LITTLE._replace(rounds=6, repairs=0, climbs=4, hunts=0)
    monkeypatch.setattr("salmc.answers.mixture.answer.effort_for", lambda target, limit: little)
    answer = mixture_answer(target(log_density, 2))
    assert answer.usable
    assert answer.sampler.target.outer is answer.sampler.target


def test_a_narrow_mode_beside_a_wide_one_is_found():
    def log_density(x):
        wide = -0.5 * jnp.sum((x - jnp.array([-3.0, 0.0])) ** 2)
        narrow = -0.5 * jnp.sum((x - jnp.array([3.0, 0.0])) ** 2) / 0.03**2
        return jnp.logaddexp(wide, narrow - 2.0 * jnp.log(0.03))

    answer = mixture_answer(target(log_density, 2))
    assert answer.usable
    assert np.mean(answer.sampler.pool[:, 0] > 2.0) == pytest.approx(0.5, abs=0.05)


def test_edges_that_nobody_told_are_found(monkeypatch):
    little = LITTLE._replace(rounds=12, repairs=1, climbs=4, hunts=0)
    monkeypatch.setattr("salmc.answers.mixture.answer.effort_for", lambda target, limit: little)

    def log_density(x):
        return jnp.where(x[0] > 0.0, 0.0, jnp.nan) - 0.5 * jnp.sum(x**2)

    answer = mixture_answer(target(log_density, 2))
    assert answer.usable
    assert answer.sampler.target.outer is not answer.sampler.target
    assert np.all(answer.sampler.pool[:, 0] > 0.0)


def test_the_budget_is_never_exceeded():
    calls = []

    def log_densities(points):
        calls.append(len(points))
        return -0.5 * np.sum(points**2, axis=1)

    box = salmc.Target.from_numpy(log_densities, 2)
    for limit in (500, 1500, 4000):
        calls.clear()
        answer = mixture_answer(box, evaluations=limit)
        assert sum(calls) == answer.evaluations["points"] <= limit
    evaluator = Evaluator(box, 10)
    with pytest.raises(BudgetSpentError, match="budget of 10 evaluations"):
        evaluator(np.zeros((11, 2)))
    assert evaluator.points == 0


def test_a_density_that_is_zero_everywhere_gives_no_sampler():
    answer = mixture_answer(target(lambda x: jnp.sum(x) * jnp.nan, 2))
    assert answer.sampler is None
    assert not answer.usable


def test_frugal_effort_is_for_black_boxes():
    box = salmc.Target.from_numpy(lambda points: -0.5 * np.sum(points**2, axis=1), 3)
    assert mixture_answer(box).evaluations["points"] < 10_000
    assert FRUGAL.each < Effort().each


def test_a_mixture_of_one_mode_that_does_not_settle_is_left_where_there_is_another_way(monkeypatch):
    some = Effort(particles=256, sweeps=20, rounds=12, repairs=1, climbs=8, hunts=0)
    monkeypatch.setattr("salmc.answers.mixture.answer.effort_for", lambda target, limit: some)

    def bent(x):
        """Four bends beside each other: more Gaussians than any mixture has, and one mode."""
        return -0.5 * jnp.sum(x[:5] ** 2) - 20.0 * jnp.sum((x[5:] - 2.0 * x[:4] ** 2) ** 2)

    found = mixture_answer(salmc.Target(bent, 9), patient=False)
    assert not found.usable
    assert not found.patient
    # In few dimensions repairs cost little.
    small = mixture_answer(salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 2), patient=False)
    assert small.patient
