"""From cluster to cluster: the ways that lead from one group of draws to another.

Modes are told apart by ellipsoids around their tops (`hunt.masses`), which for funnels hold next to
nothing: their tops are in the neck. Draws themselves show where they gather. Two means (Lloyd 1982)
divide them, and divide each of the two parts again; the way between the middles of two parts is a
shift along which a draw has an image of about its own likelihood, if they are modes of one shape.
Where they are none, the shift is one like any other, and a test along it as exact.
"""

from typing import NamedTuple

import numpy as np

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.frame import Frame

_ROUNDS, _FEWEST, _HELD = 12, 40, 4.0


class Way(NamedTuple):
    """Between the middles of two parts."""

    middle: np.ndarray
    """Halfway."""
    step: np.ndarray


def cluster_ways(points: Cloud, frame: Frame) -> list[Way]:
    """Between the two parts of some draws, and between the parts of each of them."""
    units = np.clip((points - frame.centre) / frame.scale, -_HELD, _HELD)
    parts = _two_parts(units)
    if parts is None:
        return []
    pairs = [(points[parts], points[~parts])]
    for rows in (parts, ~parts):
        inner = _two_parts(units[rows])
        if inner is not None:
            pairs.append((points[rows][inner], points[rows][~inner]))
    # Which of two parts is the first means nothing: the same way for all who ask.
    along = np.random.default_rng(0).normal(size=frame.dim) / frame.scale
    found = []
    for pair in pairs:
        one, other = (np.median(part, axis=0) for part in pair)
        step = one - other
        if np.any(step != 0.0):
            found.append(Way(0.5 * (one + other), step if step @ along > 0.0 else -step))
    return found


def _two_parts(units: Cloud) -> np.ndarray | None:
    """Which points are in the first of two parts; None where one of them is too small."""
    if len(units) < 2 * _FEWEST:
        return None
    # From the ends of the widest direction, which is where two parts are, if they are far apart.
    away = units - np.mean(units, axis=0)
    first = away @ np.linalg.svd(away, full_matrices=False)[2][0] > 0.0
    for _ in range(_ROUNDS):
        if min(np.sum(first), np.sum(~first)) < _FEWEST:
            return None
        one, other = np.mean(units[first], axis=0), np.mean(units[~first], axis=0)
        nearer = np.sum((units - one) ** 2, axis=1) < np.sum((units - other) ** 2, axis=1)
        if np.array_equal(nearer, first):
            break
        first = nearer
    return first
