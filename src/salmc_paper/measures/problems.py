"""Targets by name, also the posterior of a random part of a data set."""

import math
from typing import NamedTuple

import jax
import numpy as np

from salmc.target import AbstractTarget
from salmc.targets.logistic_regression import LogisticRegression
from salmc_paper.harness.jobs import NotAvailableError

SYNTHETIC = ("ring", "mog2", "mog6", "ring5")
"""The targets of the paper's first table, in its order."""

REGRESSIONS = ("heart", "australian", "german")
"""The data sets of its second."""

TITLES = {
    "ring": "Ring",
    "mog2": "Mog2",
    "mog6": "Mog6",
    "ring5": "Ring5",
    "heart": "Heart",
    "australian": "Australian",
    "german": "German",
}


START_VARIANCE = 2.5
"""Particles start from N(0, 2.5 I), as the paper's on Mog4."""


class Split(NamedTuple):
    """The posterior of a random 80 % of the rows, and the rest to predict."""

    target: LogisticRegression
    features: np.ndarray
    labels: np.ndarray


def find_target(name: str, split: int | None = None) -> AbstractTarget:
    """A built-in target; with `split`, the posterior of that random 80 % of its data.

    Raises:
        NotAvailableError: if there is no such target, or its data cannot be had.
    """
    if split is not None:
        return find_split(name, split).target
    from salmc.errors import DataError
    from salmc.targets.registry import TARGETS

    if name not in TARGETS:
        raise NotAvailableError(f"The target {name} is not part of this version of salmc.")
    try:
        return TARGETS[name].factory()
    except DataError as error:
        raise NotAvailableError(str(error)) from error


def find_split(name: str, seed: int) -> Split:
    """A random 80/20 split of a data set.

    All splits of one data set have one name, so that they share compiled code.

    Raises:
        NotAvailableError: if the data cannot be had.
    """
    from salmc.errors import DataError

    try:
        return Split(*LogisticRegression.split(name, seed))
    except DataError as error:
        raise NotAvailableError(str(error)) from error


def particle_start(size: int, dim: int, seed: int) -> jax.Array:
    """Particles at the start."""
    return math.sqrt(START_VARIANCE) * jax.random.normal(jax.random.key(100 + seed), (size, dim))


def split_words(split: int | None) -> str:
    """For names of jobs."""
    return "" if split is None else f" split {split}"
