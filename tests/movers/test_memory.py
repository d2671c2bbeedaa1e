"""The memory: densities of its draws, what their weights are worth, and how old draws go."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.movers import memory
from salmc.movers.memory import Memory, draws_beside


def test_density_of_draws_is_that_of_the_smoothed_cloud():
    points = np.random.default_rng(0).normal(size=(20, 3))
    draws, log_density = draws_beside(jax.random.key(0), jnp.asarray(points), jnp.array(0.3))
    squares = np.sum((np.asarray(draws)[:, None] - points[None]) ** 2, axis=2)
    kernels = np.exp(-squares / 0.6) / (2 * np.pi * 0.3) ** 1.5
    np.testing.assert_allclose(log_density, np.log(np.mean(kernels, axis=1)), atol=1e-4)


def remembered(cloud, steps=20, variance=0.5):
    """A memory of draws beside a cloud that stands still, weighted by N(1, diag(1, 0.5²))."""
    kept = Memory.empty(cloud)
    for step in range(steps):
        draws, log_proposal = draws_beside(jax.random.key(step), cloud, jnp.array(variance))
        log_density = -0.5 * jnp.sum(((draws - 1.0) / jnp.array([1.0, 0.5])) ** 2, axis=1)
        kept = kept.with_draws(jnp.array(step), draws, log_density, log_proposal)
    return kept


def test_weighted_draws_have_the_targets_moments_whatever_the_cloud():
    """4000 draws beside a cloud from N(0, 1.5² I), worth 800 exact ones: 3.5 % of each moment."""
    kept = remembered(1.5 * jax.random.normal(jax.random.key(0), (200, 2)))
    assert 400 < kept.worth < 4000
    mean, factor = kept.moments()
    np.testing.assert_allclose(mean, 1.0, atol=0.12)
    np.testing.assert_allclose(factor @ factor.T, np.diag([1.0, 0.25]), atol=0.15)


def test_worth_of_equal_weights_is_their_number_and_of_none_nothing():
    cloud = jnp.zeros((8, 2))
    empty = Memory.empty(cloud)
    assert empty.worth == 0.0
    assert jnp.all(empty.weights == 0.0)
    values = jnp.full(8, -700.0), jnp.zeros(8)
    one = empty.with_draws(jnp.array(0), cloud, *values)
    np.testing.assert_allclose(one.with_draws(jnp.array(1), cloud, *values).worth, 16.0)


def test_one_draw_of_large_weight_is_cut():
    """e⁸ of e⁸ + 16,383 would be 15 % of all weight; 1/√16,384 is 0.8 %."""
    cloud = jnp.zeros((1024, 2))
    size = len(Memory.empty(cloud).points)
    kept = Memory(jnp.zeros((size, 2)), jnp.zeros(size), jnp.zeros(size).at[0].set(8.0))
    assert kept.weights[0] == pytest.approx(size**-0.5, rel=0.2)
    assert kept.worth > 0.4 * size


def test_the_oldest_draws_are_overwritten(monkeypatch):
    monkeypatch.setattr(memory, "_PART", 4)
    kept = Memory.empty(jnp.zeros((4, 1)))
    for step in range(6):
        values = jnp.zeros(4), jnp.zeros(4)
        kept = kept.with_draws(jnp.array(step), jnp.full((4, 1), float(step)), *values)
    assert sorted(set(np.asarray(kept.points)[:, 0].tolist())) == [2.0, 3.0, 4.0, 5.0]


def test_parts_make_up_the_whole(monkeypatch):
    monkeypatch.setattr(memory, "_PART", 6)
    numbers = jnp.arange(24.0)
    kept = Memory(numbers[:, None], jnp.zeros(24), jnp.zeros(24))
    parts = [kept.part(jnp.array(step)) for step in range(4)]
    assert sorted(np.concatenate([p[:, 0] for p, _ in parts]).tolist()) == numbers.tolist()
    np.testing.assert_allclose([float(jnp.sum(weights)) for _, weights in parts], 1.0, rtol=1e-5)


def test_parts_have_draws_beside_all_particles(monkeypatch):
    """A part of draws beside every fourth particle alone would have too many of their modes."""
    monkeypatch.setattr(memory, "_PART", 16)
    cloud = jnp.arange(8.0)[:, None]
    kept = Memory.empty(cloud)
    for step in range(len(kept.points) // 8):
        kept = kept.with_draws(jnp.array(step), cloud, jnp.zeros(8), jnp.zeros(8))
    counts = [np.unique(kept.part(jnp.array(step))[0], return_counts=True)[1] for step in range(4)]
    np.testing.assert_array_equal(counts, np.full((4, 8), len(kept.points) // 32))


def test_resampled_draws_are_as_many_as_their_weights_say():
    """Of 10,000 the standard error of a share of a quarter is 0.0043."""
    numbers = jnp.arange(400) % 4
    values = jnp.array([-jnp.inf, 0.0, 0.0, jnp.log(2.0)])[numbers]
    kept = Memory(numbers[:, None].astype(float), values, values)
    drawn = np.asarray(kept.resampled(jax.random.key(0), 10_000))[:, 0].astype(int)
    shares = np.bincount(drawn, minlength=4) / 10_000
    np.testing.assert_allclose(shares, [0.0, 0.25, 0.25, 0.5], atol=0.02)
