"""What the classes of draws say about a chain: how even they are, and how often they change.

The classes come from a classifier; here they are whole numbers, of shape (chains, steps).
"""

import math

import numpy as np
from jaxtyping import Float, Int

from salmc import checks


def class_distribution(classes: np.ndarray, count: int) -> Float[np.ndarray, " classes"]:
    """The share of each class among all draws.

    Args:
        classes: of the draws, from 0.
        count: how many classes there are.
    """
    return np.bincount(_checked(classes, count).ravel(), minlength=count) / classes.size


def transition_counts(classes: np.ndarray, count: int) -> Int[np.ndarray, "classes classes"]:
    """How often a draw of class i (row) was followed by one of class j (column)."""
    classes = _chains(_checked(classes, count))
    pairs = classes[:, :-1] * count + classes[:, 1:]
    return np.bincount(pairs.ravel(), minlength=count * count).reshape(count, count)


def transition_matrix(classes: np.ndarray, count: int) -> Float[np.ndarray, "classes classes"]:
    """P(next class is j | class is i) as observed; rows of classes never left are NaN."""
    counts = transition_counts(classes, count)
    rows = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, rows, out=np.full(counts.shape, np.nan), where=rows > 0)


def steps_between_changes(classes: np.ndarray) -> float:
    """The mean number of steps until the class changes: transitions over changes of class.

    A chain that changes class at every step has 1; one that draws ten equally frequent classes
    independently has 1 / 0.9. Stays that the end of a chain cuts off count with what was seen of
    them, which the mean length of whole stays would leave out. Infinite if no chain ever changes.
    """
    classes = _chains(np.asarray(classes))
    changes = int(np.sum(classes[:, 1:] != classes[:, :-1]))
    return classes[:, 1:].size / changes if changes else math.inf


def classes_per_chain(classes: np.ndarray) -> float:
    """The mean number of different classes that a chain (row) visits."""
    return float(np.mean([len(np.unique(chain)) for chain in _chains(np.asarray(classes))]))


def stays_if_independent(shares: Float[np.ndarray, " classes"]) -> float:
    """What `steps_between_changes` is for independent draws with these shares."""
    same = float(np.sum(np.square(shares)))
    return 1.0 / (1.0 - same) if same < 1.0 else math.inf


def _checked(classes: np.ndarray, count: int) -> np.ndarray:
    checks.integer("count", count, 1)
    classes = np.asarray(classes)
    if classes.dtype.kind not in "iu" or classes.size == 0:
        checks.fail("classes", "whole numbers, at least one", f"{classes.dtype} {classes.shape}")
    if classes.min() < 0 or classes.max() >= count:
        found = f"{classes.min()} to {classes.max()}"
        checks.fail("classes", f"whole numbers from 0 to {count - 1}", found)
    return classes.astype(np.int64)


def _chains(classes: np.ndarray) -> np.ndarray:
    if classes.ndim != 2 or classes.shape[1] < 2:
        checks.fail("classes", "(chains, steps) with at least two steps", classes.shape)
    return classes
