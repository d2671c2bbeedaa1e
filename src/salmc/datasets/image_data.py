"""Images to learn from, all in one form: bytes (n, height, width, channels).

load_images("mnist")                            28 × 28 grey, 60,000 and 10,000 held out
load_images("digits")                           8 × 8 grey, ships with the package
load_images("img_align_celeba", size=64)        any folder of images, in colour
load_images("mnist", split="held-out")          what training never sees
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from salmc import checks
from salmc.datasets.fetch import SHIPPED
from salmc.datasets.image_folder import read_folder
from salmc.datasets.mnist import mnist
from salmc.errors import ArgumentError
from salmc.progress import AbstractReporter

SPLITS = ("train", "held-out")
FOLDER_SIZE = 64
_HELD_OUT_SHARE = 0.1
"""Of data sets that do not come with a split of their own."""
_ORDER_SEED = 20190127
_MOST_INK = 16


class ImageData(NamedTuple):
    """A set of images."""

    images: UInt8[np.ndarray, "n height width channels"]
    """Possibly a memory map: take batches out of it, not the whole."""
    labels: UInt8[np.ndarray, " n"] | None
    name: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """(height, width, channels) of one image."""
        height, width, channels = self.images.shape[1:]
        return height, width, channels


def load_images(
    source: str | Path,
    *,
    size: int | None = None,
    colour: bool | None = None,
    split: str = "train",
    crop: int | None = None,
    most: int | None = None,
    progress: bool | AbstractReporter = False,
) -> ImageData:
    """The images of a data set or of a folder.

    Args:
        source: `"mnist"`, `"digits"`, or a folder of images. A folder that has one of these names
            is meant by "./mnist".
        size: pixels along each side; by default as the data come, and 64 for a folder.
        colour: three channels or one; by default one for the digits, three for a folder.
        split: `"train"` or `"held-out"`. MNIST has its own; of others a tenth is held out, chosen
            at random but always the same.
        crop: side of the square cut out of the middle of each file of a folder, before resizing.
        most: at most so many images of the split (of a folder: of both together).
        progress: of decoding a folder: True for a bar, or a reporter.

    Raises:
        ArgumentError: for arguments that make no sense.
        DataError: if files cannot be found or read.
    """
    checks.choice("split", split, SPLITS)
    if size is not None:
        checks.integer("size", size, 4)
    if most is not None:
        checks.integer("most", most, 1)
    if source not in ("mnist", "digits"):
        folder = Path(source)
        images = read_folder(
            folder,
            size=FOLDER_SIZE if size is None else size,
            colour=colour is None or colour,
            crop=crop,
            most=most,
            progress=progress,
        ).images
        name = folder.expanduser().resolve().name
        # They are in random order already, and a slice of a memory map is a memory map.
        return ImageData(images[_part(len(images), split, name)], None, name)
    if crop is not None:
        raise ArgumentError(f"The `crop` argument is for folders of images, not for {source}.")
    if source == "mnist":
        images, labels = mnist("train" if split == "train" else "test")
    else:
        images, labels = digits()
        order = np.random.default_rng(_ORDER_SEED).permutation(len(images))
        chosen = order[_part(len(order), split, str(source))]
        images, labels = images[chosen], labels[chosen]
    images = _resized(images[:most], size)[..., None]
    images = np.repeat(images, 3, axis=-1) if colour else images
    return ImageData(images, labels[:most], str(source))


def digits() -> tuple[UInt8[np.ndarray, "n 8 8"], UInt8[np.ndarray, " n"]]:
    """1,797 handwritten digits of 8 × 8 pixels, in the order of the original file.

    The test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998),
    UCI Machine Learning Repository, licensed CC BY 4.0; as bundled with scikit-learn. Each pixel
    counts the ink in a block of 4 × 4, from 0 to 16; here it is scaled to 0–255.
    """
    with np.load(SHIPPED / "digits.npz", allow_pickle=False) as archive:
        ink, labels = archive["images"], archive["labels"]
    return np.rint(ink * (255.0 / _MOST_INK)).astype(np.uint8), labels


def _part(count: int, split: str, name: str) -> slice:
    if count < 2:
        raise ArgumentError(f"{name} has only {count} image, and one has to be held out: add more.")
    kept = count - max(1, round(_HELD_OUT_SHARE * count))
    return slice(0, kept) if split == "train" else slice(kept, count)


def _resized(images: np.ndarray, size: int | None) -> np.ndarray:
    if size is None or images.shape[1:] == (size, size):
        return images
    return np.stack(
        [
            np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.LANCZOS))
            for image in images
        ]
    )
