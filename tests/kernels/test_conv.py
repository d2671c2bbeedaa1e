"""Kernels over images: shapes, gradients, the sphere of codes, and convolutions against XLA's."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError
from salmc.kernels import IMAGE_KERNELS, ConvKernel, ImageMLPKernel
from salmc.kernels.convolution import down, halvings, up
from salmc.kernels.image import rotate, unit

EVERY = pytest.mark.parametrize("name", sorted(IMAGE_KERNELS))
SMALL = {"width": 4, "code_dim": 6, "refinements": 0}
"""Refined codes have a file of their own; without, programs compile in half the time."""


def make(name, shape=(8, 8, 1), **options):
    return IMAGE_KERNELS[name](jax.random.key(1), shape, **{**SMALL, **options})


@eqx.filter_jit
def call(kernel, method, *given):
    """One program, where operations one by one would be fifty."""
    return getattr(kernel, method)(*given)


def some(kernel, count=7):
    return jnp.clip(jax.random.normal(jax.random.key(2), (count, kernel.dim)), -1, 1)


def noise_of(kernel, count, variance=0.5):
    noise = jax.random.normal(jax.random.key(3), (count, kernel.noise_dim))
    return jnp.sqrt(variance) * noise


@EVERY
@pytest.mark.parametrize("shape", [(8, 8, 1), (28, 28, 1), (16, 24, 3)])
def test_images_go_in_and_come_out(name, shape):
    kernel = make(name, shape)
    images = some(kernel)
    new = call(kernel, "propose", images, noise_of(kernel, 7)).points
    assert new.shape == (7, np.prod(shape))
    assert float(jnp.max(jnp.abs(new))) <= 1.0


@EVERY
def test_both_the_image_and_the_noise_count(name):
    kernel = make(name)
    images, noise = some(kernel), noise_of(kernel, 7)
    new = call(kernel, "generate", images, noise)
    assert float(jnp.max(jnp.abs(call(kernel, "generate", -images, noise) - new))) > 1e-3
    assert float(jnp.max(jnp.abs(call(kernel, "generate", images, -noise) - new))) > 1e-3
    loss = eqx.filter_grad(lambda kernel: jnp.sum(kernel.generate(images, noise) ** 2))
    gradient = eqx.filter_jit(loss)(kernel)
    assert all(float(jnp.max(jnp.abs(leaf))) > 0 for leaf in jax.tree.leaves(gradient))


@EVERY
def test_a_batch_is_its_images_one_by_one(name):
    kernel = make(name)
    images, noise = some(kernel), noise_of(kernel, 7)
    together = call(kernel, "generate", images, noise)
    apart = [call(kernel, "generate", images[i : i + 1], noise[i : i + 1])[0] for i in range(7)]
    np.testing.assert_allclose(together, jnp.stack(apart), atol=1e-5)


@EVERY
def test_the_description_rebuilds_the_structure(name):
    kernel = make(name, (8, 12, 3), noise_gain=2.0, turn=0.3, refinements=3)
    again = type(kernel).from_description(json.loads(json.dumps(kernel.description())))
    first, second = (eqx.partition(k, eqx.is_array) for k in (kernel, again))
    assert eqx.tree_equal(first[1], second[1])
    assert [x.shape for x in jax.tree.leaves(first[0])] == [
        x.shape for x in jax.tree.leaves(second[0])
    ]


def test_proposals_have_noise_of_variance_a_half():
    kernel = make("conv")
    images, noise = some(kernel), jax.random.normal(jax.random.key(0), (7, kernel.noise_dim))
    expected = call(kernel, "generate", images, jnp.sqrt(0.5) * noise)
    # One rounding of the noise, through a few layers of gain about 1.
    np.testing.assert_allclose(call(kernel, "propose", images, noise).points, expected, atol=1e-5)


def test_a_move_without_noise_is_a_small_turn_and_with_noise_a_jump():
    """The angle without noise is about `turn`; with σ² = 0.5 and g = 4, cos = 1/3 on average."""
    kernel = make("conv", code_dim=64, turn=0.1)
    codes = unit(jax.random.normal(jax.random.key(0), (500, 64)))
    quiet = jnp.sum(call(kernel, "move", codes, jnp.zeros((500, 64))) * codes, axis=1)
    angles = np.arccos(np.asarray(quiet))
    assert np.all((angles > 0.05) & (angles < 0.15))
    assert np.mean(angles) == pytest.approx(0.1, abs=0.01)
    noise = noise_of(kernel, 500)
    jumps = jnp.sum(call(kernel, "move", codes, noise) * codes, axis=1)
    assert float(jnp.mean(jumps)) == pytest.approx(1 / 3, abs=0.03)


def test_the_rotation_keeps_lengths_and_does_not_come_back():
    codes = unit(jax.random.normal(jax.random.key(0), (20, 32)))
    turned, nearest, turn = codes, 2.0, jax.jit(lambda codes: rotate(codes, 0.2))
    for step in range(1, 200):
        turned = turn(turned)
        if step > 5:
            nearest = min(nearest, float(jnp.min(jnp.linalg.norm(turned - codes, axis=1))))
    np.testing.assert_allclose(jnp.linalg.norm(turned, axis=1), 1.0, atol=1e-4)
    assert nearest > 0.3


def test_down_is_the_convolution_it_says():
    """Against XLA's own 4 × 4 convolution with stride 2, whose weight is the same, reordered."""
    generator = np.random.default_rng(0)
    images = jnp.asarray(generator.normal(size=(3, 8, 12, 2)), jnp.float32)
    window = jnp.asarray(generator.normal(size=(4, 4, 2, 5)), jnp.float32)
    expected = jax.lax.conv_general_dilated(
        images, window, (2, 2), ((1, 1), (1, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    # Rows and columns of the window are (block, place in the block).
    ours = window.reshape(2, 2, 2, 2, 2, 5).transpose(0, 2, 1, 3, 4, 5).reshape(-1, 5)
    np.testing.assert_allclose(down(images, ours, jnp.zeros(5)), expected, atol=1e-4)


def test_up_doubles_and_stays_local():
    """One pixel reaches the 4 × 4 pixels about it and no others, as a transposed convolution."""
    maps = jnp.zeros((1, 5, 6, 1)).at[0, 2, 3, 0].set(1.0)
    large = up(maps, jnp.ones((4, 4)), jnp.zeros(1))
    assert large.shape == (1, 10, 12, 1)
    expected = np.zeros((10, 12))
    expected[3:7, 5:9] = 1.0
    np.testing.assert_allclose(large[0, :, :, 0], expected)


def test_halvings():
    assert [halvings((side, side, 1)) for side in (8, 28, 32, 48, 64)] == [1, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("kernel", "options", "words"),
    [
        (ConvKernel, {"shape": (7, 7, 1)}, "even height and width"),
        (ImageMLPKernel, {"shape": (8, 8, 0)}, "at least 1"),
        (ConvKernel, {"shape": (8, 8, 1), "code_dim": 5}, "even"),
        (ImageMLPKernel, {"shape": (8, 8, 1), "noise_gain": 0.0}, "above 0"),
        (ImageMLPKernel, {"shape": (8, 8, 1), "turn": 4.0}, "at most"),
    ],
)
def test_bad_arguments(kernel, options, words):
    with pytest.raises(ArgumentError, match=words):
        kernel(jax.random.key(0), **options)
