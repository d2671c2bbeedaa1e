"""The fully connected kernel over images: the paper's MLP generator, with its noise on a code.

    E: x → w → k,   D: k → w → w → x, and tanh

For MNIST 784 → 512 → 16 + ξ → 512 → 512 → 784. See `image` for what happens at the code. It has no
notion of neighbouring pixels, takes images of any shape, and suits small ones.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from salmc import checks
from salmc.kernels.image import AbstractImageKernel, Codes, checked_code, checked_shape
from salmc.kernels.layers import Network, leaky, network, numpy_generator
from salmc.target import Points

_SMALL_IMAGE = 1000


class ImageMLPKernel(AbstractImageKernel):
    """Proposals x' = D(z'(E(x), ξ)) from fully connected networks.

    Args:
        key: for the initial weights; not inside `jit`.
        shape: of an image: height, width, channels.
        width: of the hidden layers.
        code_dim: dimensions of an image's code, and of the noise; even. By default 8 for images of
            up to a thousand numbers and 32 for larger ones. In many dimensions noise leads far from
            all codes of real images, and rare shapes are drawn too rarely.
        noise_gain: how much the noise counts against the code.
        turn: how far a step without noise goes: the mean angle of the code's rotation.
        refinements: rounds that make encoder and decoder inverses of each other; see `image`.
    """

    encoder_network: Network
    decoder_network: Network
    shape: tuple[int, int, int] = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    code_dim: int = eqx.field(static=True)
    noise_gain: float = eqx.field(static=True)
    turn: float = eqx.field(static=True)
    refinements: int = eqx.field(static=True)

    name = "image-mlp"
    explanation = "images: fully connected encoder and decoder, noise on the code between them"

    def __init__(
        self,
        key: PRNGKeyArray,
        shape: tuple[int, int, int],
        *,
        width: int = 512,
        code_dim: int | None = None,
        noise_gain: float = 4.0,
        turn: float = 0.2,
        refinements: int = 4,
    ):
        self.shape = checked_shape(shape)
        self.dim = math.prod(self.shape)
        self.width = checks.integer("width", width, 1)
        if code_dim is None:
            code_dim = 8 if self.dim <= _SMALL_IMAGE else 32
        self.code_dim, self.noise_gain, self.turn = checked_code(code_dim, noise_gain, turn)
        self.refinements = checks.integer("refinements", refinements, 0)
        generator = numpy_generator(key)
        self.encoder_network = network(generator, [self.dim, width, code_dim], leaky, last_gain=1.0)
        self.decoder_network = network(
            generator, [code_dim, width, width, self.dim], leaky, last_gain=1.0
        )

    def encoder(self, images: Points) -> Codes:
        return self.encoder_network(images.T).T

    def decoder(self, codes: Codes) -> Points:
        return jnp.tanh(self.decoder_network(codes.T)).T
