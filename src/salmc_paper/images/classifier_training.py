"""Training of the classifier: cross-entropy, shifted images, one cycle of the learning rate.

A rate that rises to a peak and falls to nothing within a few epochs gets a small network to where
a constant rate takes tens of epochs (L. Smith and N. Topin, "Super-convergence", 2018). Each image
is shifted by up to `shift` pixels either way each time it is seen, as draws are not all centred.

Each step is a compiled call of its own: on CPUs a convolution within a compiled loop
(`jax.lax.scan`) takes fifteen to fifty times as long as outside of one.
"""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, ArrayLike, Int, PRNGKeyArray, UInt8

from salmc import checks
from salmc.errors import ArgumentError
from salmc.progress import AbstractReporter, reporter
from salmc_paper.images.classifier import Classifier

_REPORT_EVERY = 10
"""Steps: reading a figure waits for the step that makes it."""

_FEWEST_STEPS = 300
"""Of a small set of images more epochs are needed."""


@dataclasses.dataclass(frozen=True)
class ClassifierSettings:
    """How a classifier is trained."""

    epochs: int = 4
    batch: int = 128
    rate: float = 3e-3
    """The peak of the learning rate."""
    weight_decay: float = 1e-2
    shift: int = 2

    def __post_init__(self) -> None:
        checks.integer("epochs", self.epochs, 1)
        checks.integer("batch", self.batch, 1)
        checks.real("rate", self.rate, above=0.0)
        checks.real("weight_decay", self.weight_decay, at_least=0.0)
        checks.integer("shift", self.shift, 0)


def settings_for(images: UInt8[np.ndarray, "n height width channels"]) -> ClassifierSettings:
    """Settings that suit the size of images and their number."""
    usual = ClassifierSettings()
    batch = min(usual.batch, max(1, len(images) // 4))
    enough = -(-_FEWEST_STEPS * batch // len(images))
    shift = usual.shift if min(images.shape[1:3]) >= 16 else 1
    return dataclasses.replace(usual, epochs=max(usual.epochs, enough), batch=batch, shift=shift)


def train_classifier(
    images: np.ndarray,
    labels: np.ndarray,
    settings: ClassifierSettings | None = None,
    *,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
) -> Classifier:
    """A classifier of these images.

    Args:
        images: bytes (n, height, width, channels).
        labels: (n,) the class of each, from 0.
        settings: how to train; by default what suits the size and number of the images.
        seed: of the first weights, of the order and of the shifts.
        progress: True for a bar on standard error, or a reporter.
    """
    labels = np.asarray(labels)
    if images.ndim != 4 or images.dtype != np.uint8 or labels.shape != images.shape[:1]:
        raise ArgumentError(
            "The `images` argument must be bytes (n, height, width, channels) with a label each. "
            f"Got {images.dtype} {images.shape} and labels {labels.shape} instead."
        )
    settings = settings or settings_for(images)
    if len(images) < settings.batch:
        raise ArgumentError(
            f"The `batch` setting must be at most the number of images, {len(images)}. "
            f"Got {settings.batch} instead."
        )
    weights_key, key = jax.random.split(jax.random.key(checks.integer("seed", seed, 0)))
    height, width, channels = images.shape[1:]
    classifier = Classifier(weights_key, (height, width, channels), int(labels.max()) + 1)
    order = _batches(seed, len(images), settings)
    optimiser = _optimiser(len(order), settings.rate, settings.weight_decay)
    state = optimiser.init(eqx.filter(classifier, eqx.is_array))
    data = (jnp.asarray(images), jnp.asarray(labels, dtype=jnp.int32))
    with reporter(progress) as report:
        report.start("Training the classifier", len(order))
        for number, indices in enumerate(order, start=1):
            classifier, state, loss, right = _step(
                classifier, state, data, indices, key, np.int32(number), optimiser, settings.shift
            )
            if number % _REPORT_EVERY == 0 or number == len(order):
                done = (number - 1) % _REPORT_EVERY + 1
                report.advance(done, loss=float(loss), accuracy=float(right))
    return classifier


@functools.lru_cache(maxsize=8)
def _optimiser(steps: int, rate: float, weight_decay: float) -> optax.GradientTransformation:
    """The same object for the same values, so that a second training compiles nothing."""
    rates = optax.cosine_onecycle_schedule(steps, rate, pct_start=0.25)
    return optax.adamw(rates, b2=0.99, weight_decay=weight_decay)


def _batches(seed: int, count: int, settings: ClassifierSettings) -> Int[np.ndarray, "steps batch"]:
    """Indices of each step's images: every image once in each epoch, but for the remainder."""
    generator = np.random.default_rng(seed)
    whole = count - count % settings.batch
    epochs = [generator.permutation(count)[:whole] for _ in range(settings.epochs)]
    return np.concatenate(epochs).reshape(-1, settings.batch).astype(np.int32)


@eqx.filter_jit
def _step(
    classifier: Classifier,
    state: optax.OptState,
    data: tuple[Array, Array],
    indices: Int[ArrayLike, " batch"],
    key: PRNGKeyArray,
    number: Int[ArrayLike, ""],  # not a Python number: each would be compiled in
    optimiser: optax.GradientTransformation,
    shift: int,
) -> tuple[Classifier, optax.OptState, Array, Array]:
    """One step; also the loss and the share of images told right."""
    weights, rest = eqx.partition(classifier, eqx.is_array)
    images, labels = data
    batch = shifted(jax.random.fold_in(key, number), images[indices], shift)
    truth = labels[indices]

    def loss(weights: Classifier) -> tuple[Array, Array]:
        logits = eqx.combine(weights, rest)(batch)
        right = jnp.mean(jnp.argmax(logits, axis=-1) == truth)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, truth)), right

    (value, right), slope = jax.value_and_grad(loss, has_aux=True)(weights)
    change, state = optimiser.update(slope, state, weights)
    return eqx.combine(optax.apply_updates(weights, change), rest), state, value, right


def shifted(
    key: PRNGKeyArray, images: UInt8[ArrayLike, "n height width channels"], most: int
) -> UInt8[Array, "n height width channels"]:
    """Each image moved by a random whole number of pixels; its edge repeats into the gap."""
    images = jnp.asarray(images)
    if most == 0:
        return images
    padded = jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)), mode="edge")
    corners = jax.random.randint(key, (len(images), 2), 0, 2 * most + 1)

    def cut(image: Array, corner: Array) -> Array:
        return jax.lax.dynamic_slice(image, (corner[0], corner[1], 0), images.shape[1:])

    return jax.vmap(cut)(padded, corners)
