"""Copies of draws on lines, between draws and clusters, about a centre, and under symmetries.

What makes a test of copies exact is in `orbits`: the place of a draw among its copies is uniform,
and neither step nor direction have been chosen by looking at it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.clusters import Way, cluster_ways
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


def cluster_shifts(points: Cloud, frame: Frame) -> Iterator[Copies]:
    """Draws and their images in the neighbouring cluster; each half of the draws tells where those
    are that the other half is shifted between.

    With t the place along the way from one middle (−½) to the other (½), t ↦ t + 1 below 0 and
    t ↦ t − 1 above is its own inverse where |t| < 1. One step and no further: far out single
    precision, and double too, may make up density.
    """
    half = len(points) // 2
    halves = points[:half], points[half : 2 * half]
    ways = [cluster_ways(one, frame) for one in halves]
    for number, both in enumerate(zip(*ways, strict=False)):
        pairs = [_neighbours(*pair, frame) for pair in zip(halves, both[::-1], strict=True)]
        moved, place = (np.concatenate(part) for part in zip(*pairs, strict=True))
        yield Copies(f"between clusters {number}", moved, np.zeros(2), place)


def _neighbours(points: Cloud, way: Way, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    units = way.step / frame.scale**2
    along = (points - way.middle) @ units / (way.step @ units)
    inside = np.abs(along) < 1.0
    points, place = points[inside], (along[inside] >= 0.0).astype(int)
    times = np.arange(2) - place[:, None]
    return points[:, None] + times[:, :, None] * way.step, place


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


def stretches(
    name: str,
    points: Cloud,
    i: int,
    centre: float,
    growth: float,
    count: int,
    generator: np.random.Generator,
) -> Copies:
    """The same of one coordinate alone."""
    place = generator.integers(count, size=len(points))
    powers = np.arange(count) - place[:, None]
    moved = np.repeat(points[:, None], count, axis=1)
    moved[:, :, i] = centre + growth**powers * (points[:, i, None] - centre)
    return Copies(name, moved, np.log(growth) * powers, place)


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
