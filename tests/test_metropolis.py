"""Threefry against the published answers, and what is made of its bits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from salmc.metropolis import normal, step_keys, step_noise, threefry

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        # The known answers of Random123 for Threefry-2x32-20.
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(key, counter, expected):
    words = [jnp.asarray([word], dtype=jnp.uint32) for word in counter]
    found = threefry(*(jnp.uint32(word) for word in key), *words)
    assert [int(word[0]) for word in found] == list(expected)


def test_is_normal():
    values = np.asarray(jax.jit(lambda key: normal(key, (100_000,)))(jax.random.key(0)))
    assert np.all(np.isfinite(values))
    assert scipy.stats.kstest(values, "norm").pvalue > 1e-3
    # The two words of a counter lie half of the array apart; neighbours share nothing but the key.
    half = len(values) // 2
    for other in (np.roll(values, 1), np.roll(values, half)):
        for power in (1, 2):
            # Standard error of a correlation of 10⁵ pairs: 0.003.
            assert abs(np.corrcoef(values**power, other**power)[0, 1]) < 0.015


def test_keys_and_shapes():
    first, second = jax.random.split(jax.random.key(1))
    one, other = normal(first, (7, 3)), normal(second, (7, 3))
    assert one.shape == (7, 3)
    assert one.dtype == jnp.float32
    np.testing.assert_array_equal(one, normal(first, (7, 3)))
    assert not np.any(one == other)
    assert len(np.unique(one)) == 21
    many = jax.vmap(lambda key: normal(key, (7, 3)))(jnp.stack([first, second]))
    np.testing.assert_array_equal(many, jnp.stack([one, other]))


def test_keys_of_another_kind_and_double_precision_are_left_to_jax():
    key = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(normal(key, (5,)), jax.random.normal(key, (5,)))
    with jax.enable_x64(True):
        assert normal(jax.random.key(0), (5,)).dtype == jnp.float64


def test_keys_of_steps_are_those_of_jax():
    keys = jax.random.split(jax.random.key(3), 5)
    found = step_keys(keys, np.array(7, np.uint32), 4)
    expected = jnp.stack(
        [jnp.stack([jax.random.fold_in(key, 7 + i) for key in keys]) for i in range(4)]
    )
    np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(expected))
    other = jax.random.split(jax.random.key(3, impl="rbg"), 2)
    found = step_keys(other, np.array(7, np.uint32), 1)
    np.testing.assert_array_equal(
        jax.random.key_data(found[0, 1]), jax.random.key_data(jax.random.fold_in(other[1], 7))
    )


@pytest.mark.parametrize("double", [False, True])
def test_the_noise_of_a_step_depends_on_its_key_alone(double):
    with jax.enable_x64(double):
        keys = jax.random.split(jax.random.key(3), 12).reshape(3, 4)
        noise, log_uniform = step_noise(keys, 5, 2)
        assert (noise.shape, log_uniform.shape) == ((3, 4, 5), (3, 4, 2))
        assert noise.dtype == (jnp.float64 if double else jnp.float32)
        alone, log_alone = step_noise(keys[1, 2], 5, 2)
        np.testing.assert_array_equal(noise[1, 2], alone)
        np.testing.assert_array_equal(log_uniform[1, 2], log_alone)


def test_the_noise_of_steps_is_normal_and_uniform():
    keys = jax.random.split(jax.random.key(5), 20_000)
    noise, log_uniform = (np.asarray(values) for values in step_noise(keys, 3, 1))
    assert scipy.stats.kstest(noise.ravel(), "norm").pvalue > 1e-3
    assert scipy.stats.kstest(np.exp(log_uniform[:, 0]), "uniform").pvalue > 1e-3
    assert np.all(log_uniform <= 0)
    # Standard error of a correlation of 2·10⁴ pairs: 0.007.
    together = np.corrcoef(np.concatenate([noise, log_uniform], axis=1).T)
    assert np.max(np.abs(together - np.eye(4))) < 0.035
