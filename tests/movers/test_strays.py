"""Strays: who dies, who does not, and where the dead are born again."""

import jax
import jax.numpy as jnp
import numpy as np

from salmc.movers.memory import Memory
from salmc.movers.strays import reborn, shares_below, surplus
from salmc.targets import Mog6


def memory_of(target, count=16384):
    """Exact draws of equal weight."""
    points = target.sample(jax.random.key(7), count)
    return Memory(points, target.log_densities(points), jnp.zeros(count))


def test_shares_of_exact_draws_are_uniform():
    """Kolmogorov's distance of 2000 uniform numbers is above 0.036 in 1 % of cases."""
    target = Mog6()
    points = target.sample(jax.random.key(0), 2000)
    shares = np.sort(shares_below(target.log_densities(points), memory_of(target)))
    assert np.max(np.abs(shares - np.arange(2000) / 2000)) < 0.04


def test_shares_count_draws_by_their_weights():
    points, log_density = jnp.zeros((4, 1)), jnp.array([-1.0, -4.0, -3.0, -2.0])
    memory = Memory(points, log_density, jnp.log(jnp.array([1.0, 1.0, 3.0, 5.0])))
    limited = memory.weights  # cut at about half of all
    found = shares_below(jnp.array([-5.0, -3.5, -0.5]), memory)
    np.testing.assert_allclose(found, [0.0, limited[1], 1.0], atol=1e-5)


def deaths(target, points, seed=0):
    shares = shares_below(target.log_densities(points), memory_of(target))
    return np.asarray(surplus(jax.random.key(seed), shares))


def test_strays_die_and_hardly_any_other():
    """20 of 400 between the modes; of 380 exact draws less than one in a hundred on average."""
    target = Mog6()
    angles = jnp.linspace(0.0, 2.0 * jnp.pi, 20)
    strays = 2.5 * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    dead = []
    for seed in range(20):
        points = target.sample(jax.random.key(100 + seed), 380)
        dead.append(deaths(target, jnp.concatenate([strays, points]), seed))
    # The first band, λ = 1/8, has room for λ + √λ = 0.48 of the 20.
    assert np.mean(np.sum(dead, axis=0)[:20]) / 20 > 0.95
    assert np.mean(np.array(dead)[:, 20:]) < 0.01


def test_evenly_spread_shares_cost_no_lives():
    assert not np.any(surplus(jax.random.key(0), (jnp.arange(400) + 0.5) / 400))


def test_the_dead_are_born_where_a_mode_lacks_particles():
    """Five of six modes have 80 particles, and one in twenty dies."""
    target = Mog6()
    points = target.sample(jax.random.key(0), 2400)
    labels = np.asarray(target.component(points))
    chosen = np.concatenate([np.flatnonzero(labels == mode)[:80] for mode in range(5)])
    particles, dead = points[chosen], np.arange(400) % 20 == 0
    draws = target.sample(jax.random.key(1), 4096)
    new = reborn(jax.random.key(2), particles, jnp.asarray(dead), draws, jnp.array(0.5))
    np.testing.assert_array_equal(new[~dead], particles[~dead])
    born = np.asarray(target.component(new))[dead]
    # The sixth mode lacks 67 particles, gaps between those of the other five some more.
    assert np.mean(born == 5) > 0.6
