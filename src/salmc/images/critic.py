"""The critic of images: tells real ones from the chain's.

4 × 4 convolutions with stride 2, one hidden layer, one number. Beside its features the hidden
layer sees how much they vary within small groups of the batch: a chain that makes the same digit
over and over is found out by that (Karras et al., "Progressive growing of GANs", 2018).
"""

import itertools
import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.kernels.convolution import down, halvings, random_weight
from salmc.kernels.layers import leaky, numpy_generator
from salmc.target import Points

_HIDDEN = 128
_GROUP = 4
_STATISTICS = 8


class ImageCritic(eqx.Module):
    """D, a real number for each image, larger where the critic takes it for real.

    Args:
        key: of the first weights.
        shape: height, width and channels of an image.
        width: channels after the first halving; they double at each, up to four times that.
    """

    layers: tuple[tuple[Array, Array], ...]
    hidden: tuple[Array, Array]
    last: tuple[Array, Array]
    shape: tuple[int, int, int] = eqx.field(static=True)

    def __init__(self, key: PRNGKeyArray, shape: tuple[int, int, int], *, width: int = 32):
        checks.integer("width", width, 1)
        generator, levels = numpy_generator(key), halvings(shape)
        self.shape = shape
        channels = [shape[2], *(width * min(2**level, 4) for level in range(levels))]
        self.layers = tuple(
            (random_weight(generator, (16 * inputs, outputs)), jnp.zeros(outputs))
            for inputs, outputs in itertools.pairwise(channels)
        )
        bottom = math.prod((shape[0] >> levels, shape[1] >> levels, channels[-1]))
        inputs = bottom + _STATISTICS
        self.hidden = (random_weight(generator, (inputs, _HIDDEN)), jnp.zeros(_HIDDEN))
        self.last = (random_weight(generator, (_HIDDEN, 1), gain=1.0), jnp.zeros(1))

    def __call__(self, points: Points) -> Float[Array, " n"]:
        """D of n images, rows of pixels."""
        maps = points.reshape(-1, *self.shape)
        for weight, bias in self.layers:
            maps = leaky(down(maps, weight, bias))
        features = maps.reshape(len(maps), -1)
        features = jnp.concatenate([features, _variety(features)], axis=1)
        weight, bias = self.hidden
        hidden = leaky(features @ weight + bias)
        weight, bias = self.last
        return (hidden @ weight + bias)[:, 0]


def _variety(features: Float[Array, "n features"]) -> Float[Array, "n statistics"]:
    """Standard deviations over groups of four images, averaged over eighths of the features."""
    count, size = features.shape
    group = math.gcd(count, _GROUP)
    kept = features[:, : size - size % _STATISTICS].reshape(-1, group, _STATISTICS, size // 8)
    deviation = jnp.sqrt(jnp.var(kept, axis=1) + 1e-8)
    return jnp.repeat(jnp.mean(deviation, axis=-1), group, axis=0)
