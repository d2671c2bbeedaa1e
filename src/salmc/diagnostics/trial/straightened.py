"""Tests in coordinates in which the funnels and bends of the draws are straight.

There a step along a coordinate follows the neck or the ridge. Asked are the coordinates that are
the same in both, so that what is found has the place that it seems to have, and that others go
with: along any other one a step is what it was before. Both ends of each (`brinks`); and a stretch
of each draw: copies along it from a ten thousandth of its distance from the middle to ten thousand
times it, all other coordinates in their places on the ridge. Their ranks are uniform (`orbits`),
and no fewer draws lie beyond either end, or both, than the copies of all the others say: a proposal
that never comes to the last hundredth of a bent ridge leaves ends that nothing near them tells of,
as few draws are near.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy import stats

from salmc.bounds import Unbounded
from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.straightening.search import find_straight
from salmc.diagnostics.trial.brinks import BEYOND, Brink, brinks
from salmc.diagnostics.trial.copies import stretches
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import LITTLE, HostDensity
from salmc.diagnostics.trial.orbits import OrbitTest, ranks_among, uniform_p_value, weights_of

_FEWEST = 100
_GROWTH, _COPIES = 1.5, 24
_POINTS, _EACH, _MOST = 12_000, 3000, 6
"""Draws that are stretched along all coordinates together, and along each at least; and how many
coordinates."""


class Straightened(NamedTuple):
    """What was asked in straight coordinates."""

    ends: list[Brink]
    stretches: list[OrbitTest]


def straight_tests(
    density: HostDensity, points: Cloud, names: Sequence[str], seed: int
) -> Straightened:
    """Ends and stretches of what governs others; none where draws show nothing to make straight."""
    straight = find_straight(points)
    if straight is None:
        return Straightened([], [])
    inside = straight.inward(points)
    kept = straight.outward(jnp.asarray(inside, dtype=float))[2]
    cloud = inside[np.asarray(kept)]
    if len(cloud) < _FEWEST:
        return Straightened([], [])
    target = Unbounded.with_straight(density.target, straight)
    there = type(density)(target, cloud[0], density.effort)
    asked = np.flatnonzero(straight.governs & ~straight.moves).tolist()
    found = Straightened(brinks(there, cloud, Frame.of(cloud), names, seed, asked), [])
    generator = np.random.default_rng([seed, len(cloud)])
    asked = asked[:_MOST] if density.effort >= LITTLE else []
    some = cloud[: there.share_of(max(_EACH, _POINTS // max(len(asked), 1)), 60)]
    for i in asked:
        ends, test = _stretched(there, some, i, names[i], generator)
        found.ends.extend(ends)
        found.stretches.extend(test)
    density.evaluations += there.evaluations
    return found


def _stretched(
    density: HostDensity, points: Cloud, i: int, name: str, generator: np.random.Generator
) -> tuple[list[Brink], list[OrbitTest]]:
    """Both ends, and the ranks; each half of the draws says what is asked of the other."""
    half = len(points) // 2
    halves = points[:half], points[half : 2 * half]
    ranks, draws, ends = [], [], np.zeros((2, 3))
    for tested, setting in (halves, halves[::-1]):
        middle = float(np.median(setting[:, i]))
        copies = stretches(name, tested, i, middle, _GROWTH, _COPIES, generator)
        weights, usable = weights_of(density, copies)
        weights, place = weights[usable], copies.place[usable]
        ranks.append(ranks_among(weights, place, generator))
        draws.append(copies.points[usable, place])
        places, own = copies.points[usable][:, :, i], draws[-1][:, i]
        for number, sign in enumerate((1.0, -1.0)):
            brink = np.sort(sign * setting[:, i])[min(BEYOND, half - 1)]
            belong = np.sum(np.where(sign * places < brink, weights, 0.0))
            ends[number] += belong, np.sum(sign * own < brink), sign * brink / 2.0
    lower, upper = ends.tolist()
    together = [sum(pair) for pair in zip(lower, upper, strict=True)]
    found = [
        Brink(name, low, at, int(count), belong, float(stats.poisson.cdf(count, belong)), both)
        for low, both, (belong, count, at) in (
            (True, False, lower),
            (False, False, upper),
            (True, True, [*together[:2], lower[2]]),
        )
    ]
    all_ranks = np.concatenate(ranks)
    if len(all_ranks) < 20:
        return found, []
    p_value = uniform_p_value(all_ranks, np.concatenate(draws))
    return found, [OrbitTest(f"stretch {name}", all_ranks, p_value)]
