"""Pools of chains along the gradient: where `fit` takes them, and what it keeps of them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import salmc
from salmc.kernels import FlowKernel
from salmc.learning import learner
from salmc.learning.fit import choose_mover
from salmc.learning.pool import fill_pool
from salmc.targets import Mog2

SMALL = {"steps": 4, "chunk": 2, "batch": 32, "pool_size": 1024, "latent_every": 0}
SCALE = 1.5


def funnel(x):
    """log scale s ~ N(0, 1.5²), θ_j ~ N(0, e^{2s}), in five dimensions."""
    return -0.5 * (x[0] / SCALE) ** 2 - 0.5 * jnp.sum(x[1:] ** 2) * jnp.exp(-2 * x[0]) - 4 * x[0]


TARGET = salmc.Target(funnel, 5)


@pytest.fixture
def in_need_of_local_steps(monkeypatch):
    """Whatever the kernel's own proposals are worth."""
    monkeypatch.setattr(learner, "review", lambda found, _: dataclasses.replace(found, local=1))


def fit(path, **options):
    kernel = FlowKernel(jax.random.key(0), 5, layers=1, width=4, knots=4, radial_knots=4)
    common = {"kernel": kernel, "settings": SMALL, "seed": 0, "progress": False}
    return salmc.fit(TARGET, checkpoint=path, **common, **options)


def test_funnels_are_learned_where_chains_made_them_straight(tmp_path, in_need_of_local_steps):
    """Of 1024 points of the pool at least 200 count: KS of the scale below 2.2/√200, p = 1e-4."""
    sampler = fit(tmp_path / "run.checkpoint")
    assert sampler.settings["mover"] == "trajectories"
    assert sampler.target.straight is not None
    distance = stats.kstest(sampler.pool[:, 0] / SCALE, stats.norm.cdf).statistic
    assert distance < 2.2 / np.sqrt(200)
    assert sampler.trajectory is not None
    again = fit(tmp_path / "run.checkpoint", resume=True)
    np.testing.assert_array_equal(again.pool, sampler.pool)
    same = jax.tree.map(np.array_equal, again.trajectory, sampler.trajectory)
    assert jax.tree.all(same)
    path = again.save(tmp_path / "kernel.salmc")
    assert float(salmc.load(path, TARGET).trajectory.step_size) == float(
        sampler.trajectory.step_size
    )


def test_chains_that_stay_apart_leave_it_to_tempering():
    """Two equal modes; of 1024 particles a mode has 512 ± 16, and tempering scatters more."""

    def two_modes(x):
        return jnp.logaddexp(-0.5 * jnp.sum((x - 6.0) ** 2), -0.5 * jnp.sum((x + 6.0) ** 2))

    apart = salmc.Target(two_modes, 2, start=jnp.array([[6.0, 6.0], [-6.0, -6.0]]))
    pool = fill_pool(apart, jax.random.key(0), 1024, "trajectories")
    assert pool.trajectory is None
    assert 0.3 < np.mean(np.asarray(pool.positions)[:, 0] > 0.0) < 0.7


def test_the_mover_is_chosen_by_what_the_target_can_do():
    def gaussian(x):
        return -0.5 * jnp.sum(x**2)

    assert choose_mover(TARGET) == "trajectories"
    assert choose_mover(TARGET, follows=False) == "smc"
    assert choose_mover(salmc.Target(gaussian, 5)) == "smc"
    assert choose_mover(Mog2()) == "smc"
    assert choose_mover(salmc.Target(gaussian, 40)) == "trajectories"
    assert choose_mover(salmc.Target(gaussian, 40), follows=False) == "nuts"
    box = salmc.Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), dim=40)
    assert choose_mover(box) == "smc"
