"""Convolutions as matrix products, for images (n, height, width, channels).

    down    4 × 4 pixels with stride 2: half the height and width
    up      its counterpart: each new pixel from 2 × 2 old ones, twice the height and width
    to_pixels  3 × 3 neighbours to 2 × 2 pixels of the image

XLA's own strided and dilated convolutions are quick forwards on CPUs, and up to forty times slower
in the gradients that a decoder and a gradient penalty need. Neighbourhoods that are laid side by
side and multiplied by one matrix are quick in every derivative, and as good on other devices.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc import checks
from salmc.kernels.layers import claim_weights
from salmc.programs import on_device

Maps = Float[Array, "n _ _ _"]
"""Images, or feature maps: n, height, width, channels."""

_SMALLEST = 4
_MOST_LEVELS = 4


def halvings(shape: tuple[int, int, int]) -> int:
    """How often height and width can be halved: at most four times, and not below 4 pixels.

    Raises:
        ArgumentError: if they cannot be halved at all.
    """
    height, width, channels = shape
    count = 0
    while (
        count < _MOST_LEVELS
        and height % 2 == 0
        and width % 2 == 0
        and min(height, width) >= 2 * _SMALLEST
    ):
        height, width, count = height // 2, width // 2, count + 1
    if count == 0 or channels < 1:
        checks.fail("shape", "of even height and width, of at least 8 pixels", shape)
    return count


def down(images: Maps, weight: Float[Array, "inputs outputs"], bias: Array) -> Maps:
    """A 4 × 4 convolution with stride 2."""
    n, height, width, channels = images.shape
    rows, columns = height // 2 + 1, width // 2 + 1
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    # Blocks of 2 × 2 pixels become channels; a neighbourhood is then 2 × 2 blocks.
    blocks = padded.reshape(n, rows, 2, columns, 2, channels).transpose(0, 1, 3, 2, 4, 5)
    blocks = blocks.reshape(n, rows, columns, 4 * channels)
    return _beside(blocks) @ weight + bias


def up(maps: Maps, weight: Float[Array, "inputs outputs"], bias: Array) -> Maps:
    """A 4 × 4 convolution with stride 2, transposed."""
    padded = jnp.pad(maps, ((0, 0), (1, 1), (1, 1), (0, 0)))
    # Each place between four old pixels gives four new ones; those on the rim are not needed.
    return _spread(_beside(padded) @ weight)[:, 1:-1, 1:-1] + bias


def to_pixels(maps: Maps, weight: Float[Array, "3 3 inputs outputs"], bias: Array) -> Maps:
    """A 3 × 3 convolution whose outputs are blocks of 2 × 2 pixels.

    With so few outputs, laying neighbours side by side costs more than it saves.
    """
    convolved = jax.lax.conv_general_dilated(
        maps, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return _spread(convolved) + bias


def random_weight(
    generator: np.random.Generator, shape: tuple[int, ...], gain: float = 2.0**0.5
) -> Array:
    """Normal entries, of a size that keeps that of the signal; the last axis has the outputs."""
    claim_weights(*shape)
    fan_in = np.prod(shape[:-1])
    return on_device(generator.standard_normal(shape) * gain / np.sqrt(fan_in))


def _beside(maps: Maps) -> Maps:
    """2 × 2 neighbours side by side as channels; one row and one column less."""
    rows, columns = maps.shape[1] - 1, maps.shape[2] - 1
    corners = itertools.product((0, 1), (0, 1))
    return jnp.concatenate([maps[:, i : i + rows, j : j + columns] for i, j in corners], axis=-1)


def _spread(maps: Maps) -> Maps:
    """Every fourth of the channels becomes one pixel of a 2 × 2 block."""
    n, height, width, channels = maps.shape
    blocks = maps.reshape(n, height, width, 2, 2, channels // 4).transpose(0, 1, 3, 2, 4, 5)
    return blocks.reshape(n, 2 * height, 2 * width, channels // 4)
