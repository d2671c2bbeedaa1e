"""A trained classifier as a file: training it takes minutes.

The file is a NumPy archive of the weights with a header; nothing is pickled. A file that is damaged
or of other code is refused.
"""

import json
from pathlib import Path

import jax
import numpy as np

from salmc.errors import OutputError
from salmc.sampling.files.atomic import final_place, new_file, output_errors
from salmc.sampling.files.kernel_file import array_leaves, with_leaves
from salmc_paper.images.classifier import Classifier

FORMAT = "salmc-classifier"
FORMAT_VERSION = 1
"""Raised with any change of the network."""


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
    arrays = {f"weight{i}": np.asarray(leaf) for i, leaf in enumerate(array_leaves(classifier))}
    place = final_place(path)
    with output_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
    with new_file(place) as file:
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
            own = array_leaves(untrained)
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
    return with_leaves(untrained, stored)
