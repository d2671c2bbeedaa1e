"""Orbit tests: is each draw as likely among its own displaced copies as p says? Exact, any p.

Take a draw x ~ p, copies of it on a line, x + (k − K) h v for k = 0 … G − 1, and let the place K of
x among them be uniform and v, h be chosen without looking at x. Then, given the copies alone, x is
the k-th of them with probability

    w_k = p(x_k) J_k / Σ_j p(x_j) J_j,

where J is the volume that the copy's map gives: 1 for shifts, mirrors and permutations, q^{k dim}
for x_k = c + q^{k−K} (x − c). So the rank of x among its copies, made continuous by one uniform
number, F = Σ_{k<K} w_k + U w_K, is uniform on (0, 1): no approximation, no gradient, no smoothness,
no normalising constant, edges and NaN regions welcome. A sample that is off fails it:

* lines along coordinates, each given all others: shifted, too narrow, too wide;
* long lines, and differences of two other draws: modes beyond, and their weights;
* along funnels, where the spread of some coordinates goes with another one: necks;
* growing and shrinking about the centre: radii, and tails that the draws lack, however far out;
* mirrored, flipped and permuted copies: modes that a symmetry maps the draws to.

Ranks are compared with the uniform law at a few levels, by binomial tests, and Bonferroni's bound
holds for all of them together.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.funnels import funnels
from salmc.diagnostics.trial.host import LITTLE, HostDensity
from salmc.diagnostics.trial.symmetries import symmetries

_LEVELS = np.array([1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.997, 0.999])
_COPIES = 12
_LINE_STEP, _LONG_STEP = 0.6, 5.0
"""Steps of short and long lines, in the width of the draws along them."""

_DIFFERENCES = np.array([-2, -1, 0, 1, 2])
_FAR_GROWTH, _FAR_COPIES = 1.8, 24
"""Copies from a millionth of a draw's distance to a million times it: tails end for none."""

_LINES, _RADII, _FAR, _SYMMETRIC, _PAIRS = 4000, 2000, 8000, 200, 1000
_LINES_ALONE = 16_000
"""Draws on all short lines together where there are no scores, which see the same more sharply."""


class Copies(NamedTuple):
    """Copies of one kind of some draws, in their order, the draw at `place`."""

    name: str
    points: np.ndarray
    """(n, copies, dim)"""
    log_volume: np.ndarray
    """(copies,) or (n, copies)"""
    place: np.ndarray
    """(n,)"""


@dataclasses.dataclass(frozen=True, eq=False)
class OrbitTest:
    """Ranks of draws among their copies of one kind.

    Attributes:
        name: the kind: "line x0", "far line", "radius", "tails", "mirror", "permute x0 x1", …
        ranks: (n,), uniform for exact draws.
        p_value: of the largest deviation, for all levels together.
    """

    name: str
    ranks: Numbers
    p_value: float

    @property
    def shift(self) -> float:
        """Mean rank − ½, at most ½: positive if draws lie too far along the line, or out."""
        return float(np.mean(self.ranks) - 0.5)

    @property
    def spread(self) -> float:
        """Standard deviation of the ranks over that of exact draws: below 1 is too narrow."""
        return float(np.sqrt(np.mean((self.ranks - 0.5) ** 2) * 12.0))

    @property
    def beyond(self) -> float:
        """The mass above all ranks: what lies further out than any draw, in its direction."""
        return float(1.0 - np.max(self.ranks))


def orbit_tests(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    seed: int = 0,
) -> list[OrbitTest]:
    """All orbit tests of nearly independent points, p-values not yet corrected for their number.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), in random order; as many of them are used as the density is cheap.
        frame: of the sample.
        names: of the coordinates, as they are to be called.
        seed: of places, directions and ranks.
    """
    generator = np.random.default_rng(seed)
    found = []
    for copies in _all_copies(density, points, frame, names, generator):
        ranks = _ranks(density, copies, generator)
        if len(ranks) >= 20:
            found.append(OrbitTest(copies.name, ranks, uniform_p_value(ranks)))
    return found


def uniform_p_value(ranks: Numbers) -> float:
    """Of the largest deviation from the uniform law: binomial at each level, and two moments."""
    n = len(ranks)
    below = np.sum(ranks[:, None] < _LEVELS, axis=0)
    binomial = stats.binom(n, _LEVELS)
    tails = np.minimum(binomial.cdf(below), binomial.sf(below - 1))
    mean = (np.mean(ranks) - 0.5) * np.sqrt(12.0 * n)
    square = (np.mean((ranks - 0.5) ** 2) - 1.0 / 12.0) * np.sqrt(180.0 * n)
    moments = stats.norm.sf(np.abs([mean, square]))
    looks = 2.0 * (len(_LEVELS) + 2)
    return float(min(1.0, looks * min(np.min(tails), np.min(moments))))


def _ranks(density: HostDensity, copies: Copies, generator: np.random.Generator) -> Numbers:
    n, count, dim = copies.points.shape
    values = density.values(copies.points.reshape(-1, dim)).reshape(n, count)
    weights = values + copies.log_volume
    own = weights[np.arange(n), copies.place]
    # Draws where the density is zero are told elsewhere.
    usable = np.isfinite(own)
    weights, place = weights[usable], copies.place[usable]
    weights = np.exp(weights - np.max(weights, axis=1, keepdims=True, initial=-np.inf))
    weights /= np.sum(weights, axis=1, keepdims=True)
    before = np.sum(np.where(np.arange(count) < place[:, None], weights, 0.0), axis=1)
    own_weight = weights[np.arange(len(place)), place]
    return before + generator.random(len(place)) * own_weight


def _all_copies(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    generator: np.random.Generator,
) -> Iterator[Copies]:
    dim = frame.dim

    def some(count: int, at_least: int = 60) -> Cloud:
        size = min(density.share_of(count, at_least), len(points))
        return points[generator.choice(len(points), size, replace=False)]

    little = density.effort < LITTLE
    steps = {"line": _LINE_STEP * frame.conditional, "long line": _LONG_STEP * frame.scale}
    most = 0 if little else 40
    coordinates = np.sort(generator.permutation(dim)[:most])
    alone = not density.target.differentiable
    counts = {"line": _LINES_ALONE if alone else _LINES, "long line": _LINES}
    for kind, step in steps.items():
        for i in coordinates:
            direction = np.zeros(dim)
            direction[i] = step[i]
            chosen = some(counts[kind] // dim)
            yield _shifts(f"{kind} {names[i]}", chosen, direction, generator)
    for kind, length in (("any line", _LINE_STEP), ("any long line", _LONG_STEP)):
        chosen = some(_PAIRS)
        directions = frame.directions(generator.normal(size=(len(chosen), dim)))
        # The spread of draws along such a direction, from others.
        length = length / np.sqrt(dim)
        yield _shifts(kind, chosen, length * directions, generator)
    yield _pair_shifts(points, min(density.share_of(_PAIRS, 60), len(points) // 3), generator)
    fine = 1.0 + 0.8 / np.sqrt(2.0 * dim)
    yield _scalings("radius", some(_RADII), frame.centre, fine, _COPIES, generator)
    yield _scalings("tails", some(_FAR), frame.centre, _FAR_GROWTH, _FAR_COPIES, generator)
    for funnel in () if little else funnels(points):
        chosen = some(_FAR)
        place = generator.integers(_COPIES, size=len(chosen))
        times = np.arange(_COPIES) - place[:, None]
        moved, log_volume = funnel.copies(chosen, times)
        yield Copies(f"funnel {names[funnel.scale]}", moved, log_volume * times, place)
    images = symmetries(frame, names, generator)
    for name, order, image in itertools.islice(images, 2 if little else None):
        yield _twins(name, some(_SYMMETRIC, 40), order, image, generator)


def _shifts(name: str, points: Cloud, steps: np.ndarray, generator: np.random.Generator) -> Copies:
    """Copies along a line; `steps` is one for all or one for each point."""
    place = generator.integers(_COPIES, size=len(points))
    times = (np.arange(_COPIES) - place[:, None])[:, :, None]
    moved = points[:, None] + times * np.broadcast_to(steps, points.shape)[:, None]
    return Copies(name, moved, np.zeros(_COPIES), place)


def _pair_shifts(points: Cloud, size: int, generator: np.random.Generator) -> Copies:
    """Copies shifted by the difference of two other draws, which leads from mode to mode."""
    order = generator.permutation(len(points))[: 3 * size].reshape(3, size)
    chosen, first, second = (points[rows] for rows in order)
    count = len(_DIFFERENCES)
    place = generator.integers(count, size=size)
    times = (_DIFFERENCES - _DIFFERENCES[place][:, None])[:, :, None]
    moved = chosen[:, None] + times * (first - second)[:, None]
    return Copies("between draws", moved, np.zeros(count), place)


def _scalings(
    name: str,
    points: Cloud,
    centre: np.ndarray,
    growth: float,
    count: int,
    generator: np.random.Generator,
) -> Copies:
    place = generator.integers(count, size=len(points))
    powers = np.arange(count) - place[:, None]
    moved = centre + growth ** powers[:, :, None] * (points - centre)[:, None]
    return Copies(name, moved, points.shape[1] * np.log(growth) * powers, place)


def _twins(
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
