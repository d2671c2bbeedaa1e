"""Find a data file: in the user's folder, in the package, in the cache, or by a download.

    find("australian.csv")

looks, in this order, in the folder that the environment variable SALMC_DATA names, among the files
that ship with the package, in the user's cache, and then downloads the file into the cache. Where
a file is found its content is checked against a known SHA-256, so that no result ever stands on
other data than it says.
"""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from salmc.cache_folder import CACHE_VARIABLE, cache_folder
from salmc.datasets.known_files import KNOWN_FILES, KnownFile
from salmc.errors import ArgumentError, DataError

FOLDER_VARIABLE = "SALMC_DATA"
SHIPPED = Path(__file__).parent / "files"


def find(name: str, *, download: bool = True) -> Path:
    """The path of a known data file, its content checked.

    Args:
        name: one of `KNOWN_FILES`, such as "heart.csv" or "mnist/train-images-idx3-ubyte.gz".
        download: whether a file found nowhere else may be downloaded.

    Raises:
        DataError: if it cannot be had, or what is there is not the data it should be.
    """
    if name not in KNOWN_FILES:
        known = ", ".join(KNOWN_FILES)
        raise ArgumentError(f"The `name` argument must be one of {known}. Got {name!r} instead.")
    known_file = KNOWN_FILES[name]
    folder = user_folder()
    for place, remedy in (
        (folder, f"Replace it, or unset {FOLDER_VARIABLE}."),
        (SHIPPED, "Install salmc anew."),
    ):
        path = _look_in(place, known_file)
        if path is not None:
            _require_right(path, known_file, name, remedy)
            return path
    cached = _look_in(cache_folder(), known_file)
    # A file that went bad in the cache is replaced by the download.
    if cached is not None and _what_is_wrong(cached, known_file) is None:
        return cached
    if not download or known_file.url is None:
        raise DataError(f"The data file {name} is not on this machine. {_remedy(known_file, name)}")
    return _download(known_file, name)


def user_folder() -> Path | None:
    """The folder that SALMC_DATA names, or None where it is not set."""
    given = os.environ.get(FOLDER_VARIABLE, "").strip()
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"The environment variable {FOLDER_VARIABLE} names the folder {folder}, which does not "
            "exist. Correct or unset it."
        )
    return folder


def _look_in(folder: Path | None, known_file: KnownFile) -> Path | None:
    if folder is None:
        return None
    candidates = (folder / place for place in known_file.places)
    return next((path for path in candidates if path.is_file()), None)


def _what_is_wrong(path: Path, known_file: KnownFile) -> str | None:
    """Why this is not the file it should be, or None where it is."""
    try:
        digest = known_file.digest_of(path.read_bytes())
    except DataError as error:
        return str(error)
    except OSError as error:
        return f"it cannot be read ({error.strerror or error})"
    return None if digest == known_file.digest else "its content has another SHA-256"


def _require_right(path: Path, known_file: KnownFile, name: str, remedy: str) -> None:
    wrong = _what_is_wrong(path, known_file)
    if wrong is not None:
        raise DataError(f"The file {path} is not the data file {name}: {wrong}. {remedy}")


def _download(known_file: KnownFile, name: str) -> Path:
    """Download into the cache; the file appears there only after its content was checked."""
    import pooch

    assert known_file.url is not None
    place = cache_folder() / known_file.places[-1]
    arriving = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # A folder that exists may still not take a file; find out before the download.
        arriving.touch()
    except OSError as error:
        raise DataError(
            f"The cache folder {place.parent} cannot be written ({error.strerror or error}). Name "
            f"another with the environment variable {CACHE_VARIABLE}, or put {name} into a folder "
            f"and name that with {FOLDER_VARIABLE}."
        ) from error
    try:
        arriving.unlink()
        with _quiet_pooch():
            # The content is what is known and checked below, not the bytes of this download.
            pooch.retrieve(known_file.url, None, fname=arriving.name, path=arriving.parent)
        wrong = _what_is_wrong(arriving, known_file)
        if wrong is not None:
            raise DataError(
                f"What {known_file.url} sent is not the data file {name}: {wrong}. Put the right "
                f"file into a folder and name it with the environment variable {FOLDER_VARIABLE}."
            )
        arriving.replace(place)
    except (OSError, ValueError) as error:
        raise DataError(
            f"The data file {name} is not on this machine and could not be downloaded from "
            f"{known_file.url} ({type(error).__name__}). {_remedy(known_file, name)}"
        ) from error
    finally:
        arriving.unlink(missing_ok=True)
    return place


def _remedy(known_file: KnownFile, name: str) -> str:
    folder = user_folder()
    if folder is not None:
        return f"Put it into {folder}, which {FOLDER_VARIABLE} names, as {known_file.places[0]}."
    return (
        f"Put it into a folder as {known_file.places[0]} and name that folder with the "
        f"environment variable {FOLDER_VARIABLE}."
    )


@contextlib.contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Pooch would tell users to paste a checksum into code that they did not write."""
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
