"""A-NICE-MC, and its kernel under SAL-MC with single draws, on small problems."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.errors import ArgumentError
from salmc.kernels import MLPKernel, NICEKernel
from salmc.learning import LearningSettings, NICESettings, a_nice_mc, nice_settings, sal_mc
from salmc.learning.pair_critic import PairCritic, wasserstein_critic_loss
from salmc.learning.pair_game import leap
from salmc.metropolis import mean_jump, normal


@pytest.fixture(scope="module")
def nice():
    return NICEKernel(jax.random.key(0), 2, width=64)


@pytest.fixture(scope="module")
def critic():
    return PairCritic(jax.random.key(1), 2, width=32, depth=2)


@pytest.fixture(scope="module")
def settings():
    return nice_settings(2).replace(
        steps=60, pool_size=512, chunk=20, refill_every=30, refill_steps=10, checkpoint_every=1
    )


@pytest.fixture(scope="module")
def whole(two_modes, nice, critic, settings):
    return a_nice_mc(two_modes, nice, critic=critic, settings=settings, progress=False)


def _leaves(learned):
    return [
        *map(np.asarray, jax.tree.leaves(learned.kernel)),
        learned.pool,
        learned.pool_log_density,
    ]


def test_training_improves_the_chain(two_modes, nice, critic, settings):
    """ESS of an untrained and a trained kernel in the same run of the same pool."""
    longer = settings.replace(steps=1200, chunk=100, refill_every=300, refill_steps=20)
    learned = a_nice_mc(two_modes, nice, critic=critic, settings=longer, progress=False)
    assert learned.method == "a-nice-mc"
    assert not learned.warnings
    jumps = learned.history["jump"]
    assert max(jumps) > 1.5 * jumps[0]
    assert np.isfinite(learned.history["refill_acceptance"][0])
    assert np.isnan(learned.history["refill_acceptance"][1])
    draws = learned.sample(16, 500, progress=False)
    before = a_nice_mc(
        two_modes, nice, critic=critic, settings=longer.replace(steps=1), progress=False
    )
    start = before.sample(16, 500, progress=False)
    ess, first = (
        np.min(
            salmc.diagnostics.ess_known_moments(d.positions, np.zeros(2), np.array([2.062, 0.5]))
        )
        for d in (draws, start)
    )
    assert ess > 2 * first
    # The chain is exact however far training came: sides in balance, within what so many
    # effective draws leave (five standard errors).
    error = 5 * 0.5 / np.sqrt(max(16 * ess, 1))
    assert abs(np.mean(draws.positions[..., 0] > 0) - 0.5) < error


def test_the_buffer_stays_on_the_target(whole, two_modes):
    np.testing.assert_allclose(
        whole.pool_log_density, two_modes.log_densities(jnp.asarray(whole.pool)), atol=1e-3
    )
    # 512 particles; half of them count as independent: five standard errors.
    error = 5 / np.sqrt(256)
    np.testing.assert_allclose(whole.pool.std(axis=0), [2.062, 0.5], rtol=error)


def test_the_seed_decides(two_modes, nice, critic, settings, whole):
    options = {"critic": critic, "settings": settings, "progress": False}
    again = a_nice_mc(two_modes, nice, **options)
    other = a_nice_mc(two_modes, nice, seed=1, **options)
    for one, two in zip(_leaves(whole), _leaves(again), strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(_leaves(whole)[0], _leaves(other)[0])


def test_resume_is_exact(two_modes, nice, critic, settings, whole, tmp_path, power_cut):
    options = {"critic": critic, "settings": settings, "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(RuntimeError, match="power cut"):
        a_nice_mc(two_modes, nice, progress=power_cut, **options)
    resumed = a_nice_mc(two_modes, nice, progress=False, resume=True, **options)
    for one, two in zip(_leaves(whole), _leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, two)
    assert json.dumps(whole.history) == json.dumps(resumed.history)


def test_leaps_of_random_length(nice):
    points = jax.random.normal(jax.random.key(0), (6, 2))
    lengths = jnp.array([1, 2, 3, 1, 2, 3])
    key = jax.random.key(1)
    new, velocities = leap(nice, key, points, lengths, 3)
    here, expected = points, []
    for step_key in jax.random.split(key, 3):
        here, velocity = nice.push(here, normal(step_key, (6, nice.noise_dim)))
        expected.append((here, velocity))
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(new[row], expected[int(length) - 1][0][row], rtol=1e-5)
        np.testing.assert_allclose(velocities[row], expected[int(length) - 1][1][row], rtol=1e-5)


def test_the_critic_loss_by_hand():
    """A linear critic D = w·pair: E D(real) − E D(fake) + 10 (|w| − 1)²."""

    class Linear(PairCritic):
        def __call__(self, pairs):
            return pairs @ jnp.array([1.0, 2.0, 2.0, 4.0])

    critic = Linear(jax.random.key(0), 2, width=4, depth=1)
    real, fake = jnp.ones((8, 4)), jnp.zeros((8, 4))
    loss = wasserstein_critic_loss(critic, real, fake, jnp.full(4, 0.3), 10.0)
    assert loss == pytest.approx(9.0 + 10.0 * (5.0 - 1.0) ** 2)
    assert wasserstein_critic_loss(critic, real, fake, jnp.full(4, 0.3), 0.0) == 9.0


def test_jumps_count_up_to_the_distance_of_independent_draws():
    old, probability = jnp.zeros((3, 2)), jnp.array([1.0, 0.5, 0.0])
    new = jnp.array([[1.0, 1.0], [9.0, 9.0], [jnp.nan, 0.0]])
    assert mean_jump(probability, old, new) == pytest.approx((2.0 / 4 + 0.5) / 3)


def test_a_nice_kernel_under_sal_mc_with_a_critic_of_single_draws(two_modes, nice):
    settings = LearningSettings(
        decorrelation=0.3,
        velocity=0.32,
        momentum=0.5,
        refresh=1.0,
        exact_refresh=True,
        steps=400,
        batch=128,
        pool_size=512,
        chunk=10,
        mixture_components=4,
        learning_rate=2e-3,
    )
    learned = sal_mc(two_modes, nice, settings=settings, progress=False)
    assert {"velocity", "jump", "acceptance", "critic_loss"} <= learned.history.keys()
    # From 0.03 after ten steps to 0.24: over six seeds their ratio is 8.5, with an sd of 1.
    assert max(learned.history["jump"]) > 4 * learned.history["jump"][0]
    # 512 particles moved by exact steps alone; half of them count: five standard errors.
    error = 5 / np.sqrt(256)
    np.testing.assert_allclose(learned.pool.std(axis=0), [2.062, 0.5], rtol=error)
    np.testing.assert_allclose(
        learned.pool_log_density, two_modes.log_densities(jnp.asarray(learned.pool)), atol=1e-3
    )
    draws = learned.sample(8, 200, progress=False)
    assert draws.settings["exact"]


def test_fit_by_name(two_modes):
    # As large a pool as in other tests, which has been filled already.
    options = {"steps": 4, "pool_size": 512, "refill_steps": 2, "chunk": 4}
    sampler = salmc.fit(two_modes, method="a-nice-mc", settings=options, progress=False)
    assert (sampler.method, sampler.kernel.name) == ("a-nice-mc", "nice")
    with pytest.raises(ArgumentError, match="NICE kernel"):
        salmc.fit(two_modes, method="a-nice-mc", kernel="flow", progress=False)
    with pytest.raises(ArgumentError, match="no setting `likelihood`"):
        salmc.fit(two_modes, method="a-nice-mc", settings={"likelihood": 1.0}, progress=False)


def test_what_does_not_fit(two_modes, mlp_settings):
    with pytest.raises(ArgumentError, match="settings"):
        salmc.fit(two_modes, method="a-nice-mc", settings=mlp_settings, progress=False)
    with pytest.raises(ArgumentError, match="approach"):
        NICESettings(approach=0)
    kernel = MLPKernel(jax.random.key(0), 2, width=8, depth=1)
    with pytest.raises(ArgumentError, match="velocity"):
        sal_mc(two_modes, kernel, settings=mlp_settings.replace(velocity=1.0), progress=False)
