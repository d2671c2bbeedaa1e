"""Samples from a file, for methods that learn from samples."""

from pathlib import Path

import numpy as np

from salmc.errors import ArgumentError


def read_samples(file: Path) -> np.ndarray:
    """(n, dim) from a .npy file, or from a .csv file with or without a line of names.

    Raises:
        ArgumentError: if the file is missing, or does not hold a table of numbers.
    """
    place = file.expanduser()
    if not place.is_file():
        raise ArgumentError(
            f"There is no file {file}. The method al-mc learns from samples: name a .npy or .csv "
            "file with one sample in each row."
        )
    try:
        # Nothing is unpickled: a file from elsewhere cannot run code.
        loaded = np.load(place, allow_pickle=False) if place.suffix == ".npy" else _table(place)
        samples = np.asarray(loaded, dtype=float)
    except (OSError, ValueError, TypeError) as error:
        told = str(error).strip().splitlines() or [type(error).__name__]
        raise ArgumentError(f"Cannot read samples from {file}: {told[0]}") from error
    samples = samples[:, None] if samples.ndim == 1 else samples
    if samples.ndim != 2 or samples.size == 0:
        raise ArgumentError(
            f"The file {file} must hold a table of numbers, one sample in each row. "
            f"Got an array of shape {samples.shape} instead."
        )
    return samples


def _table(place: Path) -> np.ndarray:
    if place.suffix not in (".csv", ".txt"):
        raise ValueError("its name must end in .npy or .csv.")
    with place.open(encoding="utf-8") as file:
        first = file.readline()
    try:
        [float(word) for word in first.split(",")]
        names = 0
    except ValueError:
        names = 1
    return np.loadtxt(place, delimiter=",", skiprows=names, ndmin=2)
