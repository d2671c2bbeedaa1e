"""A trained classifier as a file, and kept in the user's cache: training it takes minutes.

The file is a NumPy archive of the weights with a header; nothing is pickled. A file that is damaged
or of other code is not used: the classifier is then trained again.
"""

import contextlib
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc.cache_folder import cache_folder
from salmc.datasets.image_data import ImageData
from salmc.errors import ArgumentError, OutputError
from salmc.images.classifier import Classifier
from salmc.images.classifier_training import ClassifierSettings, settings_for, train_classifier
from salmc.progress import AbstractReporter
from salmc.sampling.atomic import final_place, new_file, output_errors

FORMAT = "salmc-classifier"
FORMAT_VERSION = 1
"""Part of the key of the cache: raised with any change of the network or of its training."""


class TrainedClassifier(NamedTuple):
    """A classifier, and how well it does on images that it never saw."""

    classifier: Classifier
    accuracy: float


def save_classifier(classifier: Classifier, path: str | Path) -> Path:
    """Write a classifier, in full or not at all; a file that is there is replaced.

    Raises:
        OutputError: if it cannot be written.
    """
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "shape": classifier.shape,
        "classes": classifier.classes,
    }
    arrays = {f"weight{i}": np.asarray(leaf) for i, leaf in enumerate(_weights(classifier))}
    place = final_place(path)
    with output_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    with new_file(place) as working, working.open("wb") as file:
        np.savez(file, allow_pickle=False, header=np.array(json.dumps(header)), **arrays)
    return Path(path)


def load_classifier(path: str | Path) -> Classifier:
    """Read what `save_classifier` wrote.

    Raises:
        OutputError: if the file is missing, damaged, or something else.
    """
    place = Path(path).expanduser()
    if not place.is_file():
        raise OutputError(f"{place} does not exist, or is not a file.")
    try:
        with np.load(place, allow_pickle=False) as archive:
            header = json.loads(str(archive["header"]))
            if header["format"] != FORMAT or header["format_version"] != FORMAT_VERSION:
                raise ValueError("another format")
            height, width, channels = header["shape"]
            shape = (int(height), int(width), int(channels))
            untrained = Classifier(jax.random.key(0), shape, int(header["classes"]))
            own = _weights(untrained)
            stored = [archive[f"weight{i}"] for i in range(len(own))]
        if [leaf.shape for leaf in stored] != [leaf.shape for leaf in own]:
            raise ValueError("weights of another network")
        if not all(np.all(np.isfinite(leaf)) for leaf in stored):
            raise ValueError("weights that are not numbers")
    # A damaged archive fails in as many ways as it has bytes: any of them means the same here.
    except Exception as error:
        raise OutputError(
            f"{place} is damaged, or not a classifier of this version of salmc."
        ) from error
    dynamic, static = eqx.partition(untrained, eqx.is_array)
    leaves = [jnp.asarray(leaf, dtype=like.dtype) for leaf, like in zip(stored, own, strict=True)]
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(dynamic), leaves), static)


def trained_classifier(
    data: ImageData,
    held_out: ImageData,
    settings: ClassifierSettings | None = None,
    *,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
) -> TrainedClassifier:
    """The classifier of a data set: from the user's cache, or trained and put there.

    Args:
        data: labelled images to train on.
        held_out: labelled images on which it is judged, and nothing else.
        settings: how to train; by default what suits the size and number of the images.
        seed: of the training.
        progress: True for a bar on standard error, or a reporter.

    Raises:
        ArgumentError: if the data have no labels.
    """
    if data.labels is None or held_out.labels is None:
        raise ArgumentError(f"A classifier needs labels, and {data.name} has none.")
    settings = settings or settings_for(data.images)
    place = cache_folder() / "classifiers" / f"{_key(data, settings, seed)}.npz"
    try:
        classifier = load_classifier(place)
    except OutputError:
        classifier = train_classifier(
            data.images, data.labels, settings, seed=seed, progress=progress
        )
        # A cache that cannot be written costs the next run some minutes, not this one its result.
        with contextlib.suppress(OutputError):
            save_classifier(classifier, place)
    accuracy = classifier.accuracy(np.asarray(held_out.images), held_out.labels)
    return TrainedClassifier(classifier, accuracy)


def _key(data: ImageData, settings: ClassifierSettings, seed: int) -> str:
    """Changes with the data, the settings, the seed and the code."""
    told = [FORMAT_VERSION, data.images.shape, dataclasses.asdict(settings), seed]
    digest = hashlib.sha256(json.dumps(told).encode())
    digest.update(np.ascontiguousarray(data.images).data)
    digest.update(np.ascontiguousarray(data.labels).data)
    return f"{data.name}-{digest.hexdigest()[:16]}"


def _weights(classifier: Classifier) -> list[jax.Array]:
    """The array leaves in tree order."""
    return jax.tree.leaves(eqx.filter(classifier, eqx.is_array))
