"""Where the hunt begins: wide random places, copies of the draws, and the draws themselves.

A narrow mode beside a wide one has so small a basin that no climb from afar ends in it; of
thousands of random places the most likely ones may. Symmetries of a model, such as labels that can
be exchanged, put modes where mirrored, flipped and permuted draws are.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import stats

from salmc.diagnostics.hunt.tempering import WideStart
from salmc.diagnostics.point_sets import Cloud, squared_distances
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.symmetries import label_exchanges

WIDE_PLACES = 60_000
_LIKELIEST, _ANY, _COPIES, _FURTHEST = 8, 8, 80, 48
_SIZES = (-0.5, -2.0, 0.0, 0.5, 2.0)
"""Of copies that are larger or smaller than the draws, seen from zero."""

_NEAR_WIDTHS = 1.5
_FEW_DIMENSIONS, _BOXES = 4, (8.0, 30.0)
"""In so few dimensions boxes can be filled evenly: half their sides, in widths of the draws."""


def wide_places(
    density: HostDensity, points: Cloud, frame: Frame, generator: np.random.Generator
) -> tuple[Cloud, int]:
    """Of many random places the likeliest and some others, of each width; and how many."""
    count = density.share_of(WIDE_PLACES, 200)
    places, which = WideStart(frame).sample(count // 2, generator)
    # Around the draws, a little further than they go: where narrow modes between them may be.
    near = points[generator.integers(len(points), size=count - len(places))]
    noise = generator.standard_t(3, size=near.shape)
    near = near + _NEAR_WIDTHS * frame.directions(noise / np.sqrt(frame.dim))
    groups = [places, near]
    if frame.dim <= _FEW_DIMENSIONS:
        box = stats.qmc.Sobol(frame.dim, rng=generator).random(1 << int(np.log2(count)))
        groups += [frame.outward(width * (2.0 * box - 1.0)) for width in _BOXES]
    places = np.concatenate(groups)
    extra = [np.full(len(group), np.max(which) + 1 + k) for k, group in enumerate(groups[1:])]
    which = np.concatenate([which, *extra])
    values = density.values(places)
    chosen = []
    for group in np.unique(which):
        members = np.flatnonzero((which == group) & np.isfinite(values))
        if len(members):
            chosen.append(members[np.argsort(-values[members])[:_LIKELIEST]])
            chosen.append(generator.choice(members, min(_ANY, len(members)), replace=False))
    kept = np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, int)
    return places[kept], len(places)


def copies(
    points: Cloud, frame: Frame, names: Sequence[str], generator: np.random.Generator, most: int
) -> Cloud:
    """Mirrored, flipped and permuted draws, each from a draw of its own; at most so many."""
    dim = frame.dim
    eye, nowhere = np.eye(dim), np.zeros(dim)
    # All coordinates at once come first: of many dimensions' images they are few, and what
    # symmetries of a model are like.
    images = [(2.0 * frame.centre, -eye), (nowhere, -eye)]
    images += [(nowhere, eye[order]) for _, _, order in label_exchanges(names)]
    images += [(nowhere, size * eye) for size in _SIZES]
    others: list[tuple[np.ndarray, np.ndarray]] = []
    for i in range(dim):
        flipped = eye - 2.0 * np.outer(eye[i], eye[i])
        others += [(nowhere, flipped), (2.0 * frame.centre[i] * eye[i], flipped)]
    for i, j in itertools.combinations(range(min(dim, 40)), 2):
        exchanged = eye.copy()
        exchanged[[i, j]] = eye[[j, i]]
        others.append((nowhere, exchanged))
    images += [others[i] for i in generator.permutation(len(others))[:_COPIES]]
    images = images[:most]
    chosen = points[generator.integers(len(points), size=len(images))]
    pairs = zip(chosen, images, strict=True)
    return np.array([offset + matrix @ point for point, (offset, matrix) in pairs])


def furthest(candidates: Cloud, points: Cloud, frame: Frame) -> Cloud:
    """Of some candidates, those that are furthest from all draws, and from each other."""
    if len(candidates) <= _FURTHEST:
        return candidates
    units = frame.inward(candidates)
    distance = np.min(squared_distances(units, frame.inward(points[:2000])), axis=1)
    chosen: list[int] = []
    for _ in range(_FURTHEST):
        chosen.append(int(np.argmax(distance)))
        apart = np.sum((units - units[chosen[-1]]) ** 2, axis=1)
        distance = np.minimum(distance, apart)
    return candidates[chosen]
