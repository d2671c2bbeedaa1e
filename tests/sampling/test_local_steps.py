"""Local steps in the latent space are exact, and part of the same chains."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.kernels import FlowKernel, Whitening
from salmc.learning.particles import Particles, drift, latent_moves, quantiles
from salmc.metropolis import local_steps_needed
from salmc.targets import Mog2


@pytest.fixture(scope="module")
def sampler():
    """A flow that fits badly: exactness must not depend on it."""
    kernel = FlowKernel(jax.random.key(0), 2, layers=2, width=8, knots=4)
    kernel = eqx.filter_jit(jax.tree.map)(
        lambda leaf: leaf + 0.3 * jax.random.normal(jax.random.key(leaf.size), leaf.shape), kernel
    )
    # Tails as they were: with these weights they would be beyond all that float32 holds.
    kernel = eqx.tree_at(lambda kernel: kernel.tails, kernel, jnp.zeros(3))
    whitening = Whitening(jnp.zeros(2), 0.25 * jnp.eye(2), 4.0 * jnp.eye(2))
    pool = np.asarray(Mog2().sample(jax.random.key(1), 2000))
    return salmc.Sampler(kernel, Mog2(), whitening, pool, local=2)


def test_exact_draws_stay_exact(sampler):
    """2000 chains from exact draws, 20 steps: means err by 1/√2000 = 0.022 sd."""
    draws = sampler.sample(chains=2000, draws=20, progress=False)
    last = draws.positions[:, -1]
    assert np.max(np.abs(last.mean(axis=0)) / Mog2().std) < 0.1
    np.testing.assert_allclose(last.std(axis=0), Mog2().std, rtol=0.08)
    assert abs(np.mean(last[:, 0] > 0) - 0.5) < 0.05
    assert draws.settings["local"] == 2


def test_they_move_chains_where_independent_proposals_do_not(sampler):
    alone = dataclasses.replace(sampler, local=0)
    first, second = (s.sample(chains=2000, draws=20, progress=False) for s in (alone, sampler))
    still = [np.mean(np.all(np.diff(d.positions, axis=1) == 0, axis=2)) for d in (first, second)]
    assert still[1] < still[0]


def test_init_and_step_are_what_sample_runs(sampler):
    start = np.asarray(sampler.pool[:4], np.float32)
    draws = sampler.sample(chains=4, draws=8, seed=3, start=start, progress=False)
    transition = sampler.transition()
    chain_key = jax.random.split(jax.random.key(3, impl="threefry2x32"))[1]
    key = jax.random.fold_in(chain_key, 1)
    state = eqx.filter_jit(transition.init)(jnp.asarray(start[1]))
    step = jax.jit(lambda number, state: transition.step(jax.random.fold_in(key, number), state))
    for number in range(8):
        state, info = step(np.uint32(number), state)
        np.testing.assert_allclose(info.position, draws.positions[1, number], rtol=1e-4, atol=1e-4)


def test_fewer_chains_are_the_first_of_more(sampler):
    few, many = (sampler.sample(chains=n, draws=8, progress=False) for n in (4, 6))
    np.testing.assert_array_equal(few.positions, many.positions[:4])


def test_latent_moves_leave_a_pool_of_exact_draws_as_it_is(sampler):
    points = sampler.whitening.whiten(jnp.asarray(sampler.pool))

    @jax.jit
    def log_density(points):
        return Mog2().log_densities(sampler.whitening.colour(points))

    key = jax.random.key(0)
    pool = Particles(points, log_density(points), jnp.zeros((1, 1)), quantiles=quantiles(points))
    move = eqx.filter_jit(lambda kernel, pool: latent_moves(key, kernel, pool, log_density))
    moved, accepted = move(sampler.kernel, pool)
    assert 0.02 < float(accepted) < 1.0
    assert drift(moved) < 4.5
    np.testing.assert_allclose(moved.log_density, log_density(moved.points), rtol=1e-3, atol=1e-2)
    shifted = dataclasses.replace(moved, points=moved.points + 0.3)
    assert drift(shifted) > 4.5


def test_the_choice_is_kept_in_the_file(sampler, tmp_path):
    assert salmc.load(sampler.save(tmp_path / "k.salmc")).local == 2


def test_one_place_in_a_thousand_where_chains_would_stay_asks_for_local_steps():
    """Of the pool so little is stuck that its share tells nothing; its longest stay does."""
    generator = np.random.default_rng(0)
    proposals = 0.3 * generator.normal(size=2000)
    pool = 0.3 * generator.normal(size=2000)
    assert local_steps_needed(pool, proposals) == 0
    pool[:2] = np.log([300.0, 500.0])
    assert local_steps_needed(pool, proposals) == 1


def test_stays_that_only_a_longer_run_would_meet_ask_for_local_steps():
    """1/α with a tail of power 2: the longest stay of 2000 is 63 steps, of 64,000 about 250."""
    generator = np.random.default_rng(1)
    proposals = np.zeros(2000)
    shares = (np.arange(2000) + 0.5) / 2000
    assert local_steps_needed(-0.5 * np.log(shares), proposals) == 1
    light = np.log1p(generator.exponential(size=2000))
    assert local_steps_needed(light, proposals) == 0
