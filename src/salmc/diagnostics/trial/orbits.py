"""Orbit tests: is each draw as likely among its own displaced copies as p says? Exact, any p.

Take a draw x ~ p, copies of it on a line, x + (k − K) h v for k = 0 … G − 1, and let the place K of
x among them be uniform and v, h be chosen without looking at x. Then, given the copies alone, x is
the k-th of them with probability

    w_k = p(x_k) J_k / Σ_j p(x_j) J_j,

where J is the volume that the copy's map gives: 1 for shifts, mirrors and permutations, q^{k dim}
for x_k = c + q^{k−K} (x − c). So the rank of x among its copies, made continuous by one uniform
number, F = Σ_{k<K} w_k + U w_K, is uniform on (0, 1): no approximation, no gradient, no smoothness,
no normalising constant, edges and NaN regions welcome. A sample that is off fails it:

* lines along coordinates, each given all others, and along main axes: shifted, too narrow or wide;
* long lines, differences of two other draws, and of clusters: modes beyond, and their weights;
* along funnels, where the spread of some coordinates goes with another one: necks;
* growing and shrinking about the centre: radii, and tails that the draws lack, however far out;
* mirrored, flipped and permuted copies: modes that a symmetry maps the draws to.

Ranks are compared with the uniform law at a few levels, by binomial tests, and Bonferroni's bound
holds for all of them together.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.copies import (
    COPIES,
    Copies,
    cluster_shifts,
    pair_shifts,
    scalings,
    shifts,
    twins,
)
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.funnels import funnels
from salmc.diagnostics.trial.host import LITTLE, HostDensity
from salmc.diagnostics.trial.symmetries import symmetries

_LOW = np.array([1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3])
_LEVELS = np.concatenate([_LOW, [0.5], 1.0 - _LOW[::-1]])
"""Up to where one draw in a hundred thousand is: a few outliers are there, and nothing else."""

_RARE, _BY_CHANCE = 5e-4, 0.05
"""Levels so rare are asked where chance gives so many draws beyond: of fewer draws two or three
would decide, which double precision makes up as well, where copies go far. A chain that stays at
one place puts many draws there, which count once."""

_LINE_STEP, _LONG_STEP = 0.6, 5.0
"""Steps of short and long lines, in the width of the draws along them."""

_FAR_GROWTH, _FAR_COPIES = 1.8, 24
"""Copies from a millionth of a draw's distance to a million times it: tails end for none."""

_LINES, _RADII, _FAR, _PAIRS = 4000, 2000, 8000, 1000
_LINES_ALONE = 16_000
"""Draws on all short lines together where there are no scores, which see the same more sharply."""

_AGAIN, _FEWEST_AGAIN = 10, 400
"""Lines on which further draws are asked about, and how many there must be."""

_ALL_SYMMETRIC, _SYMMETRIC = 40_000, 200
"""Draws that are asked about their images under all symmetries together, and for each at least."""


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
    def is_of_modes(self) -> bool:
        """Whether copies are in other modes, if there are any: under symmetries, and clusters."""
        return self.name.startswith(("mirror", "flip", "exchange", "between clusters"))

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
    alone: bool = False,
) -> list[OrbitTest]:
    """All orbit tests of nearly independent points, p-values not yet corrected for their number.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), in random order; as many of them are used as the density is cheap.
        frame: of the sample.
        names: of the coordinates, as they are to be called.
        seed: of places, directions and ranks.
        alone: whether no scores are asked beside them.
    """
    generator = np.random.default_rng(seed)
    found = []
    for copies in _all_copies(density, points, frame, names, generator, alone):
        ranks, own = _ranks(density, copies, generator)
        if len(ranks) >= 20:
            found.append(OrbitTest(copies.name, ranks, uniform_p_value(ranks, own)))
    return found


def uniform_p_value(ranks: Numbers, places: Cloud | None = None) -> float:
    """Of the largest deviation from the uniform law: binomial at each level, and two moments.

    Args:
        ranks: of the draws.
        places: where these are, if some may be copies of others.
    """
    n = len(ranks)
    rare = np.minimum(_LEVELS, 1.0 - _LEVELS)
    asked = (rare > _RARE) | (n * rare > _BY_CHANCE)
    levels, rare = _LEVELS[asked], rare[asked]
    below = np.sum(ranks[:, None] < levels, axis=0)
    above = n - below
    if places is not None:
        for i in np.flatnonzero(rare <= _RARE):
            low = levels[i] < 0.5
            beyond = (ranks < levels[i]) == low
            (below if low else above)[i] = len(np.unique(places[beyond], axis=0))
    tails = np.minimum(
        stats.binom.sf(above - 1, n, 1.0 - levels), stats.binom.sf(below - 1, n, levels)
    )
    looks = 2.0 * (len(_LEVELS) + 2)
    return float(min(1.0, looks * min(np.min(tails), stats.norm.sf(_largest_moment(ranks)))))


def _largest_moment(ranks: Numbers) -> float:
    """Of mean and mean square, in standard errors from those of the uniform law."""
    mean = (np.mean(ranks) - 0.5) * np.sqrt(12.0 * len(ranks))
    square = (np.mean((ranks - 0.5) ** 2) - 1.0 / 12.0) * np.sqrt(180.0 * len(ranks))
    return float(max(abs(mean), abs(square)))


def _ranks(
    density: HostDensity, copies: Copies, generator: np.random.Generator
) -> tuple[Numbers, Cloud]:
    """Of the draws whose density is known; and where these are."""
    weights, usable = weights_of(density, copies)
    own = copies.points[usable, copies.place[usable]]
    return ranks_among(weights[usable], copies.place[usable], generator), own


def weights_of(density: HostDensity, copies: Copies) -> tuple[np.ndarray, np.ndarray]:
    """w of all copies, (n, copies); and of which draws it is known."""
    n, count, dim = copies.points.shape
    values = density.values(copies.points.reshape(-1, dim)).reshape(n, count)
    weights = values + copies.log_volume
    # Draws where the density is zero are told elsewhere.
    usable = np.isfinite(weights[np.arange(n), copies.place])
    highest = np.max(weights, axis=1, keepdims=True, initial=-np.inf)
    weights = np.exp(weights - np.where(np.isfinite(highest), highest, 0.0))
    with np.errstate(invalid="ignore"):
        return weights / np.sum(weights, axis=1, keepdims=True), usable


def ranks_among(weights: np.ndarray, place: np.ndarray, generator: np.random.Generator) -> Numbers:
    """F of each draw."""
    before = np.sum(np.where(np.arange(weights.shape[1]) < place[:, None], weights, 0.0), axis=1)
    return before + generator.random(len(place)) * weights[np.arange(len(place)), place]


def _all_copies(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    generator: np.random.Generator,
    alone: bool,
) -> Iterator[Copies]:
    dim = frame.dim

    def some(count: int, at_least: int = 60) -> Cloud:
        size = min(density.share_of(count, at_least), len(points))
        return points[generator.choice(len(points), size, replace=False)]

    little = density.effort < LITTLE
    most = 0 if little else 40
    coordinates = np.sort(generator.permutation(dim)[:most])
    for name, step in _short_lines(frame, names, coordinates, alone).items():
        # Where values alone are asked, the first draws, so that others can be asked again.
        chosen = points[: _first_look(density, dim)] if alone else some(_LINES // dim)
        yield shifts(name, chosen, step, generator)
    for i in coordinates:
        direction = _LONG_STEP * frame.scale[i] * np.eye(dim)[i]
        yield shifts(f"long line {names[i]}", some(_LINES // dim), direction, generator)
    for kind, length in (("any line", _LINE_STEP), ("any long line", _LONG_STEP)):
        chosen = some(_PAIRS)
        directions = frame.directions(generator.normal(size=(len(chosen), dim)))
        # The spread of draws along such a direction, from others.
        length = length / np.sqrt(dim)
        yield shifts(kind, chosen, length * directions, generator)
    yield pair_shifts(points, min(density.share_of(_PAIRS, 60), len(points) // 3), generator)
    yield from cluster_shifts(points[: density.share_of(_FAR, 60)], frame)
    fine = 1.0 + 0.8 / np.sqrt(2.0 * dim)
    yield scalings("radius", some(_RADII), frame.centre, fine, COPIES, generator)
    yield scalings("tails", some(_FAR), frame.centre, _FAR_GROWTH, _FAR_COPIES, generator)
    for funnel in () if little else funnels(points):
        chosen = some(_FAR)
        place = generator.integers(COPIES, size=len(chosen))
        times = np.arange(COPIES) - place[:, None]
        moved, log_volume = funnel.copies(chosen, times)
        yield Copies(f"funnel {names[funnel.scale]}", moved, log_volume * times, place)
    images = list(itertools.islice(symmetries(frame, names, generator), 2 if little else None))
    each = max(_SYMMETRIC, _ALL_SYMMETRIC // len(images))
    for name, order, image in images:
        yield twins(name, some(each, 40), order, image, generator)


def asked_again(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    first: Sequence[OrbitTest],
    seed: int = 0,
) -> list[OrbitTest]:
    """The lines on which ranks were least uniform, by all draws that were not asked there.

    Of many dimensions one may be off by a little: a few draws on each line do not tell that, among
    so many lines, and all draws on all lines would take long. For exact draws the first ones say
    nothing about the others.
    """
    generator = np.random.default_rng([seed, len(points)])
    lines = _short_lines(frame, names, np.arange(frame.dim), alone=True)
    rest = points[_first_look(density, frame.dim) :][: density.share_of(_FAR)]
    # By two moments alone: among more looks at so few draws chance would choose.
    suspicious = sorted(
        (-_largest_moment(test.ranks), test.name) for test in first if test.name in lines
    )
    if len(rest) < _FEWEST_AGAIN:
        return []
    found = []
    for _, name in suspicious[:_AGAIN]:
        ranks, own = _ranks(density, shifts(name, rest, lines[name], generator), generator)
        found.append(OrbitTest(name, ranks, uniform_p_value(ranks, own)))
    return found


def _first_look(density: HostDensity, dim: int) -> int:
    return density.share_of(_LINES_ALONE // dim, 60)


def _short_lines(
    frame: Frame, names: Sequence[str], coordinates: np.ndarray, alone: bool
) -> dict[str, np.ndarray]:
    """Steps along coordinates, each as wide as it is given all others; and along main axes, where
    there are no scores to see what no coordinate shows."""
    eye = np.eye(frame.dim)
    found = {
        f"line {names[i]}": _LINE_STEP * frame.conditional[i] * eye[i] for i in coordinates.tolist()
    }
    if alone and frame.dim > 1:
        axes = np.linalg.svd(frame.factor)[2][: len(coordinates)]
        steps = _LINE_STEP * frame.directions(axes)
        found |= {f"axis {number}": step for number, step in enumerate(steps)}
    return found
