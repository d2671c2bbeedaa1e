"""Where densities give values alone: bends are straightened, and chains teach their mixture."""

import numpy as np

import salmc
from salmc.answers.mixture.answer import mixture_answer, taught_answer
from salmc.answers.mixture.straightened import lie_apart
from salmc.request.sample import sample


def bent(x):
    """A ridge 0.3 wide along x₁²/2."""
    across = (x[:, 1] - 0.5 * x[:, 0] ** 2) / 0.3
    return -0.5 * (x[:, 0] ** 2 + across**2 + x[:, 2] ** 2)


def counting(density, asked):
    def counted(x):
        asked.append(len(x))
        return density(x)

    return counted


def ridge(generator, count=2000):
    x = generator.normal(size=(count, 2))
    return np.stack([2.0 * x[:, 0], 2.0 * x[:, 0] ** 2 + 0.05 * x[:, 1]], axis=1)


def test_a_ridge_hangs_together_and_modes_do_not():
    generator = np.random.default_rng(0)
    modes = generator.normal(size=(2000, 3))
    modes[:200] += [12.0, 0.0, 0.0]
    assert lie_apart(modes)
    assert not lie_apart(ridge(generator))
    assert not lie_apart(generator.standard_t(2, size=(2000, 2)))
    assert not lie_apart(np.repeat(generator.normal(size=(300, 2)), 5, axis=0))
    assert not lie_apart(generator.uniform(size=(5, 2)))


def test_a_black_box_is_straightened():
    asked: list[int] = []
    answer = mixture_answer(salmc.Target.from_numpy(counting(bent, asked), 3), 0)
    assert answer.usable
    assert answer.efficiency > 0.6
    assert sum(asked) == answer.evaluations["points"] < 30_000
    target, pool = answer.sampler.target, answer.sampler.pool
    assert target.outer is not target
    np.testing.assert_allclose(np.std(pool[:, 0]), 1.0, atol=0.1)
    across = pool[:, 1] - 0.5 * pool[:, 0] ** 2
    np.testing.assert_allclose(np.std(across), 0.3, atol=0.03)


def test_separate_modes_of_a_black_box_stay_where_they_are():
    """Together they would look bent: one is far off the line of the others."""

    def three(x):
        modes = [
            -0.5 * np.sum((x - place) ** 2, axis=1) / 0.16
            for place in ([-4.0, 3.0], [0.0, 0.0], [4.0, 3.0])
        ]
        return np.logaddexp.reduce(modes)

    answer = mixture_answer(salmc.Target.from_numpy(three, 2), 0)
    assert answer.usable
    assert answer.sampler.target.outer is answer.sampler.target


def test_chains_teach_their_mixture_what_it_lacks():
    def skewed(x):
        return np.sum(3.0 * x - np.exp(x), axis=1)

    asked: list[int] = []
    answer = mixture_answer(salmc.Target.from_numpy(counting(skewed, asked), 3), 0)
    found, before = answer.found, sum(asked)
    narrow = found.mixture
    # As if it had never been drawn from where the density is below its middle.
    generator = np.random.default_rng(0)
    positions = np.log(generator.gamma(3.0, size=(8, 500, 3)))
    found.mixture = type(narrow).of_gaussians(
        np.ones(1), np.full((1, 3), 1.5), 0.2 * np.eye(3)[np.newaxis]
    )
    taught = taught_answer(answer, positions, 1)
    assert taught.usable
    assert taught.efficiency > 0.6
    assert sum(asked) - before < 10_000
    np.testing.assert_allclose(np.mean(taught.sampler.pool, axis=0), np.log(3) - 0.176, atol=0.06)


def test_two_rates_that_exchange_cost_no_flow():
    """Decay of a sum of two exponentials: where one has no amplitude, its rate is anything."""
    times = np.linspace(0.0, 4.0, 20)
    noise = 0.1 * np.random.default_rng(2).normal(size=20)
    seen = np.exp(-0.5 * times) + 2.0 * np.exp(-2.0 * times) + noise

    def density(x):
        amplitudes, rates = np.exp(x[:, :2]), np.exp(np.minimum(x[:, 2:], 9.0))
        told = np.sum(amplitudes[..., None] * np.exp(-rates[..., None] * times), axis=1)
        return -50.0 * np.sum((told - seen) ** 2, axis=1) - 0.5 * np.sum(x**2, axis=1)

    asked: list[int] = []
    target = salmc.Target.from_numpy(counting(density, asked), 4)
    draws = sample(target, effective=500, progress=False)
    assert draws.sampler.kernel.name == "mixture"
    assert sum(asked) < 400_000
    assert draws.settings["evaluations"]["points"] == sum(asked)
    first = draws.positions[..., 2] < draws.positions[..., 3]
    assert 0.4 < np.mean(first) < 0.6
