"""A mixture in coordinates in which the funnels and bends of the target are straight.

Where no mixture of Gaussians fits, or one that fits may end in a neck, a cloud of particles shows
how the target bends (`diagnostics.straightening`), and the search begins again where it does not.
"""

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.effort import FRUGAL
from salmc.answers.mixture.host_moves import Moves
from salmc.answers.mixture.searching import adapted, is_usable, looks_for_bends
from salmc.bounds import Unbounded
from salmc.diagnostics.straightening.search import find_straight
from salmc.movers.funnels import MOST_TURNS
from salmc.programs import on_device
from salmc.progress import AbstractReporter
from salmc.straight import Straight
from salmc.target import AbstractTarget

_MOST_STRAIGHTENED = 3
_SHOWN = 2048
"""Draws of the mixture, in which a bend shows."""

_FEW_TURNS = 3
"""Through funnels, where evaluations are dear; and where a mixture fits there its draws will do."""

_NEIGHBOURS, _CLOUD = 12, 0.01
"""Draws that are linked to each; and the share of all draws that makes a cloud of its own."""


def straightened(found: Adaptation, seed: int, report: AbstractReporter) -> tuple[Adaptation, int]:
    """A mixture in coordinates in which funnels and bends are straight, if that is better; and how
    many gradients it took."""
    evaluator, effort, plain, first = found.evaluator, found.effort, found.evaluator.target, found
    gradients = 0
    for _ in range(_MOST_STRAIGHTENED):
        if not (found.patient and _may_straighten(found)):
            break
        followers, straight = _followers(found)
        if straight is None:
            break
        before, last = evaluator.target, found
        evaluator.target = Unbounded.with_straight(plain, straight)
        known = np.asarray(straight.inward(on_device(followers)), np.float64)
        found, more = adapted(evaluator, seed, effort, report, known)
        gradients += more
        if is_usable(last) and not (is_usable(found) and _gains(found, last, before)):
            evaluator.target, found = before, last
            break
        if not is_usable(found) and found.efficiency < last.efficiency:
            break  # what was straightened wrongly would be again
    if not is_usable(found) and first.efficiency > found.efficiency:
        evaluator.target, found = plain, first  # modes of different widths look like a funnel
    if not found.settled and found.leaves is not None:
        found.leaves = None
        found.settle()  # repairs that were put off
    return found, gradients


def _gains(found: Adaptation, last: Adaptation, before: AbstractTarget) -> bool:
    """Whether a mixture in straight coordinates fits better than the last, in coordinates of
    `before`, or has what the last lacks: tails of a power law widen as a funnel does, but a mixture
    has all of them."""
    if found.efficiency > last.efficiency:
        return True
    evaluator, straightened = found.evaluator, found.evaluator.target
    rows = found.archive.resampled(found.generator, found.effort.particles)
    drawn = found.archive.points[rows], found.archive.values[rows]
    points, _ = straightened.outward(*map(on_device, drawn))
    evaluator.target = before
    cloud = evaluator.rounded(np.asarray(before.inward(points), np.float64))
    values = evaluator(cloud)
    evaluator.target = straightened
    assert last.mixture is not None
    return not last.draws_enough(last.mixture, cloud, values)


def _may_straighten(found: Adaptation) -> bool:
    """Where a mixture does not fit, or may end in a neck, and there is no budget."""
    if found.mixture is None or not looks_for_bends(found.evaluator):
        return False
    if not is_usable(found):
        return True
    cloud = found.archive.points[found.archive.resampled(found.generator, _SHOWN)]
    # What several modes look like together is no bend. By values alone climbs end where a ridge
    # bends, too, and look like modes.
    differentiable = found.evaluator.target.differentiable
    one = found.one_mode or (not differentiable and not lie_apart(cloud))
    return one and find_straight(cloud) is not None


def lie_apart(cloud: np.ndarray) -> bool:
    """Whether draws fall into separate clouds, when each is linked to its nearest neighbours."""
    points = np.unique(cloud / np.std(cloud, axis=0), axis=0)
    count, near = len(points), min(_NEIGHBOURS + 1, len(points))
    neighbours = cKDTree(points).query(points, near)[1].ravel()
    links = (np.ones(count * near), (np.repeat(np.arange(count), near), neighbours))
    _, labels = connected_components(coo_matrix(links, shape=(count, count)), directed=False)
    return int(np.sum(np.bincount(labels) > _CLOUD * count)) > 1


def _followers(found: Adaptation) -> tuple[np.ndarray, Straight | None]:
    """Particles that went through funnels, in coordinates that are not straightened; and those in
    which they are straight, if any."""
    rows = found.archive.resampled(found.generator, found.effort.followers)
    points = found.archive.points[rows]
    if found.effort is not FRUGAL:
        points = _through_funnels(found, points, found.archive.values[rows], MOST_TURNS)
    elif not is_usable(found):
        points = _through_funnels(found, points, found.archive.values[rows], _FEW_TURNS)
    target = found.evaluator.target
    before = target.straight if isinstance(target, Unbounded) else None
    if before is not None:
        # Once more from the beginning: what reaches further shows more exactly how it bends.
        if find_straight(found.generator.permutation(points)) is None:
            return points, None
        points = before.outward_points(points)
    return points, find_straight(found.generator.permutation(points))


def _through_funnels(
    found: Adaptation, points: np.ndarray, values: np.ndarray, turns: int
) -> np.ndarray:
    moves = Moves(found.evaluator, found.generator, found.effort.sweeps)
    return moves.through_funnels(*moves.evolved(points, values), turns)[0]
