"""Images as a critic sees them that has few: shifted, stretched, mirrored, lighter or darker.

    T(x) = c A x Bᵀ + b

A and B interpolate rows and columns at other places, c and b change contrast and brightness; all
are drawn anew for each image. Of some hundreds of images a critic soon knows each by heart, and
tells the kernel nothing any more. It cannot, if it never sees one twice. Real images and the
chain's are changed alike, and T is invertible on average: laws that agree after T agree before, so
that the chain does not learn to draw shifted images (Zhao et al., "Differentiable augmentation for
data-efficient GAN training", 2020). As products of matrices they are quick in every derivative.

The changes grow only while the critic is sure of most real images, and shrink while it is not, as
they make its work harder (Karras et al., "Training generative adversarial networks with limited
data", 2020).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.target import Points, Scalar

_SURE = 0.6
"""E sign D(x) of real images above which a critic is taken to know them by heart."""
_PACE = 1e-3
"""How much the strength changes in a step, of the largest."""
_SHIFT = 0.125
"""Of the side, at most, either way."""
_STRETCH = 0.15
_CONTRAST, _BRIGHTNESS = 0.3, 0.3
"""At most, either way, where pixels are in [−1, 1]."""


def changed(
    key: PRNGKeyArray, points: Points, shape: tuple[int, int, int], strength: Scalar | float
) -> Points:
    """T of each image, with changes of `strength` times the largest."""
    keys = jax.random.split(key, 7)
    count, (height, width, _) = len(points), shape

    def even(key: PRNGKeyArray, size: float) -> Float[Array, " n"]:
        return strength * size * jax.random.uniform(key, (count,), minval=-1.0, maxval=1.0)

    mirrored = jnp.where(jax.random.uniform(keys[0], (count,)) < 0.5 * strength, -1.0, 1.0)
    rows = _resampling(height, jnp.exp(even(keys[1], _STRETCH)), even(keys[2], _SHIFT * height))
    columns = _resampling(
        width, mirrored * jnp.exp(even(keys[3], _STRETCH)), even(keys[4], _SHIFT * width)
    )
    images = points.reshape(count, *shape)
    images = jnp.einsum("nij,njkc->nikc", rows, images)
    images = jnp.einsum("nlk,nikc->nilc", columns, images)
    contrast, brightness = 1.0 + even(keys[5], _CONTRAST), even(keys[6], _BRIGHTNESS)
    return contrast[:, None] * images.reshape(points.shape) + brightness[:, None]


def adapted(strength: Scalar, sure: Scalar, largest: float) -> Scalar:
    """The strength of the next step, between 0 and `largest`."""
    return jnp.clip(strength + _PACE * largest * jnp.sign(sure - _SURE), 0.0, largest)


def _resampling(
    side: int, stretch: Float[Array, " n"], shift: Float[Array, " n"]
) -> Float[Array, "n side side"]:
    """Matrices that read a line of pixels at other places; the rim is repeated beyond it."""
    places = jnp.arange(side) - 0.5 * (side - 1)
    read = places / stretch[:, None] + shift[:, None] + 0.5 * (side - 1)
    read = jnp.clip(read, 0.0, side - 1.0)
    return jnp.maximum(1.0 - jnp.abs(read[:, :, None] - jnp.arange(side)), 0.0)
