"""SGLD, SGHMC and SGNHT: the law at rest is the target's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.movers import SGHMC, SGLD, SGNHT
from salmc.target import Target

MEAN, STD = jnp.array([10.0, -3.0]), jnp.array([2.0, 0.5])
TARGET = Target(lambda x: -0.5 * jnp.sum(((x - MEAN) / STD) ** 2), 2)


@pytest.mark.parametrize("mover_class", [SGLD, SGHMC, SGNHT])
def test_mean_and_spread_of_a_gaussian(mover_class, drive):
    """500 chains of at least 10 independent draws each: the Monte Carlo error of the mean is
    below 0.015 sd and that of the sd below 1 %; the bias of the default step sizes is below 4 %.
    """
    start = MEAN + STD * (1.0 + 1.5 * jax.random.normal(jax.random.key(1), (500, 2)))
    _, paths, _ = drive(mover_class(TARGET), start, 1000)
    sample = paths[500:].reshape(-1, 2)
    np.testing.assert_allclose((jnp.mean(sample, axis=0) - MEAN) / STD, 0.0, atol=0.06)
    np.testing.assert_allclose(jnp.std(sample, axis=0) / STD, 1.0, atol=0.06)


def test_sgld_follows_its_formula(normal):
    mover = SGLD(normal(2), step_size=0.2, decay=0.5)
    start = jnp.array([[1.0, 0.5], [-1.0, -0.5]])
    state = mover.init(jax.random.key(0), start)
    for count in range(3):
        before = state.particles
        key = jax.random.key(count)
        noise = jax.random.normal(jax.random.split(key)[1], start.shape)
        state, info = mover.step(key, state)
        # In the units of the start, (1, 0.5), the gradient −x becomes −x scale².
        epsilon = 0.2 / np.sqrt(count + 1)
        scale = np.array([1.0, 0.5])
        expected = before - epsilon * scale**2 * before + scale * np.sqrt(2 * epsilon) * noise
        np.testing.assert_allclose(state.particles, expected, rtol=1e-5)
        moved = np.sqrt(np.mean(np.sum(((expected - before) / scale) ** 2, axis=1)))
        np.testing.assert_allclose(info.displacement, moved, rtol=1e-5)


def test_sgld_constant_steps_have_their_known_bias(normal, drive, start):
    """x ← (1 − ε)x + √(2ε)ζ has the variance 1/(1 − ε/2); 500 chains × 300 steps know it to 2 %.

    The start's spread is √2.5, so a step size of 0.16 is ε = 0.4.
    """
    points = start(500, 1)
    points = points / jnp.std(points) * jnp.sqrt(2.5)
    _, paths, _ = drive(SGLD(normal(1), step_size=0.16, decay=0.0), points, 500)
    np.testing.assert_allclose(jnp.var(paths[200:]), 1.0 / (1.0 - 0.4 / 2), rtol=0.03)


def test_sghmc_velocities_have_the_variance_of_the_step_size(normal, drive, start):
    """Var v = ε in units of the start; 500 × 2 velocities know their sd to 2 %, here 3 sd."""
    mover = SGHMC(normal(2), friction=0.3)
    state, _, _ = drive(mover, start(500, 2), 500)
    np.testing.assert_allclose(jnp.std(state.velocities), jnp.sqrt(mover.step_size), rtol=0.07)


@pytest.mark.parametrize("diffusion", [0.5, 2.0])
def test_sgnht_thermostat_settles_at_the_diffusion(diffusion, normal, drive, start):
    """In 5 dimensions ξ has a sd of about √(2/5)·… < 1 in each of 500 chains; the mean over chains
    and 300 steps is known to 0.05, and the bias of h = 0.05 is of the order of h A² ≤ 0.1.
    """
    _, _, infos = drive(SGNHT(normal(5), diffusion=diffusion), start(500, 5), 800)
    np.testing.assert_allclose(jnp.mean(infos.thermostat[500:]), diffusion, atol=0.15)


def test_sgnht_absorbs_gradient_noise(drive, start):
    """Noise in the gradients of variance s² heats SGHMC; the thermostat of SGNHT rises instead."""

    class Noisy(Target):
        def minibatch(self, key):
            pull = 3.0 * jax.random.normal(key, (2,))
            return Target(lambda x: self.function(x) + pull @ x, 2)

    target = Noisy(lambda x: -0.5 * jnp.sum(x**2), 2)
    _, paths, infos = drive(SGNHT(target, step_size=0.1), start(400, 2), 1000)
    assert float(jnp.mean(infos.thermostat[500:])) > 1.1
    # One minibatch moves all particles alike: look at the spread over time, not at one cloud.
    # 50 time units of a process with memory of about 2: sd known to about 10 %.
    np.testing.assert_allclose(jnp.std(paths[300:], axis=(0, 1)), 1.0, atol=0.2)
