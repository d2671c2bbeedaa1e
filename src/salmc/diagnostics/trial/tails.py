"""Does the density integrate? Far out it must fall faster than a power of the distance.

In d dimensions ∫ p is infinite if p falls more slowly than r^{−d} along a share of all rays, and
if p falls more slowly than 1/t along lines in one direction from a share of all places, as it does
where a parameter is not identified and has a flat prior. Both are measured between distances 10⁵
and 10⁶ times the width of the draws, or, where numbers overflow there, as far out as the density
can still be computed.

Floors so low that they hold no mass worth speaking of within that distance are let pass: e^−10¹⁰
as a floor is a way to write zero.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.errors import TargetError
from salmc.target import AbstractTarget

_DISTANCES = np.array([1e2, 1e3, 1e4, 1e5, 1e6])
_MARGIN = 0.03
"""How much faster than the power the density has to fall: tails of r^{−d − 0.03} are left."""

_AROUND, _FURTHER = 2.0, 1e6
"""Width of the cloud from which a density is looked at of which nothing is known; and so many times
as far out as from draws, as the target may lie there: towards it a density grows."""

_RAYS, _LINES, _FEW = 64, 12, 6
_RAY_SHARE, _LINE_SHARE = 0.1, 0.5
_HARMLESS = -60.0
"""Log of the mass at a distance, beside the draws' own, below which a floor is let pass. The
smallest number of single precision is e^−87, and a simplex of NumPyro's is cut there, far out in
one of its coordinates: times the largest distance, e^−73, and p is some units higher there."""

_ON_THE_WAY, _FALLEN = 24, 10.0
"""Places on the way to one where log p is +∞, and how far below the draws it has fallen there."""


class Tails(NamedTuple):
    """What happens far out."""

    improper: str
    """"": it integrates; "everywhere", or the name of a direction in which it does not."""
    grows: bool
    """Whether it even grows: a wrong sign, most often."""
    fall: float
    """Of log p for each unit of log r, in the worst direction; −inf where p ends."""


def far_out(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    seed: int = 0,
) -> Tails:
    """Look along rays from the centre, and along lines from some draws."""
    generator = np.random.default_rng(seed)
    dim = frame.dim
    # Draws that collapsed into one place have no width: far from them is not far out.
    frame = frame._replace(scale=np.maximum(frame.scale, 1.0 + np.abs(frame.centre)))
    directions = generator.normal(size=(_RAYS, dim))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True) / np.sqrt(dim)
    rays = frame.directions(directions)
    level = float(np.median(density.values(points[:256])))
    falls, grows = _falls(density, np.broadcast_to(frame.centre, rays.shape), rays, dim, level)
    if np.mean(falls > -dim - _MARGIN) > _RAY_SHARE:
        return Tails("everywhere", bool(np.mean(grows) > 0.5 * _RAY_SHARE), float(np.max(falls)))
    starts = points[: min(_LINES, len(points))]
    worst = float(np.max(falls))
    for name, direction in _directions(density, points, frame, names, generator):
        for sign in (1.0, -1.0):
            step = np.broadcast_to(sign * direction, starts.shape)
            falls, grows = _falls(density, starts, step, 1, level)
            if np.mean(falls > -1.0 - _MARGIN) >= _LINE_SHARE:
                return Tails(name, bool(np.mean(grows) > 0.5 * _LINE_SHARE), float(np.max(falls)))
            worst = max(worst, float(np.median(falls)))
    return Tails("", False, worst)


def does_not_integrate(target: AbstractTarget, points: Cloud | None = None) -> str | None:
    """Why a density has no distribution, in words; None if it has one, as far as is seen.

    Args:
        target: in coordinates without bounds.
        points: (n, dim), what was found of it so far, in these; None for a cloud about the origin.
    """
    if points is None:
        points = _AROUND * np.random.default_rng(0).normal(size=(64, target.dim))
    points = np.asarray(points, np.float64)
    density = HostDensity(target, points[0])
    points = points[np.isfinite(density.values(points))]
    if len(points) < 8:
        return None
    frame = Frame.of(points)
    wide = frame._replace(scale=_FURTHER * np.maximum(frame.scale, 1.0 + np.abs(frame.centre)))
    tails = far_out(density, points, wide, target.names)
    if not tails.improper:
        return None
    how = "grows" if tails.grows else "hardly falls"
    where = "in all directions" if tails.improper == "everywhere" else tails.improper
    return f"This density does not integrate: far out it {how} {where}."


def require_proper(target: AbstractTarget, points: Cloud | None = None) -> None:
    """Refuse a density that does not integrate, as far as is seen from these points.

    Raises:
        TargetError: in one sentence.
    """
    improper = does_not_integrate(target, points)
    if improper is not None:
        raise TargetError(
            f"{improper} Check the sign of the log density of `{target.name}`, and give every "
            "parameter a proper prior, or bounds."
        )


def _directions(
    density: HostDensity,
    points: Cloud,
    frame: Frame,
    names: Sequence[str],
    generator: np.random.Generator,
) -> "list[tuple[str, Float[np.ndarray, ' dim']]]":
    """Coordinates, main axes of the draws, and the direction in which scores are smallest."""
    dim = frame.dim
    count = dim if density.effort > 0.5 else min(dim, 4)
    chosen = range(dim) if dim <= count else sorted(generator.choice(dim, count, replace=False))
    found = [(f"along {names[i]}", frame.scale[i] * np.eye(dim)[i]) for i in chosen]
    if dim == 1:
        return found
    if dim <= _FEW:
        # What is not identified is mostly a sum or a difference, and has to be met exactly.
        for (i, j), sign in itertools.product(itertools.combinations(range(dim), 2), (1.0, -1.0)):
            direction = max(frame.scale[i], frame.scale[j]) * (
                np.eye(dim)[i] + sign * np.eye(dim)[j]
            )
            found.append((_combination(direction, names), direction))
    axes = np.linalg.svd(frame.factor)
    found.append((_combination(axes[0][:, 0], names), axes[1][0] * frame.scale * axes[0][:, 0]))
    if density.target.differentiable:
        scores = density.gradients(points[:256]) * frame.scale
        scores = scores[np.all(np.isfinite(scores), axis=1)]
        # A few scores must not decide what the smallest ones are.
        if len(scores) > dim:
            scores = np.clip(scores, *np.quantile(scores, [0.05, 0.95], axis=0))
            flat = np.linalg.svd(scores, full_matrices=False)[2][-1]
            found.append((_combination(flat, names), frame.scale * flat))
    return found


def _combination(direction: np.ndarray, names: Sequence[str]) -> str:
    """The largest parts of a direction, in words: "along x0 − x1"."""
    largest = np.argsort(-np.abs(direction))[:3]
    kept = [i for i in largest if abs(direction[i]) > 0.3 * abs(direction[largest[0]])]
    sign = np.sign(direction[kept[0]])
    words = "".join(
        f" {'+' if direction[i] * sign > 0 else '−'} {names[i]}" for i in kept
    ).removeprefix(" + ")
    return f"along {words}"


def _falls(
    density: HostDensity, starts: Cloud, steps: Cloud, dim: int, level: float
) -> tuple[Numbers, np.ndarray]:
    """d log p / d log r far out, −inf where p is zero or harmless there; and whether p grows."""
    n, count = len(starts), len(_DISTANCES)
    places = starts[:, None] + _DISTANCES[:, None] * steps[:, None]
    values = density.raw(places.reshape(n * count, -1)).reshape(n, count)
    falls, grows = np.full(n, -np.inf), np.zeros(n, bool)
    for i, row in enumerate(values):
        known = np.flatnonzero(~np.isnan(row) & (row != np.inf))
        if np.any(row == np.inf):
            distance = _DISTANCES[np.argmax(row == np.inf)]
            if _grows_until(density, starts[i], steps[i], float(distance), level):
                falls[i], grows[i] = np.inf, True
            continue
        if len(known) < 2 or known[-1] - known[-2] != 1:
            continue
        last, before = row[known[-1]], row[known[-2]]
        mass = last + dim * np.log(_DISTANCES[known[-1]])
        if last > -np.inf and before > -np.inf and mass > level + _HARMLESS:
            falls[i] = (last - before) / np.log(10.0)
            grows[i] = last > before + 1.0 and last > level + 10.0
    return falls, grows


def _grows_until(
    density: HostDensity, start: Numbers, step: Numbers, distance: float, level: float
) -> bool:
    """Whether log p grows on the way to a place where it is +∞.

    A formula that divides by what is rounded to zero, as correlations of far too different scales
    have it, is +∞ where p has fallen all the way. No p that grows beyond numbers does that: right
    before, it is large.
    """
    distances = np.geomspace(0.1, distance, _ON_THE_WAY)
    row = density.raw(start + distances[:, None] * step)
    before = row[: np.argmax(row == np.inf)] if np.any(row == np.inf) else row
    before = before[~np.isnan(before)]
    if len(before) < 2:
        return True
    return bool(before[-1] > before[-2] or before[-1] > level - _FALLEN)
