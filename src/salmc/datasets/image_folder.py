"""Any folder of images as one array of bytes, of which only what is asked for is in memory.

The files are decoded once, batch by batch and in threads, into a file in the user's cache; what is
returned is a memory map of it. Training that takes random batches out of 200,000 photographs then
costs what copying the bytes costs, and an unreadable file is found and named before training, not
in the middle of it. The file is in its place only once it is whole.

The images are stored in a fixed random order, so that any slice of the map is a fair sample of the
folder: file systems and authors tend to sort by subject.
"""

import concurrent.futures
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from salmc import checks
from salmc.cache_folder import CACHE_VARIABLE, cache_folder
from salmc.errors import ArgumentError, DataError, OutputError
from salmc.progress import AbstractReporter, reporter

_LAYOUT = 1
"""Part of the key of the cache: raised whenever the same folder would give other bytes."""
_BATCH = 512
_ORDER_SEED = 20190127
_MOST_NAMED = 5


class FolderImages(NamedTuple):
    """The images of a folder."""

    images: UInt8[np.ndarray, "n height width channels"]
    """A memory map, in a fixed random order."""
    names: tuple[str, ...]
    """The file of each image, relative to the folder."""
    skipped: tuple[str, ...]
    """The files that look like images by name and could not be read, with the reason."""


def read_folder(
    folder: str | Path,
    *,
    size: int = 64,
    colour: bool = True,
    crop: int | None = None,
    most: int | None = None,
    progress: bool | AbstractReporter = False,
) -> FolderImages:
    """All images of a folder and of the folders in it: cut to a square in the middle, and resized.

    Args:
        folder: where the images are; CelebA's `img_align_celeba` just as it comes.
        size: pixels along each side.
        colour: three channels, red, green and blue; otherwise one, grey.
        crop: side of the square that is cut out of the middle, in pixels of the file (CelebA: 140
            leaves little but the face); by default the largest that fits.
        most: only so many, chosen at random but always the same; the others are not read.
        progress: True for a bar on standard error, or a reporter.

    Raises:
        DataError: if the folder cannot be read or has no readable image.
        OutputError: if the cache cannot be written.
    """
    checks.integer("size", size, 4)
    if crop is not None:
        checks.integer("crop", crop, 4)
    if most is not None:
        checks.integer("most", most, 1)
    place = Path(folder).expanduser().resolve()
    files = _image_files(place)
    order = np.random.default_rng(_ORDER_SEED).permutation(len(files))
    chosen = [files[i] for i in order[:most]]
    key = _key(place, chosen, size, colour, crop)
    stored = cache_folder() / "images" / key
    if not (stored / "images.npy").is_file():
        _decode_into(stored, place, chosen, (size, colour, crop), reporter(progress))
    found = _open(stored, place)
    if found.skipped:
        named = "; ".join(found.skipped[:_MOST_NAMED])
        more = len(found.skipped) - _MOST_NAMED
        warnings.warn(
            f"{len(found.skipped):,} of {len(chosen):,} files in {place} cannot be read and are "
            f"left out: {named}{f'; and {more:,} more' if more > 0 else ''}.",
            UserWarning,
            stacklevel=2,
        )
    return found


def square(image: Image.Image, size: int, colour: bool, crop: int | None = None) -> np.ndarray:
    """One image as (size, size, channels) bytes: the square in its middle, resized."""
    image = _plain(image, "RGB" if colour else "L")
    side = min(image.size) if crop is None else min(crop, *image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    box = (left, top, left + side, top + side)
    # Lanczos averages over all pixels that shrink into one: no aliasing in hair and hatching.
    image = image.resize((size, size), Image.Resampling.LANCZOS, box=box)
    return np.asarray(image, np.uint8).reshape(size, size, -1)


def _plain(image: Image.Image, mode: str) -> Image.Image:
    """Upright, in one of two modes, and opaque."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        # Pillow would cut 16 bits off at 255 rather than scale them.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert(mode)


def _image_files(place: Path) -> list[str]:
    """Relative names of all files with an image's suffix, sorted; hidden ones left out."""
    if not place.is_dir():
        kind = "is a file" if place.exists() else "does not exist"
        raise ArgumentError(
            f"{place} {kind}, and images are read from a folder. Give a folder of images, "
            '"mnist" or "digits".'
        )
    suffixes = {
        suffix for suffix, kind in Image.registered_extensions().items() if kind in Image.OPEN
    }
    names = []
    try:
        for parent, folders, files in os.walk(place, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".")]
            below = os.path.relpath(parent, place)
            names += [
                os.path.normpath(os.path.join(below, name))
                for name in files
                if not name.startswith(".") and os.path.splitext(name)[1].lower() in suffixes
            ]
    except OSError as error:
        raise DataError(f"Cannot read the folder {place}: {error.strerror or error}.") from error
    if not names:
        raise DataError(f"There are no images in {place}: no file has the suffix of one.")
    return sorted(names)


def _raise(error: OSError) -> None:
    raise error


def _key(place: Path, names: list[str], size: int, colour: bool, crop: int | None) -> str:
    """Changes with any file's name, length or date, and with what is made of them."""
    digest = hashlib.sha256(json.dumps([_LAYOUT, str(place), size, colour, crop]).encode())
    for name in names:
        try:
            status = (place / name).stat()
            digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
        except OSError:
            digest.update(f"{name}\0unreadable\0".encode())
    return digest.hexdigest()[:24]


def _decode_into(
    stored: Path,
    place: Path,
    names: list[str],
    form: tuple[int, bool, int | None],
    report: AbstractReporter,
) -> None:
    """Decode the files into a new folder, which becomes `stored` when it is whole."""
    working = None
    try:
        stored.parent.mkdir(parents=True, exist_ok=True)
        working = Path(tempfile.mkdtemp(prefix=".new-", dir=stored.parent))
        with report:
            report.start(f"Reading {len(names):,} images", len(names))
            _write(working, place, names, form, report)
        if not (stored / "images.npy").exists():  # another process may have been faster
            os.replace(working, stored)
    except OSError as error:
        raise OutputError(
            f"Cannot write the decoded images to {stored.parent}: {error.strerror or error}. "
            "Free some space, or name another folder with the environment variable "
            f"{CACHE_VARIABLE}."
        ) from error
    finally:
        if working is not None:
            shutil.rmtree(working, ignore_errors=True)


def _write(
    working: Path,
    place: Path,
    names: list[str],
    form: tuple[int, bool, int | None],
    report: AbstractReporter,
) -> None:
    size, colour, _ = form
    read: list[str] = []
    skipped: list[str] = []
    shape = (size, size, 3 if colour else 1)
    with (working / "images.npy").open("wb") as file:
        _write_header(file, (len(names), *shape))
        # Written as a file and not through the map: a full disk is then an error, not a crash.
        for batch, results in _decoded(place, names, form):
            for name, result in zip(batch, results, strict=True):
                if isinstance(result, str):
                    skipped.append(f"{name} ({result})")
                else:
                    read.append(name)
                    file.write(result.tobytes())
            report.advance(len(batch))
        file.seek(0)
        _write_header(file, (len(read), *shape))
        file.flush()
        os.fsync(file.fileno())
    if not read:
        raise DataError(
            f"None of the {len(names):,} images in {place} can be read; the first: {skipped[0]}."
        )
    described = {"names": read, "skipped": skipped}
    (working / "files.json").write_text(json.dumps(described), encoding="utf-8")


def _write_header(file: object, shape: tuple[int, ...]) -> None:
    # NumPy pads the header for a first axis of any length, so it can be written anew at the end.
    description = {"descr": "|u1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, description)  # type: ignore[arg-type]


def _decoded(
    place: Path, names: list[str], form: tuple[int, bool, int | None]
) -> Iterator[tuple[list[str], list[np.ndarray | str]]]:
    """Batches of names and of what became of them, decoded while the last batch is written."""
    # Pillow lets go of Python's lock while it decodes and resizes.
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            yield batch, list(pool.map(lambda name: _decode(place / name, form), batch))


def _decode(path: Path, form: tuple[int, bool, int | None]) -> np.ndarray | str:
    """The image, or why it cannot be read."""
    size, colour, crop = form
    try:
        with Image.open(path) as image:
            if crop is None:
                # JPEG can be decoded at an eighth of its size in an eighth of the time.
                image.draft("RGB" if colour else "L", (2 * size, 2 * size))
            return square(image, size, colour, crop)
    # A damaged image fails in as many ways as there are decoders: any of them means the same here.
    except Exception as error:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror.lower()
        if type(error).__name__ == "UnidentifiedImageError":
            return "not an image"
        return " ".join(str(error).split())[:80] or type(error).__name__


def _open(stored: Path, place: Path) -> FolderImages:
    try:
        images = np.load(stored / "images.npy", mmap_mode="r", allow_pickle=False)
        described = json.loads((stored / "files.json").read_text(encoding="utf-8"))
        found = FolderImages(images, tuple(described["names"]), tuple(described["skipped"]))
        if len(found.names) != len(images):
            raise ValueError("names and images differ in number")
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"The decoded images of {place} in {stored} are damaged. Delete that folder; they are "
            "then decoded again."
        ) from error
