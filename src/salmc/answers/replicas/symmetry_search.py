"""Symmetries of a density, seen from its modes: permutations and changes of sign.

Where labels may be exchanged, or signs, modes are images of each other. Two tops m and m′ of one
height, whose coordinates are the same numbers but for their order and their signs, tell the map:

    g m = m′:  the i-th largest |m_j| goes to where |m′_j| is the i-th largest

for all coordinates at once, however they belong together, and without names. Whether p is the same
under it, p itself says at other places. Some maps of a group make all of it, one after the other
(`sampling.symmetries`).
"""

import itertools

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.hunt.ascent import Ends, ascend
from salmc.diagnostics.trial.host import HostDensity
from salmc.target import AbstractTarget

_CLIMBS, _ROUNDS = 128, 160
"""From places of a cloud, all at once; and their steps."""

_EQUAL = 0.3
"""Widths of a mode by which coordinates may differ, and units of log p by which heights may: climbs
end near the tops."""

_AT, _SAME = 64, 1e-4
"""Places at which p must be the same under a map, and by how much log p may differ there, as a
share of itself."""

_TRIED, _MOST_MAPS = 400, 8


def symmetries_of(
    base: AbstractTarget, cloud: Float[np.ndarray, "n dim"], seed: int
) -> Float[np.ndarray, "k dim dim"] | None:
    """Linear maps x′ = x G under which a density is the same; None where none was found.

    Args:
        base: differentiable, in coordinates without bounds.
        cloud: particles of several of its modes.
        seed: of all choices.
    """
    generator = np.random.default_rng(seed)
    cloud = generator.permutation(cloud)
    density = HostDensity(base, cloud[0], 1.0)
    tops, unit = _tops(density, cloud)
    some = cloud[-_AT:]
    values = density.values(some)
    widths = unit * np.sqrt(np.diagonal(tops.inverses, axis1=1, axis2=2))
    sizes = np.sort(np.abs(tops.points), axis=1)
    found: list[np.ndarray] = []
    tried = 0
    pairs = np.array(list(itertools.combinations(range(len(sizes)), 2)))
    for first, other in generator.permutation(pairs):
        width = np.median(widths[[first, other]])
        alike = np.all(np.abs(sizes[first] - sizes[other]) < _EQUAL * width)
        if not alike or abs(tops.values[first] - tops.values[other]) > _EQUAL:
            continue
        one = _map_between(tops.points[first], tops.points[other])
        if any(np.array_equal(one, known) for known in (np.eye(len(one)), *found)):
            continue
        tried += 1
        if _is_same(values, density.values(some @ one)):
            found.append(one)
        if len(found) == _MOST_MAPS or tried == _TRIED:
            break
    return np.array(found) if found else None


def _tops(density: HostDensity, cloud: Float[np.ndarray, "n dim"]) -> tuple[Ends, np.ndarray]:
    """Where climbs from a cloud end, and the unit of each coordinate in them."""
    middle, unit = np.mean(cloud, axis=0), np.std(cloud, axis=0)
    unit = np.where((unit > 0.0) & np.isfinite(unit), unit, 1.0)

    def slopes(y: np.ndarray, _: np.ndarray) -> np.ndarray:
        found = density.gradients(middle + unit * y) * unit
        return np.where(np.all(np.isfinite(found), axis=1, keepdims=True), found, 0.0)

    starts = cloud[:_CLIMBS]
    ends = ascend(
        lambda y: density.values(middle + unit * y),
        slopes,
        (starts - middle) / unit,
        density.values(starts),
        _ROUNDS,
        enough=0.0,
    )
    return ends._replace(points=middle + unit * ends.points), unit


def _map_between(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The signed permutation that takes one place nearest to another."""
    from_order, to_order = np.argsort(np.abs(here)), np.argsort(np.abs(there))
    signs = np.sign(here[from_order]) * np.sign(there[to_order])
    found = np.zeros((len(here), len(here)))
    found[from_order, to_order] = np.where(signs == 0.0, 1.0, signs)
    return found


def _is_same(values: np.ndarray, at_images: np.ndarray) -> bool:
    usable = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        near = np.abs(at_images - values) < _SAME * (1.0 + np.abs(values))
    return bool(np.any(usable) and np.all(near[usable]))
