"""What a critic of few images sees of them."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.images import ImageSettings
from salmc.images.adversarial import ImageAdversarial
from salmc.images.augmentation import adapted, changed
from salmc.images.critic import ImageCritic
from salmc.kernels import ImageMLPKernel

SHAPE = (16, 12, 2)


def some(count=40):
    """Smooth images of their own, so that reading between pixels loses little."""
    rows, columns = np.mgrid[0:16, 0:12] / 8.0
    phases = np.random.default_rng(0).uniform(0, 6, (count, 2))
    maps = [np.sin(rows + columns + phase) for phase in phases.T.reshape(2, count, 1, 1)]
    return jnp.asarray(0.5 * np.stack(maps, axis=-1).reshape(count, -1), dtype=float)


def test_nothing_changes_without_strength():
    images = some()
    np.testing.assert_allclose(changed(jax.random.key(0), images, SHAPE, 0.0), images, atol=1e-5)


def test_each_image_is_changed_in_its_own_way():
    """Of one image many: their means are spread by brightness, at most ± 0.3 of it, and c ≤ 1.3."""
    one = jnp.tile(some(1), (400, 1))
    means = np.asarray(changed(jax.random.key(0), jnp.zeros_like(one), SHAPE, 1.0)).mean(axis=1)
    assert np.max(np.abs(means)) <= 0.3
    assert np.std(means) == pytest.approx(0.6 / np.sqrt(12), rel=0.1)
    again = np.asarray(changed(jax.random.key(0), one, SHAPE, 1.0))
    assert len(np.unique(again.round(4), axis=0)) == 400


def test_half_of_the_images_are_mirrored_and_places_move_by_an_eighth_at_most():
    """A bright column at the left is at the right in half of 400 images, ± 4 standard errors."""
    image = np.full(SHAPE, -1.0)
    image[:, 1] = 1.0
    images = jnp.asarray(np.tile(image.reshape(1, -1), (400, 1)))
    seen = np.asarray(changed(jax.random.key(1), images, SHAPE, 1.0)).reshape(400, *SHAPE)
    brightest = np.argmax(seen[:, 8, :, 0], axis=1)
    assert abs(np.mean(brightest > 5.5) - 0.5) < 4 * 0.5 / 20
    assert set(brightest) <= {0, 1, 2, 3, 8, 9, 10, 11}


def test_gradients_reach_every_image():
    images = some(6)
    slopes = jax.grad(lambda x: jnp.sum(changed(jax.random.key(0), x, SHAPE, 1.0) ** 2))(images)
    assert np.all(np.max(np.abs(np.asarray(slopes)), axis=1) > 0.01)


def test_the_strength_follows_how_sure_the_critic_is():
    """It rises while E sign D(x) is above 0.6, falls below, and stays between 0 and the largest."""
    assert float(adapted(jnp.array(0.3), jnp.array(0.9), 0.8)) > 0.3
    assert float(adapted(jnp.array(0.3), jnp.array(0.1), 0.8)) < 0.3
    assert float(adapted(jnp.array(0.8), jnp.array(0.9), 0.8)) == pytest.approx(0.8)
    assert float(adapted(jnp.array(0.0), jnp.array(-1.0), 0.8)) == 0.0


def test_both_networks_learn_from_changed_images():
    """A step at full strength has other losses of critic and kernel than one at none."""
    kernel = ImageMLPKernel(jax.random.key(0), (8, 8, 1), width=8, code_dim=6)
    critic = ImageCritic(jax.random.key(1), (8, 8, 1), width=4)
    method = ImageAdversarial(kernel, critic, ImageSettings(batch=8, augmentation=1.0))
    state = method.begin(jax.random.key(2))
    images = jnp.asarray(np.random.default_rng(0).integers(0, 256, (8, 64)), jnp.uint8)

    @eqx.filter_jit
    def step(strength):
        begun = dataclasses.replace(state, memory=strength)
        return method.step(begun, jax.random.key(3), images)[:2]

    (_, plain), (after, other) = step(jnp.array(0.0)), step(jnp.array(1.0))
    for name in ("kernel_loss", "critic_loss"):
        assert abs(float(plain[name] - other[name])) > 1e-3
    # The strength is carried on, by a thousandth at most either way.
    assert 0.0 < abs(1.0 - float(after.memory)) <= 1.01e-3
