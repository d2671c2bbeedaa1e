"""Densities that are zero wherever the first draws fall; and more modes than any mixture has."""

import jax.numpy as jnp
import numpy as np

import salmc
from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.answer import mixture_answer
from salmc.answers.mixture.beginning import at_scales
from salmc.answers.mixture.effort import Effort
from salmc.answers.mixture.evaluator import Evaluator
from salmc.answers.mixture.weighted_draws import Archive
from salmc.sampling.sampler import Sampler


def ball(x):
    """Uniform around (5, …, 5): of N(0, I) in eight dimensions no draw comes there."""
    return jnp.where(jnp.sum((x - 5.0) ** 2) < 4.0, 0.0, -jnp.inf)


def test_a_support_that_no_draw_meets_is_found():
    found = mixture_answer(salmc.Target(ball, 8), seed=0)
    assert isinstance(found.sampler, Sampler)
    pool = found.sampler.pool
    assert np.all(np.sum((pool - 5.0) ** 2, axis=1) < 4.0)
    # Of a uniform ball the mean of |x − c|² / r² is d/(d + 2); its sd over 4096 draws is 0.003.
    assert abs(np.mean(np.sum((pool - 5.0) ** 2, axis=1)) / 4.0 - 0.8) < 0.03


def test_within_a_budget_nothing_is_walked_for():
    asked = []

    def counted(points):
        asked.append(len(points))
        return np.where(np.sum((points - 5.0) ** 2, axis=1) < 4.0, 0.0, -np.inf)

    found = mixture_answer(salmc.Target.from_numpy(counted, 8), seed=0, evaluations=2000)
    assert found.sampler is None
    assert sum(asked) <= 2000


def wells(x):
    """Two unequal wells in each of twelve coordinates: 4096 modes."""
    left = jnp.log(0.3) - 0.5 * ((x + 3.0) / 0.5) ** 2 - jnp.log(0.5)
    return jnp.sum(jnp.logaddexp(left, jnp.log(0.7) - 0.5 * (x - 2.0) ** 2))


def test_modes_beyond_count_are_left_to_others_at_once(monkeypatch):
    def improve(self):
        raise AssertionError("no mixture of 4096 modes is worth a round")

    monkeypatch.setattr(Adaptation, "improve", improve)
    found = mixture_answer(salmc.Target(wells, 12), seed=0)
    assert found.sampler is None
    assert found.several


def test_rounds_end_where_beta_does_not_rise(monkeypatch):
    """Where fits never come nearer, forty rounds of them are thirty too many."""
    rounds = []

    def stuck(log_weights, wanted):
        rounds.append(wanted)
        return np.ones(len(log_weights)), 0.5

    evaluator = Evaluator(salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 2))
    effort = Effort(each=128)
    adaptation = Adaptation(evaluator, np.random.default_rng(0), effort, Archive.empty(2))
    adaptation.draw(at_scales(np.zeros(2), np.eye(2)), effort.each)
    monkeypatch.setattr("salmc.answers.mixture.adaptation.tempered", stuck)
    adaptation.improve()
    assert len(rounds) < 10
    assert adaptation.mixture is None
