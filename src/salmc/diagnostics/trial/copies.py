"""Copies of draws on lines, between draws and clusters, about a centre, and under symmetries.

What makes a test of copies exact is in `orbits`: the place of a draw among its copies is uniform,
and neither step nor direction have been chosen by looking at it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.clusters import cluster_steps
from salmc.diagnostics.trial.frame import Frame

COPIES = 12
_DIFFERENCES = np.array([-2, -1, 0, 1, 2])


class Copies(NamedTuple):
    """Copies of one kind of some draws, in their order, the draw at `place`."""

    name: str
    points: np.ndarray
    """(n, copies, dim)"""
    log_volume: np.ndarray
    """(copies,) or (n, copies)"""
    place: np.ndarray
    """(n,)"""


def shifts(name: str, points: Cloud, steps: np.ndarray, generator: np.random.Generator) -> Copies:
    """Copies along a line; `steps` is one for all or one for each point."""
    place = generator.integers(COPIES, size=len(points))
    times = (np.arange(COPIES) - place[:, None])[:, :, None]
    moved = points[:, None] + times * np.broadcast_to(steps, points.shape)[:, None]
    return Copies(name, moved, np.zeros(COPIES), place)


def pair_shifts(points: Cloud, size: int, generator: np.random.Generator) -> Copies:
    """Copies shifted by the difference of two other draws, which leads from mode to mode."""
    order = generator.permutation(len(points))[: 3 * size].reshape(3, size)
    chosen, first, second = (points[rows] for rows in order)
    count = len(_DIFFERENCES)
    place = generator.integers(count, size=size)
    times = (_DIFFERENCES - _DIFFERENCES[place][:, None])[:, :, None]
    moved = chosen[:, None] + times * (first - second)[:, None]
    return Copies("between draws", moved, np.zeros(count), place)


def cluster_shifts(points: Cloud, frame: Frame, generator: np.random.Generator) -> Iterator[Copies]:
    """Copies shifted from cluster to cluster; each half of the draws tells where those are that
    the other half is shifted between."""
    half = len(points) // 2
    halves = points[:half], points[half : 2 * half]
    steps = [cluster_steps(one, frame) for one in halves]
    for number, (first, second) in enumerate(zip(*steps, strict=False)):
        each = np.repeat([second, first], half, axis=0)
        yield shifts(f"between clusters {number}", points[: 2 * half], each, generator)


def scalings(
    name: str,
    points: Cloud,
    centre: np.ndarray,
    growth: float,
    count: int,
    generator: np.random.Generator,
) -> Copies:
    """Copies nearer to a centre and further away, each `growth` times as far as the one before."""
    place = generator.integers(count, size=len(points))
    powers = np.arange(count) - place[:, None]
    moved = centre + growth ** powers[:, :, None] * (points - centre)[:, None]
    return Copies(name, moved, points.shape[1] * np.log(growth) * powers, place)


def twins(
    name: str,
    points: Cloud,
    order: np.ndarray,
    image: "tuple[np.ndarray, np.ndarray]",
    generator: np.random.Generator,
) -> Copies:
    """A draw and its image offset + matrix x under a symmetry of order two, by their order·x."""
    offset, matrix = image
    other = points @ matrix.T + offset
    place = (points @ order > other @ order).astype(int)
    ties = points @ order == other @ order
    place = np.where(ties, generator.integers(2, size=len(points)), place)
    both = np.where(
        place[:, None, None] == 1, np.stack([other, points], 1), np.stack([points, other], 1)
    )
    return Copies(name, both, np.zeros(2), place)
