"""The convolutional kernel: encoder of x, noise ξ on its code, decoder.

    E: 4 × 4 convolutions with stride 2, down to 4–7 pixels a side, then one matrix
    D: one matrix, then their counterparts up again, and tanh

See `image` for what happens between the two. Channels double at each halving, up to four times
the first.
"""

import itertools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from salmc import checks
from salmc.kernels.convolution import down, halvings, random_weight, to_pixels, up
from salmc.kernels.image import AbstractImageKernel, Codes, checked_code, checked_shape
from salmc.kernels.layers import numpy_generator
from salmc.target import Points

Layer = tuple[Array, Array]
"""Weight and bias."""


class ConvKernel(AbstractImageKernel):
    """Proposals x' = D(z'(E(x), ξ)) from convolutional networks.

    Args:
        key: for the initial weights; not inside `jit`.
        shape: of an image: height, width, channels. Height and width are even.
        width: channels after the first halving.
        code_dim: dimensions of an image's code, and of the noise; even.
        noise_gain: how much the noise counts against the code.
        turn: how far a step without noise goes: the mean angle of the code's rotation.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from salmc.kernels import ConvKernel
        >>> kernel = ConvKernel(jax.random.key(0), (8, 8, 1), width=4, code_dim=6)
        >>> kernel.generate(jnp.zeros((5, 64)), jnp.zeros((5, 6))).shape
        (5, 64)
    """

    encoder_layers: tuple[Layer, ...]
    encoder_last: Layer
    decoder_first: Layer
    decoder_layers: tuple[Layer, ...]
    shape: tuple[int, int, int] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    code_dim: int = eqx.field(static=True)
    noise_gain: float = eqx.field(static=True)
    turn: float = eqx.field(static=True)

    name = "conv"
    explanation = "images: convolutional encoder and decoder, noise on the code between them"

    def __init__(
        self,
        key: PRNGKeyArray,
        shape: tuple[int, int, int],
        *,
        width: int = 32,
        code_dim: int = 16,
        noise_gain: float = 4.0,
        turn: float = 0.2,
    ):
        self.shape = checked_shape(shape)
        self.dim = math.prod(self.shape)
        self.width = checks.integer("width", width, 1)
        self.code_dim, self.noise_gain, self.turn = checked_code(code_dim, noise_gain, turn)
        generator = numpy_generator(key)
        channels = [self.shape[2], *self._channels()]
        self.encoder_layers = tuple(
            (random_weight(generator, (16 * inputs, outputs)), jnp.zeros(outputs))
            for inputs, outputs in itertools.pairwise(channels)
        )
        bottom = math.prod(self._bottom())
        self.encoder_last = (
            random_weight(generator, (bottom, code_dim), gain=1.0),
            jnp.zeros(code_dim),
        )
        self.decoder_first = (random_weight(generator, (code_dim, bottom)), jnp.zeros(bottom))
        self.decoder_layers = (
            *(
                (random_weight(generator, (4 * inputs, 4 * outputs)), jnp.zeros(outputs))
                for inputs, outputs in itertools.pairwise(channels[:0:-1])
            ),
            (
                random_weight(generator, (3, 3, channels[1], 4 * channels[0]), gain=1.0),
                jnp.zeros(channels[0]),
            ),
        )

    def description(self) -> dict[str, Any]:
        return {
            "shape": list(self.shape),
            "width": self.width,
            "code_dim": self.code_dim,
            "noise_gain": self.noise_gain,
            "turn": self.turn,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> "ConvKernel":
        shape = checked_shape(description["shape"])
        return cls(jax.random.key(0), **{**description, "shape": shape})

    def encoder(self, images: Points) -> Codes:
        maps = images.reshape(-1, *self.shape)
        for weight, bias in self.encoder_layers:
            maps = jax.nn.leaky_relu(down(maps, weight, bias), 0.2)
        weight, bias = self.encoder_last
        return maps.reshape(len(maps), -1) @ weight + bias

    def decoder(self, codes: Codes) -> Points:
        weight, bias = self.decoder_first
        maps = jax.nn.leaky_relu(codes @ weight + bias, 0.2).reshape(-1, *self._bottom())
        *layers, last = self.decoder_layers
        for weight, bias in layers:
            maps = jax.nn.leaky_relu(up(maps, weight, bias), 0.2)
        return jnp.tanh(to_pixels(maps, *last)).reshape(len(codes), self.dim)

    def _channels(self) -> list[int]:
        """After each halving."""
        return [self.width * min(2**level, 4) for level in range(halvings(self.shape))]

    def _bottom(self) -> tuple[int, int, int]:
        """The shape of the smallest maps."""
        channels = self._channels()
        height, width, _ = self.shape
        return height >> len(channels), width >> len(channels), channels[-1]
