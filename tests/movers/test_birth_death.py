"""Birth and death: a resampling that moves nobody without need."""

import jax
import jax.numpy as jnp
import numpy as np

from salmc.movers.birth_death import succession


def test_equal_weights_change_nothing():
    parent, born = succession(jax.random.key(0), jnp.zeros(100))
    assert not np.any(born)
    assert np.array_equal(parent, np.arange(100))


def test_survivors_stay_and_newborns_come_from_the_heavy():
    log_weights = jnp.log(jnp.array([3.0, 0.0, 1.0, 0.0, 1.0]))
    parent, born = succession(jax.random.key(1), log_weights)
    assert np.array_equal(parent, [0, 0, 2, 0, 4])
    assert np.array_equal(born, [False, True, False, True, False])


def test_offspring_match_the_weights_on_average():
    """Mean offspring over 4000 keys has a standard error below 0.5/√4000 = 0.008."""
    log_weights = jax.random.normal(jax.random.key(2), (40,))
    parents = jax.vmap(lambda key: succession(key, log_weights).parent)(
        jax.random.split(jax.random.key(3), 4000)
    )
    offspring = np.bincount(np.asarray(parents).ravel(), minlength=40) / 4000
    assert np.allclose(offspring, 40 * np.asarray(jax.nn.softmax(log_weights)), atol=0.04)


def test_each_particle_has_offspring_within_one_of_its_expectation():
    log_weights = jax.random.normal(jax.random.key(4), (1000,))
    parent, _ = succession(jax.random.key(5), log_weights)
    offspring = np.bincount(np.asarray(parent), minlength=1000)
    # A single-precision sum over 1000 weights may shift a boundary: hence the hundredth.
    assert np.max(np.abs(offspring - 1000 * np.asarray(jax.nn.softmax(log_weights)))) < 1.01
