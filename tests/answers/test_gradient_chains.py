"""Chains along the gradient: funnels with known marginals, and what they are no answer to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import salmc
from salmc.answers.gradient import answer as gradient
from salmc.answers.gradient.answer import can_follow, gradient_answer, must_follow
from salmc.answers.gradient.chains import CHAINS, GradientChains
from salmc.answers.gradient.walk import BLOCK, Walk
from salmc.answers.mixture import binding
from salmc.answers.replicas import answer as replicas
from salmc.progress import SilentReporter
from salmc.sampling.sampler_uses import UNTRAINED

EFFECTS = 4


def funnel(x):
    """log scale s ~ N(0, 1.5²), θ_j ~ N(0, e^{2s}), in five dimensions."""
    return (
        -0.5 * (x[0] / 1.5) ** 2 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-2 * x[0]) - EFFECTS * x[0]
    )


def two_modes(x):
    return jnp.logaddexp(-0.5 * jnp.sum((x - 6.0) ** 2), -0.5 * jnp.sum((x + 6.0) ** 2))


@pytest.fixture(scope="module")
def answer(reporter):
    return gradient_answer(salmc.Target(funnel, 1 + EFFECTS), None, 0, reporter)


def test_a_bar_of_rounds_ends_full(answer, reporter):
    assert reporter.left == 0


def test_nothing_of_it_is_called_trained(answer):
    assert set(UNTRAINED) == {gradient.METHOD, binding.METHOD, replicas.METHOD}
    assert not answer.sampler.trained
    assert "train" not in answer.sampler._repr_html_()
    assert "along the gradient" in answer.sampler._repr_html_()


def test_the_scale_of_a_funnel_has_its_own_law(answer):
    """64 × 200 draws, of which at least 1000 count: KS of the scale below 2.2/√1000, p = 1e-4."""
    assert answer.mixed
    assert answer.rate > 0.1
    assert answer.sampler.target.straight is not None
    draws = answer.sampler.sample(64, 200, seed=1, progress=False)
    ess = salmc.diagnostics.ess_bulk(draws.positions)
    assert np.min(ess) > 1000
    distance = stats.kstest(draws.sample()[:, 0] / 1.5, stats.norm.cdf).statistic
    assert distance < 2.2 / np.sqrt(1000)
    assert draws.settings["exact"]


def test_where_funnels_show_no_mixture_is_tried():
    target = salmc.Target(funnel, 1 + EFFECTS)
    assert must_follow(target, 0)
    assert not must_follow(salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 5), 0)
    box = salmc.Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), dim=5)
    assert not can_follow(box)
    assert not must_follow(box, 0)


def test_chains_of_separate_modes_are_no_answer():
    target = salmc.Target(two_modes, 2, start=jnp.array([[6.0, 6.0], [-6.0, -6.0]]))
    found = gradient_answer(target, None, 0, SilentReporter())
    assert not found.mixed


def test_a_mode_beside_a_funnel_is_missed_though_its_straight_coordinates_hide_it():
    """Around (12, …) lies half of the mass; where the funnel is straight that is a needle."""

    def beside(x):
        blob = -0.5 * jnp.sum((x - 12.0) ** 2) / 0.25 - (1 + EFFECTS) * jnp.log(0.5)
        return jnp.logaddexp(funnel(x) - jnp.log(1.5), blob)

    found = gradient_answer(salmc.Target(beside, 1 + EFFECTS), None, 0, SilentReporter())
    assert found.sampler.target.straight is not None
    assert not found.mixed


def test_the_same_seed_gives_the_same_sampler(answer):
    again = gradient_answer(salmc.Target(funnel, 1 + EFFECTS), None, 0, SilentReporter())
    np.testing.assert_array_equal(again.sampler.pool, answer.sampler.pool)
    assert jax.tree.all(
        jax.tree.map(np.array_equal, again.sampler.trajectory, answer.sampler.trajectory)
    )


def test_a_regression_is_no_funnel_though_its_curvature_changes():
    """Counts with a log link and a free scale: Laplace's Gaussian nearly fits."""
    generator = np.random.default_rng(8)
    rows = jnp.asarray(generator.normal(size=(60, 3)))
    counts = jnp.asarray(generator.poisson(np.exp(1.0 + 0.5 * np.asarray(rows[:, 0]))))

    def regression(x):
        scale = jnp.exp(x[4])
        mean = jnp.exp(x[3] + rows @ x[:3])
        log_share = jnp.log(scale / (scale + mean))
        terms = jax.scipy.special.gammaln(counts + scale) - jax.scipy.special.gammaln(scale)
        terms += scale * log_share + counts * jnp.log1p(-jnp.exp(log_share))
        return jnp.sum(terms) - 0.5 * jnp.sum(x[:4] ** 2) / 25.0 - 0.5 * (x[4] - 2.0) ** 2

    assert not must_follow(salmc.Target(regression, dim=5), 0)
    assert must_follow(salmc.Target(funnel, dim=1 + EFFECTS), 0)


@pytest.mark.slow
def test_data_far_from_the_origin_are_found():
    """Groups at 240 ± 14 of a centred model in their own units: chains have far to go, and what
    they see on the way is not the target. The mean of all groups is known to be normal."""
    generator = np.random.default_rng(6)
    groups, each = 10, 5
    places = generator.normal(242.0, 14.0, groups)
    data = jnp.asarray(places[:, None] + generator.normal(0.0, 6.0, (groups, each)), dtype=float)

    def growth(x):
        mean, log_spread, log_noise, effects = x[0], x[1], x[2], x[3:]
        noise, spread = jnp.exp(log_noise), jnp.exp(log_spread)
        prior = -0.5 * (mean / 1000.0) ** 2 - spread / 100.0 - noise / 100.0
        apart = -0.5 * jnp.sum(((effects - mean) / spread) ** 2) - (groups - 1) * log_spread
        misfit = -0.5 * jnp.sum(((data - effects[:, None]) / noise) ** 2)
        return prior + apart + misfit - (data.size - 1) * log_noise

    found = gradient_answer(salmc.Target(growth, dim=3 + groups), None, 0, SilentReporter())
    assert found.mixed
    pool = np.asarray(found.sampler.pool)
    seen = np.asarray(jnp.mean(data, axis=1))
    width = np.std(pool[:, 0])
    assert abs(np.mean(pool[:, 0]) - np.mean(seen)) < 0.2 * width
    assert 0.8 < width / (np.std(seen, ddof=1) / np.sqrt(groups)) < 1.5


def test_chains_that_hardly_move_do_not_choose_a_length():
    """One effective draw of each chain costs less by shorter trajectories, and tells nothing."""

    class Slow(GradientChains):
        def walk(self, blocks, *, adapts=True):
            steps, generator = blocks * BLOCK, np.random.default_rng(0)
            # The shorter, the less a step forgets: of 256 steps 312, 220, 140 and 100 draws count.
            kept = {1: 0.99, 2: 0.98, 4: 0.965}.get(int(self.trajectory.length), 0.95)
            x = generator.standard_normal((CHAINS, 2))
            points = np.empty((steps, CHAINS, 2))
            for row in points:
                x = kept * x + np.sqrt(1.0 - kept**2) * generator.standard_normal(x.shape)
                row[:] = x
            still = np.zeros((steps, CHAINS))
            return Walk(points, still, still + 1.0, still)

    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), 2)
    start = jax.random.normal(jax.random.key(0), (CHAINS, 2))
    chains = Slow.begin(target, start, jax.random.key(1), SilentReporter())
    chains.step_size, chains.reach = 0.2, 1.2
    chains.choose_length(chains.walk(16))
    assert int(chains.trajectory.length) >= 8
