"""Codes that an image has by its own decoder: what keeps a chain without noise where it is."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.kernels import IMAGE_KERNELS
from salmc.kernels.image import AbstractImageKernel, rotate, unit

CODE, SIDE = 6, 8


class NearlyInverse(AbstractImageKernel):
    """D(z) = tanh(W z), and an encoder that is off by a bend of its own."""

    weight: jax.Array
    bend: jax.Array
    refinements: int = eqx.field(static=True)
    shape: tuple[int, int, int] = eqx.field(static=True, default=(SIDE, SIDE, 1))
    dim: int = eqx.field(static=True, default=SIDE * SIDE)
    code_dim: int = eqx.field(static=True, default=CODE)
    noise_gain: float = eqx.field(static=True, default=4.0)
    turn: float = eqx.field(static=True, default=0.2)
    name = "nearly inverse"
    explanation = "for tests"

    def encoder(self, images):
        found = jnp.arctanh(jnp.clip(images, -0.999, 0.999)) @ jnp.linalg.pinv(self.weight).T
        return found + 0.25 * jnp.tanh(found @ self.bend)

    def decoder(self, codes):
        return jnp.tanh(codes @ self.weight.T)

    def description(self):
        raise NotImplementedError

    @classmethod
    def from_description(cls, description):
        raise NotImplementedError


def nearly_inverse(refinements):
    keys = jax.random.split(jax.random.key(0))
    weight = 0.3 * jax.random.normal(keys[0], (SIDE * SIDE, CODE))
    return NearlyInverse(weight, jax.random.normal(keys[1], (CODE, CODE)) / CODE**0.5, refinements)


def codes(count=50):
    return unit(jax.random.normal(jax.random.key(5), (count, CODE)))


def error(refinements):
    """How far the codes of the decoder's images are from what they were made from, at most."""
    kernel, made = nearly_inverse(refinements), codes()
    found = eqx.filter_jit(lambda kernel: kernel.refined(kernel.decode(made)))(kernel)
    return float(jnp.max(jnp.linalg.norm(found - made, axis=1)))


def test_each_round_brings_the_code_nearer_to_what_the_image_was_made_from():
    """Of an encoder that is off by up to some tenths; rounding in single precision is the end."""
    errors = [error(rounds) for rounds in (0, 2, 4, 12)]
    assert errors[0] > 0.1
    assert errors[1] < 0.5 * errors[0]
    assert errors[2] < 0.5 * errors[1]
    assert errors[3] < 1e-3


def radii(kernel, steps):
    """Of the code in each plane of the rotation, which R keeps, after so many steps without noise.

    Their spread over chains is that of evenly strewn codes if the chain is stationary.
    """
    quiet = jnp.zeros((50, CODE))

    @eqx.filter_jit
    def run(kernel):
        first = kernel.decode(codes())
        return jax.lax.fori_loop(0, steps, lambda _, x: kernel.generate(x, quiet), first)

    found = nearly_inverse(20).refined(run(kernel))
    return np.hypot(found[:, : CODE // 2], found[:, CODE // 2 :])


def test_chains_without_noise_stay_on_their_orbits():
    """After 200 steps each code is where 200 turns take it; without refinement all are elsewhere.

    1e-2: 200 steps, each with a rounding error of some 1e-5 in the code.
    """
    turned = codes()
    for _ in range(200):
        turned = rotate(turned, 0.2)
    expected = np.hypot(turned[:, : CODE // 2], turned[:, CODE // 2 :])
    np.testing.assert_allclose(radii(nearly_inverse(12), 200), expected, atol=1e-2)
    assert np.max(np.abs(radii(nearly_inverse(0), 200) - expected)) > 0.3


@pytest.mark.parametrize("name", sorted(IMAGE_KERNELS))
def test_kernels_of_older_files_draw_as_they_did(name):
    """Their descriptions know nothing of refinements: one pass of the encoder, as then."""
    kernel = IMAGE_KERNELS[name](jax.random.key(1), (8, 8, 1), width=4, code_dim=6)
    described = {n: v for n, v in kernel.description().items() if n != "refinements"}
    older = type(kernel).from_description(described)
    assert older.refinements == 0
    assert kernel.refinements > 0
    images = jnp.clip(jax.random.normal(jax.random.key(2), (3, 64)), -1, 1)
    noise = jnp.zeros((3, 6))
    expected = older.decode(older.move(older.encode(images), noise))
    np.testing.assert_allclose(older.generate(images, noise), expected, atol=1e-6)
