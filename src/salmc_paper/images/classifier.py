"""A small convolutional classifier, by which a chain over images is measured.

It tells the class of each draw, and its last hidden layer is the space in which the Fréchet
distance compares draws with real images. It is an instrument: it is trained on labelled real
images alone and never takes part in the training of a kernel.

The convolutions halve the image as they go (stride 2) rather than pool: on CPUs a step costs a
quarter of that. Their number follows the size of the image, so that 8 × 8 digits and 64 × 64
photographs end on a grid of 4 to 8 alike.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer, PRNGKeyArray, UInt8

from salmc import checks
from salmc.kernels.layers import numpy_generator

FEATURES = 128
_WIDTHS = (32, 64)
"""Channels of the first convolution and of all others."""
_BATCH = 500


class Classifier(eqx.Module):
    """Images ↦ logits of the classes."""

    convolutions: tuple[Float[Array, "height width inputs outputs"], ...]
    convolution_biases: tuple[Float[Array, " outputs"], ...]
    hidden: Float[Array, "inputs features"]
    hidden_bias: Float[Array, " features"]
    head: Float[Array, "features classes"]
    head_bias: Float[Array, " classes"]
    strides: tuple[int, ...] = eqx.field(static=True)
    shape: tuple[int, int, int] = eqx.field(static=True)
    """(height, width, channels) of an image."""

    def __init__(self, key: PRNGKeyArray, shape: tuple[int, int, int], classes: int) -> None:
        height, width, channels = shape
        checks.integer("classes", classes, 2)
        # Small images keep their grid once, for there is nothing to spare.
        strides = [2] if min(height, width) >= 16 else [1]
        while max(height, width) / np.prod(strides) > 8 or len(strides) < 2:
            strides.append(2)
        side = 5 if min(height, width) >= 16 else 3
        generator = numpy_generator(key)

        def weights(*sizes: int) -> Array:
            scale = np.sqrt(2 / np.prod(sizes[:-1]))
            return jnp.asarray(generator.standard_normal(sizes) * scale, dtype=jnp.float32)

        convolutions = []
        for number, stride in enumerate(strides):
            outputs = _WIDTHS[min(number, 1)]
            convolutions.append(weights(side, side, channels, outputs))
            height, width, channels = -(-height // stride), -(-width // stride), outputs
        self.convolutions = tuple(convolutions)
        self.convolution_biases = tuple(jnp.zeros(w.shape[-1]) for w in convolutions)
        self.hidden = weights(height * width * channels, FEATURES)
        self.hidden_bias = jnp.zeros(FEATURES)
        self.head, self.head_bias = weights(FEATURES, classes), jnp.zeros(classes)
        self.strides = tuple(strides)
        self.shape = shape

    @property
    def classes(self) -> int:
        """How many classes it tells apart."""
        return self.head.shape[-1]

    def embed(self, images: UInt8[Array, "n height width channels"]) -> Float[Array, "n features"]:
        """The last hidden layer."""
        layer = images.astype(jnp.float32) / 127.5 - 1.0
        for weight, bias, stride in zip(
            self.convolutions, self.convolution_biases, self.strides, strict=True
        ):
            layer = jax.lax.conv_general_dilated(
                layer, weight, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            layer = jax.nn.relu(layer + bias)
        return jax.nn.relu(layer.reshape(len(layer), -1) @ self.hidden + self.hidden_bias)

    def __call__(
        self, images: UInt8[Array, "n height width channels"]
    ) -> Float[Array, "n classes"]:
        return self.embed(images) @ self.head + self.head_bias

    def features(self, images: np.ndarray) -> np.ndarray:
        """The last hidden layer of many images, in batches: (…, h, w, c) ↦ (…, features)."""
        return self._in_batches(images, _embed)

    def classify(self, images: np.ndarray) -> np.ndarray:
        """The most probable class of each of many images: (…, h, w, c) ↦ (…)."""
        return self._in_batches(images, _classify)

    def accuracy(
        self,
        images: UInt8[np.ndarray, "n height width channels"],
        labels: Integer[np.ndarray, " n"],
    ) -> float:
        """The share of images whose class is told right."""
        return float(np.mean(self.classify(images) == np.asarray(labels)))

    def _in_batches(
        self, images: np.ndarray, function: Callable[["Classifier", Array], Array]
    ) -> np.ndarray:
        if images.dtype != np.uint8 or images.shape[-3:] != self.shape:
            expectation = f"bytes of shape (…, {', '.join(map(str, self.shape))})"
            checks.fail("images", expectation, f"{images.dtype} of shape {images.shape}")
        flat = images.reshape(-1, *self.shape)
        results = []
        for start in range(0, len(flat), _BATCH):
            batch = np.asarray(flat[start : start + _BATCH])
            # The last batch is filled up, so that one compiled program serves all.
            full = np.concatenate([batch, np.zeros((_BATCH - len(batch), *self.shape), np.uint8)])
            results.append(np.asarray(function(self, jnp.asarray(full)))[: len(batch)])
        joined = np.concatenate(results)
        return joined.reshape(*images.shape[:-3], *joined.shape[1:])


@eqx.filter_jit
def _embed(classifier: Classifier, images: Array) -> Array:
    return classifier.embed(images)


@eqx.filter_jit
def _classify(classifier: Classifier, images: Array) -> Array:
    return jnp.argmax(classifier(images), axis=-1)
