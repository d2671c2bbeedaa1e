"""Differential evolution is exact; tempered SMC arrives. Both from values of log p alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.diagnostics import mmd_squared
from salmc.movers import DifferentialEvolution, TemperedSMC
from salmc.movers.advance import advance
from salmc.movers.tempered_smc import systematic
from salmc.targets import Banana, Mog4, Mog6, Ring

COUNT = 8000


def z_scores(before, after):
    """Paired z-scores of the change in first and second moments."""
    change = np.concatenate([after - before, after**2 - before**2], axis=1)
    return np.mean(change, axis=0) / (np.std(change, axis=0) / np.sqrt(len(change)))


def moved(mover, start, steps):
    key = jax.random.key(1)
    state = eqx.filter_jit(mover.init)(key, start)
    return np.asarray(advance(mover, state, key, jnp.array(0), jnp.array(steps))[0].particles)


@pytest.mark.parametrize("target", [Mog6(), Ring(), Banana()], ids=lambda target: target.name)
def test_differential_evolution_keeps_exact_draws_exact(target):
    """Four z-scores beyond 4.5 have a chance of 3e-5; halves share partners, hence 4.5, not 4."""
    start = np.asarray(target.sample(jax.random.key(0), COUNT))
    after = moved(DifferentialEvolution(target), jnp.asarray(start), 10)
    assert np.mean(np.any(after != start, axis=1)) > 0.5
    assert np.max(np.abs(z_scores(start, after))) < 4.5


def test_that_test_can_fail():
    """Draws 10 % too wide drift back toward the target: z-scores of 12, give or take one."""
    start = 1.1 * np.asarray(Banana().sample(jax.random.key(0), COUNT))
    after = moved(DifferentialEvolution(Banana()), jnp.asarray(start), 10)
    assert np.max(np.abs(z_scores(start, after))) > 4.5


def test_a_particle_at_zero_density_leaves_it():
    target = salmc.Target(lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf), dim=1)
    start = jnp.concatenate([-jnp.ones((20, 1)), jnp.linspace(0.1, 3.0, 80)[:, None]])
    assert np.mean(moved(DifferentialEvolution(target), start, 200) > 0) == 1.0


def test_tempered_smc_arrives_and_balances_modes():
    """400 × 5 particles: the weight of a mode of 1/4 has a standard error of about 0.02."""
    target = Mog4()
    draws = salmc.move(TemperedSMC(target), particles=2000, steps=15, progress=False)
    assert mmd_squared(draws.sample(), target.sample(jax.random.key(2), 2000)) < 2e-3
    weights = (
        np.bincount(np.asarray(target.component(jnp.asarray(draws.sample()))), minlength=4) / 2000
    )
    assert np.max(np.abs(weights - np.asarray(target.component_weights))) < 0.08


def test_tempering_ends_at_one_and_keeps_the_log_density_right():
    mover = TemperedSMC(Mog6())
    key = jax.random.key(0)
    state = mover.init(key, 3.0 * jax.random.normal(key, (500, 2)))
    step = eqx.filter_jit(mover.step)
    betas = []
    for i in range(12):
        state, info = step(jax.random.fold_in(key, i), state)
        betas.append(float(info.beta))
    assert betas == sorted(betas)
    assert betas[-1] == 1.0
    assert np.allclose(state.log_density, Mog6().log_densities(state.particles), atol=1e-3)


def test_systematic_resampling_follows_the_weights():
    log_weights = jnp.log(jnp.array([0.5, 0.25, 0.125, 0.125]).repeat(4) / 4)
    counts = np.bincount(np.asarray(systematic(jax.random.key(0), log_weights)), minlength=16)
    assert counts.sum() == 16
    assert np.all(np.abs(counts - 16 * np.exp(np.asarray(log_weights))) < 1.001)
