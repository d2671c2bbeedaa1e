"""SAL-MC with kernels on (x, v): a critic of pairs, on SAL-MC's own pool."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import velocity_kernels
from velocity_kernels import VelocityKernel

import salmc
from salmc.errors import ArgumentError
from salmc.kernels import MLPKernel, NICEKernel
from salmc.learning import LearningSettings, PairSettings, default_settings, pair_game, sal_mc
from salmc.learning.pair_critic import PairCritic


class Rotation(VelocityKernel):
    """(x', v') = (x cos θ + v sin θ, v cos θ − x sin θ): a user's own kernel on (x, v).

    It keeps N(0, I) whatever θ is, so that single draws have nothing to teach it. The correlation
    of x' with x is cos θ.
    """

    name = "rotation"
    explanation = "a rotation of (x, v)"

    def push(self, points, noise):
        cos, sin = jnp.cos(self.weight), jnp.sin(self.weight)
        return cos * points + sin * noise, cos * noise - sin * points


@pytest.fixture(scope="module")
def normal_pool():
    return velocity_kernels.normal_pool()


@pytest.mark.parametrize("pairs", [True, False])
def test_pairs_teach_what_single_draws_cannot(normal_pool, pairs):
    """The correlation of neighbouring draws of a chain on N(0, I), from cos 0.4 = 0.92 on.

    With pairs it must fall below ½. The same kernel and pool with a critic of single draws, as
    before there were pairs, must not get there: else the first figure would show nothing.
    """
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
    kernel = Rotation(jnp.array(0.4), 2)
    common = {"steps": 150, "batch": 64, "pool_size": 512, "chunk": 50, "mixture_components": 0}
    common |= {"learning_rate": 1e-2, "momentum": 0.5, "average": 0.9}
    if pairs:
        critic = PairCritic(jax.random.key(1), 2, width=32, depth=2)
        settings = default_settings(kernel, 2).replace(**common)
    else:
        critic = None
        settings = LearningSettings(velocity=0.2, refresh=1.0, exact_refresh=True, **common)
    learned = sal_mc(
        target, kernel, settings=settings, critic=critic, pool=normal_pool, progress=False
    )
    assert settings.sees_pairs == pairs
    assert (abs(float(jnp.cos(learned.kernel.weight))) < 0.5) == pairs


@pytest.fixture(scope="module")
def nice():
    return NICEKernel(jax.random.key(0), 2, width=64)


@pytest.fixture(scope="module")
def options():
    return {
        "critic": PairCritic(jax.random.key(1), 2, width=32, depth=2),
        "settings": default_settings("nice", 2).replace(
            steps=60, pool_size=512, chunk=20, checkpoint_every=1
        ),
    }


@pytest.fixture(scope="module")
def whole(two_modes, nice, options):
    return sal_mc(two_modes, nice, progress=False, **options)


def test_what_a_run_tells(whole, two_modes):
    told = {"kernel_loss", "critic_loss", "velocity", "acceptance", "jump", "move_acceptance"}
    assert told <= whole.history.keys()
    assert whole.method == "sal-mc"
    # 512 particles moved by exact steps alone; half of them count: five standard errors.
    np.testing.assert_allclose(whole.pool.std(axis=0), [2.062, 0.5], rtol=5 / np.sqrt(256))
    np.testing.assert_allclose(
        whole.pool_log_density, two_modes.log_densities(jnp.asarray(whole.pool)), atol=1e-3
    )
    assert whole.sample(4, 20, progress=False).settings["exact"]


def test_resume_is_exact(two_modes, nice, options, whole, tmp_path, power_cut):
    place = tmp_path / "checkpoint"
    with pytest.raises(RuntimeError, match="power cut"):
        sal_mc(two_modes, nice, progress=power_cut, checkpoint=place, **options)
    resumed = sal_mc(two_modes, nice, progress=False, checkpoint=place, resume=True, **options)
    assert json.dumps(whole.history) == json.dumps(resumed.history)
    for one, two in zip(*(jax.tree.leaves(r.kernel) for r in (whole, resumed)), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(whole.pool, resumed.pool)


def test_saved_and_loaded(two_modes, whole, tmp_path):
    whole.save(tmp_path / "kernel.salmc")
    loaded = salmc.load(tmp_path / "kernel.salmc", two_modes)
    one, two = (s.sample(2, 10, seed=3, progress=False).positions for s in (whole, loaded))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("approach", "from_noise"), [(0, 0), (8, 64)])
def test_pairs_begin_at_the_pool_and_with_an_approach_at_noise_too(nice, approach, from_noise):
    pool = jax.random.normal(jax.random.key(0), (100, 2))
    settings = PairSettings(approach=approach, critic_steps=2)
    points, leaps = pair_game.starts(nice, settings, pool, jax.random.key(1))
    assert points.shape == (3, 64 + from_noise, 2)
    assert leaps.shape == (3,)
    there = jnp.any(jnp.all(points[:, :, None] == pool, axis=-1), axis=-1)
    assert bool(jnp.all(there[:, :64]))
    assert not jnp.any(there[:, 64:])


def test_what_does_not_fit(two_modes):
    with pytest.raises(ArgumentError, match="decorrelation"):
        default_settings("nice", 2).replace(decorrelation=0.3)
    with pytest.raises(ArgumentError, match="leap"):
        PairSettings(leap=0)
    kernel = MLPKernel(jax.random.key(0), 2, width=8, depth=1)
    with pytest.raises(ArgumentError, match="pairs"):
        sal_mc(two_modes, kernel, settings=PairSettings(exact_refresh=False), progress=False)


def test_single_draws_if_the_settings_say_so(two_modes, nice):
    settings = LearningSettings(
        velocity=0.3, refresh=1.0, exact_refresh=True, steps=4, batch=64, pool_size=512, chunk=4
    )
    learned = salmc.fit(two_modes, kernel=nice, settings=settings, progress=False)
    assert learned.settings["adversarial_form"] == "relativistic"
    assert "leap" not in learned.settings
