"""Modes that the draws went to, as clusters of the draws themselves, and how much each weighs.

A few thousand draws climb a graph of near neighbours to the highest estimate of the density around
them, and two hills are one mode unless the saddle between them is deeper than chance makes it
(ToMATo: Chazal, Guibas, Oudot & Skraba 2013). Rings and bananas are one mode by that, as they
should be. In many dimensions near neighbours are far away, and two modes that differ in one number
of thirty blend; so beyond three, each cluster is looked at along single numbers as well. There the
saddle must be deeper, as the shadow of a ring has a shallow one. Modes that are not far apart may
be told as one. A mode that no draw went to is not here: the verdict's hunt asks for those.
"""

import dataclasses
import weakref

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from salmc.diagnostics.chain_statistics import ess_bulk
from salmc.diagnostics.point_sets import safe_scale
from salmc.sampling.draws import Draws

LANDMARKS = 1500
"""Draws that are clustered; the others belong where the nearest of these does."""

NEIGHBOURS = 30
"""Of the density's estimate, whose logarithm then has an error of 1/√30 = 0.18."""

SADDLE = 1.2
"""How far log density must fall between two modes: some five standard errors of a difference."""

LEAST_DRAWS = 15
"""Landmarks of a mode; fewer may be stragglers of a tail."""

MOST_DRAWS, MOST_NUMBERS = 70_000, 1_500_000
"""Draws that weights are counted on, and numbers that they have, at most."""

JOINT_NUMBERS = 60
"""Beyond so many, distances to near and to far neighbours hardly differ: single numbers tell."""

FEW_NUMBERS = 3
"""Up to so many all numbers together tell everything."""

SINGLE_SADDLE = 2.2
"""`SADDLE` along a single number: a ring forty times as wide as thick stays one mode."""

SINGLE_NUMBERS = 6
"""Numbers that each cluster is looked at along, the least bell-shaped ones."""

_TREE_DIM = 8
"""Up to so many dimensions a tree finds neighbours faster than all distances."""

_LEAST_COUNTED = 50
"""Draws of a chain that are counted, if it has as many."""

_BLOCK = 2048


@dataclasses.dataclass(frozen=True)
class Mode:
    """One cluster of draws.

    Attributes:
        weight: share of the draws.
        error: standard error of the weight, from its effective sample size; None of particles,
            which move together, and of chains that are too short to tell.
        places: (number,) median of each of the user's numbers that move.
        spreads: (number,) their standard deviation within the mode.
    """

    weight: float
    error: float | None
    places: np.ndarray
    spreads: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class FoundModes:
    """All modes, the heaviest first.

    Attributes:
        modes: what each is.
        names: of the user's numbers that move, in the order of `Mode.places`.
        labels: (chain, draw) the mode of each counted draw.
        values: (chain, draw, number) the counted draws, in the user's variables.
        stride: every how manieth kept draw is counted.
    """

    modes: tuple[Mode, ...]
    names: tuple[str, ...]
    labels: np.ndarray
    values: np.ndarray
    stride: int

    @property
    def crossings(self) -> float | None:
        """Share of consecutive counted draws of a chain that lie in different modes."""
        if self.labels.shape[1] < 2:
            return None
        return float(np.mean(self.labels[:, 1:] != self.labels[:, :-1]))

    def telling(self) -> tuple[int, int]:
        """The two numbers that tell the modes apart best, in their order; else the first two."""
        count = len(self.names)
        if count < 2 or len(self.modes) < 2:
            return 0, min(1, count - 1)
        places = np.array([mode.places for mode in self.modes])
        spreads = np.array([mode.spreads for mode in self.modes])
        apart = np.var(places, axis=0) / np.maximum(np.mean(spreads**2, axis=0), 1e-30)
        first, second = sorted(np.argsort(-apart, kind="stable")[:2])
        return int(first), int(second)


_KNOWN: "weakref.WeakKeyDictionary[Draws, FoundModes | None]" = weakref.WeakKeyDictionary()
"""Of draws that were clustered already: several pictures and texts ask."""


def found_modes(draws: Draws) -> FoundModes | None:
    """Cluster the draws; None where there are too few finite ones to tell."""
    if draws not in _KNOWN:
        _KNOWN[draws] = _found(draws)
    return _KNOWN[draws]


def _found(draws: Draws) -> FoundModes | None:
    shown = draws.shown.moving()
    kept = 1 if draws.kind == "particles" else draws.chains().shape[1]
    values, positions = shown.values[:, -kept:], draws.positions[:, -kept:]
    most = max(2000, min(MOST_DRAWS, MOST_NUMBERS // draws.dim))
    stride = max(1, -(-len(positions) * kept // most))
    if kept // stride < _LEAST_COUNTED:
        # Many short chains: some are left out, as of each only a few draws would be left.
        stride = max(1, kept // _LEAST_COUNTED)
    chains = max(1, most * stride // max(1, kept))
    positions, values = positions[:chains, ::stride], values[:chains, ::stride]
    flat = np.asarray(positions, float).reshape(-1, draws.dim)
    if len(flat) < 4 * NEIGHBOURS or not np.all(np.isfinite(flat)):
        return None
    scaled = flat / safe_scale(flat)
    landmarks = scaled[np.random.default_rng(0).permutation(len(scaled))[:LANDMARKS]]
    # Copies, as rejections leave them, would be points of infinite density.
    landmarks = np.unique(landmarks, axis=0)
    if len(landmarks) < 4 * NEIGHBOURS:
        return None
    labels = _assigned(scaled, landmarks, cluster(landmarks)).reshape(positions.shape[:2])
    order = np.argsort(-np.bincount(labels.ravel()), kind="stable")
    labels = np.argsort(order)[labels]
    modes = tuple(_mode(labels == i, values, draws.kind) for i in range(len(order)))
    return FoundModes(modes, shown.names, labels, values, stride)


def cluster(points: np.ndarray) -> np.ndarray:
    """(n,) labels from 0 of n different points: by all numbers together, then by single ones."""
    count, dim = points.shape
    labels = hills(points) if dim <= JOINT_NUMBERS else np.zeros(count, int)
    waiting = list(range(int(labels.max()) + 1))
    while waiting and points.shape[1] > FEW_NUMBERS:
        inside = np.flatnonzero(labels == waiting.pop())
        if len(inside) < 4 * NEIGHBOURS:
            continue
        for number in _least_bell_shaped(points[inside]):
            parts = hills(points[inside, number, None], SINGLE_SADDLE)
            if parts.max() > 0:
                first = int(labels.max())
                labels[inside[parts > 0]] = first + parts[parts > 0]
                waiting += {int(label) for label in labels[inside]}
                break
    return labels


def _least_bell_shaped(points: np.ndarray) -> np.ndarray:
    """Numbers by (skewness² + 1) / kurtosis, which two hills make large whatever their weights."""
    scaled = (points - np.mean(points, axis=0)) / safe_scale(points)
    skewness, kurtosis = np.mean(scaled**3, axis=0), np.mean(scaled**4, axis=0)
    return np.argsort(-(skewness**2 + 1.0) / np.maximum(kurtosis, 1e-9))[:SINGLE_NUMBERS]


def hills(points: np.ndarray, saddle: float = SADDLE) -> np.ndarray:
    """(n,) labels from 0 of n points: the hills of their density."""
    count, dim = points.shape
    distances = cdist(points, points)
    near = np.argsort(distances, axis=1)[:, : NEIGHBOURS + 1]
    radii = distances[np.arange(count), near[:, -1]]
    # log k − log n − dim log r, up to constants; the smallest float stands for copies.
    height = -dim * np.log(np.maximum(radii, np.finfo(float).tiny))
    parent = list(range(count))

    def root(of: int) -> int:
        while parent[of] != of:
            parent[of] = parent[parent[of]]
            of = parent[of]
        return of

    done = np.zeros(count, bool)
    for point in np.argsort(-height, kind="stable"):
        above = [int(neighbour) for neighbour in near[point] if done[neighbour]]
        done[point] = True
        if not above:
            continue
        # To the nearest that is higher: to the highest, heavy modes would take from light ones.
        parent[int(point)] = root(above[0])
        roots = {root(neighbour) for neighbour in above}
        summit = max(roots, key=lambda found: height[found])
        for other in roots - {summit}:
            if height[other] - height[point] < saddle:
                parent[other] = summit
    summits = np.array([root(i) for i in range(count)])
    return _without_stragglers(points, summits)


def _without_stragglers(points: np.ndarray, summits: np.ndarray) -> np.ndarray:
    """Labels from 0; clusters of a handful join the nearest large one."""
    _, labels, sizes = np.unique(summits, return_inverse=True, return_counts=True)
    large = sizes >= min(LEAST_DRAWS, int(sizes.max()))
    new = np.cumsum(large) - 1
    result = np.where(large[labels], new[labels], -1)
    small = result < 0
    if np.any(small):
        result[small] = _nearest(points[small], points[~small], result[~small])
    return result


def _assigned(points: np.ndarray, landmarks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The mode of every point: that of the nearest landmark.

    Among many numbers that tell nothing, the nearest one is often of another mode, and weights
    would be off by more than their errors. So distances are taken in the few directions in which
    the modes differ, measured by the spread within them (Fisher's discriminants), unless the
    landmarks themselves are told worse by that, as curved modes are.
    """
    if points.shape[1] <= FEW_NUMBERS or labels.max() == 0:
        return _nearest(points, landmarks, labels)
    means = np.array([np.mean(landmarks[labels == i], axis=0) for i in range(labels.max() + 1)])
    within = safe_scale(landmarks - means[labels])
    _, _, directions = np.linalg.svd((means - np.mean(means, axis=0)) / within, full_matrices=False)
    turn = (directions[: len(means) - 1] / within).T
    near = [_told_right(places, labels) for places in (landmarks @ turn, landmarks)]
    if near[0] >= near[1]:
        points, landmarks = points @ turn, landmarks @ turn
    return _nearest(points, landmarks, labels)


def _told_right(landmarks: np.ndarray, labels: np.ndarray) -> float:
    """Share of landmarks whose nearest neighbour is of the same mode."""
    distances = cdist(landmarks, landmarks)
    np.fill_diagonal(distances, np.inf)
    return float(np.mean(labels[np.argmin(distances, axis=1)] == labels))


def _nearest(points: np.ndarray, landmarks: np.ndarray, labels: np.ndarray) -> np.ndarray:
    if points.shape[1] <= _TREE_DIM:
        return labels[cKDTree(landmarks).query(points)[1]]
    found = [
        labels[np.argmin(cdist(points[i : i + _BLOCK], landmarks, "sqeuclidean"), axis=1)]
        for i in range(0, len(points), _BLOCK)
    ]
    return np.concatenate(found)


def _mode(inside: np.ndarray, values: np.ndarray, kind: str) -> Mode:
    weight = float(np.mean(inside))
    error = None
    if kind == "chains" and inside.shape[1] >= 4 and 0.0 < weight < 1.0:
        effective = float(ess_bulk(inside[..., None].astype(float))[0])
        if np.isfinite(effective) and effective > 0:
            error = float(np.sqrt(weight * (1.0 - weight) / effective))
    members = values[inside]
    return Mode(weight, error, np.median(members, axis=0), np.std(members, axis=0))
