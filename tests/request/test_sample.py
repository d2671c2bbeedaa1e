"""One call: as many effective draws as asked for, within a budget, in the user's coordinates."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.answers.mixture.answer import MixtureAnswer
from salmc.learning.worth import Worth, effective_rate
from salmc.request import rounds
from salmc.request.rounds import smallest_ess
from salmc.sampling.executor import block_length, group_count


@pytest.fixture(scope="module")
def target():
    return salmc.Target(lambda x: -0.5 * jnp.sum(((x - 3.0) / 2.0) ** 2), dim=2)


@pytest.fixture(scope="module")
def draws(target):
    return salmc.sample(target, effective=4000, progress=False)


def test_as_many_effective_draws_as_asked_for(draws):
    assert smallest_ess(draws.positions) >= 4000
    assert draws.warnings == ()
    points = draws.sample()
    # Four standard errors of 4,000 effective draws.
    assert np.mean(points, axis=0) == pytest.approx(3.0, abs=4 * 2.0 / np.sqrt(4000))
    assert np.std(points, axis=0) == pytest.approx(2.0, rel=4 / np.sqrt(8000))


def test_draws_know_their_sampler_and_cost(draws):
    assert draws.sampler.kernel.exact
    assert draws.settings["effective"] == 4000
    assert draws.settings["seed"] == 0  # which gives them again, as that of a round does not
    assert draws.settings["evaluations"]["points"] > 4000
    more = draws.sampler.sample(chains=4, draws=50, progress=False)
    assert more.positions.shape == (4, 50, 2)


def test_the_same_seed_gives_the_same_draws(draws):
    again = salmc.sample(draws.target, effective=4000, progress=False)
    np.testing.assert_array_equal(again.positions, draws.positions)


def test_a_black_box_is_never_asked_more_often_than_allowed():
    asked = []

    def log_densities(points):
        asked.append(len(points))
        return -np.sum(np.abs(points - 0.4) / 0.05, axis=1)

    box = salmc.Target.from_numpy(log_densities, 3, bounds=[(0, 1)] * 3)
    draws = salmc.sample(box, effective=1000, evaluations=20_000, progress=False)
    assert sum(asked) == draws.settings["evaluations"]["points"] <= 20_000
    assert smallest_ess(draws.positions) >= 1000
    assert np.all((draws.positions > 0.0) & (draws.positions < 1.0))
    asked.clear()
    few = salmc.sample(box, effective=100_000, evaluations=5000, progress=False)
    assert sum(asked) <= 5000
    assert any("effective draws of 100000" in sentence for sentence in few.warnings)


@pytest.mark.parametrize("budget", [1500, 20_000])
def test_a_density_in_jax_has_a_budget_too(target, budget):
    """What a search looks at without a budget was more than this, so that there was no answer."""
    draws = salmc.sample(target, effective=500, evaluations=budget, progress=False)
    assert draws.settings["evaluations"]["points"] <= budget
    # Of 470 effective draws and more, means have an error of 0.1; six of them.
    np.testing.assert_allclose(draws.sample().mean(axis=0), 3.0, atol=0.6)
    assert bool(draws.warnings) == (budget < 20_000)


def test_a_budget_that_ends_at_once_says_so(target):
    with pytest.raises(salmc.ArgumentError, match="nothing to draw from yet"):
        salmc.sample(target, effective=500, evaluations=300, progress=False)


def test_bad_arguments_are_told():
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    for options in ({"effective": 0}, {"evaluations": 0}, {"chains": 0}, {"seed": -1}):
        with pytest.raises(salmc.ArgumentError):
            salmc.sample(target, progress=False, **options)


def test_training_ends_when_drawing_would_take_no_longer():
    history = {"step": [100.0, 400.0], "acceptance": [0.5, 0.8]}
    assert effective_rate(1.0) == 1.0
    # 400 steps of 256 points in a second: four draws in the time of one point that is learned from.
    a_second = 4 * 256 * 400 * effective_rate(0.8)
    assert Worth(int(0.9 * a_second), 256).enough(history, 1.0)
    assert not Worth(int(1.1 * a_second), 256).enough(history, 1.0)
    assert not Worth(1, 256).enough({"step": [400.0], "acceptance": [0.3]}, 1.0)


def test_a_kernel_that_is_a_mixture_is_fitted_saved_and_loaded(tmp_path):
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    sampler = salmc.fit(target, kernel="mixture", progress=False)
    loaded = salmc.load(sampler.save(tmp_path / "kernel.salmc"), target)
    first, second = (s.sample(4, 20, progress=False).positions for s in (sampler, loaded))
    np.testing.assert_array_equal(first, second)


def test_a_flow_learns_from_what_a_budget_found():
    asked = []

    def log_densities(points):
        asked.append(len(points))
        return -0.5 * np.sum(points**2, axis=1)

    box = salmc.Target.from_numpy(log_densities, 2)
    small = salmc.kernels.FlowKernel.from_description(
        {"dim": 2, "layers": 2, "width": 8, "knots": 4, "radial": False}
    )
    sampler = salmc.fit(box, kernel=small, evaluations=8000, steps=20, progress=False)
    assert sum(asked) == sampler.settings["evaluations"]["points"] <= 8000
    assert sampler.kernel.name == "flow"
    assert sampler.sample(4, 10, progress=False).accepted is not None


def test_a_flow_goes_on_learning_in_its_own_coordinates(draws):
    flow = salmc.kernels.FlowKernel.from_description(
        {"dim": 2, "layers": 2, "width": 8, "knots": 4, "radial": False}
    )
    sampler = dataclasses.replace(draws.sampler, kernel=flow)
    better = sampler.improve(steps=30, progress=False, seed=1)
    np.testing.assert_array_equal(better.whitening.mean, sampler.whitening.mean)
    before, after = (jax.tree.leaves(eqx.filter(s.kernel, eqx.is_array)) for s in (sampler, better))
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    with pytest.raises(salmc.TargetError, match="target"):
        salmc.improve(salmc.Sampler(flow, None, sampler.whitening, sampler.pool))


def test_modes_that_may_be_none_keep_nobody_from_the_gradient(monkeypatch):
    """Climbs that end in a neck look like modes, and no mixture fits them; chains know better."""
    seen = MixtureAnswer(None, 0.0, False, {"points": 0}, patient=True, several=True)
    monkeypatch.setattr("salmc.request.sample.mixture_answer", lambda *rest, **more: seen)
    target = salmc.Target(lambda x: -0.5 * jnp.sum((x - 1.0) ** 2), dim=3)
    draws = salmc.sample(target, effective=500, progress=False)
    assert draws.method == "gradient"


def test_what_is_lacking_after_a_round_is_all_that_is_drawn():
    """The program of the first round serves for any number of its blocks, not only for as many."""
    kernel = salmc.kernels.KERNELS["mixture"](jax.random.key(0), 2)
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    whitening = salmc.kernels.Whitening.identity(2)
    sampler = salmc.Sampler(kernel, target, whitening, np.zeros((1, 2)))
    for first in (128, 874, 3925, 5000):
        own = block_length(32, first, 1, group_count(32))
        for lacking in (1, 0.2 * first, 0.5 * first):
            count = rounds._by_the_same_program(sampler, 32, int(lacking), first)
            assert block_length(32, count, 1, group_count(32)) == own
            assert int(lacking) <= count <= lacking + 2 * own
        assert rounds._by_the_same_program(sampler, 32, 7 * first, first) == 7 * first
