"""A sampler in seconds: a mixture that adapts to the target, bound as a kernel.

Nothing is trained by gradients of a network, and next to nothing compiled: the density itself, and
where there is a gradient a climb to the modes. Where a mixture does not fit because of funnels, it
is tried again in coordinates in which they are straight. `usable` says whether that is enough for
the target at hand; where it is not, `fit` learns a flow.
"""

from typing import NamedTuple

import numpy as np

from salmc import checks
from salmc.answers.hunted import MOST_DIMENSIONS, images_of, missed_modes
from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.binding import mixture_sampler
from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.effort import FRUGAL, Effort, effort_for
from salmc.answers.mixture.evaluator import Evaluator
from salmc.answers.mixture.host_moves import Moves
from salmc.answers.mixture.laplace import laplace_mixture
from salmc.answers.mixture.support import edges_of, support_of
from salmc.answers.mixture.valued_climbs import find_valued_modes
from salmc.answers.mixture.weighted_draws import Archive
from salmc.bounds import Bounds, Unbounded
from salmc.diagnostics.straightening.search import find_straight
from salmc.movers.base import check_at
from salmc.movers.climb import can_climb, find_modes
from salmc.movers.cover import first_location
from salmc.movers.funnels import MOST_TURNS
from salmc.programs import on_device
from salmc.progress import AbstractReporter, SilentReporter
from salmc.sampling.sampler import Sampler
from salmc.sizes import MANY_DATA, MANY_DIMENSIONS
from salmc.straight import Straight
from salmc.target import AbstractTarget

_USABLE = 0.25
_USABLE_OF_MANY = 0.1
"""Effective draws for each draw, at least; what has fewer is no mixture of Gaussians. Less will do
between several modes, as nothing but a flow would come from one to another."""

_SEVERAL_DIMENSIONS = 8
"""Below which repairs and bends cost little."""

_REPEATS, _FEW_REPEATS = 24, 3
"""Climbs in a row that find nothing new, after which there is hardly a mode left: of one that a
sixth of the starts belong to, a chance of 1 in 80. Fewer where a gradient is dear."""

_MOST_STRAIGHTENED = 3
_FOLLOWERS = 2048
"""Particles that go through funnels."""


class MixtureAnswer(NamedTuple):
    """A sampler, and what it is worth.

    Attributes:
        sampler: exact; None where no mixture was found.
        efficiency: its effective draws for each draw.
        usable: whether that is enough, and exact local moves found nothing that it lacks.
        evaluations: what it cost, by kind.
        patient: whether all was tried that could make it usable.
        several: whether several modes are known, between which no chain along the gradient goes;
            climbs that end in a neck look like modes, too.
        countless: whether there are more of them than any mixture has.
    """

    sampler: Sampler | None
    efficiency: float
    usable: bool
    evaluations: dict[str, int]
    patient: bool = True
    several: bool = False
    countless: bool = False


def mixture_answer(
    target: AbstractTarget,
    seed: int = 0,
    *,
    evaluations: int | None = None,
    report: AbstractReporter | None = None,
    patient: bool = True,
) -> MixtureAnswer:
    """Adapt a mixture to a target.

    Args:
        target: what to sample; only values and, to find modes, gradients are used.
        seed: the same seed gives the same sampler.
        evaluations: of the density, at most; gradients are not counted among them.
        report: told of each round.
        patient: if not, a mixture of one mode in more than a few dimensions that does not settle
            is left at that: no repairs, and nothing straightened.

    Raises:
        TargetError: if the density cannot be used at all.
    """
    checks.integer("seed", seed, 0)
    report = SilentReporter() if report is None else report
    evaluator = Evaluator(target.unbounded, evaluations)
    effort = effort_for(evaluator.target, evaluations)
    patient = patient or target.dim < _SEVERAL_DIMENSIONS
    found, gradients = _adapted(evaluator, seed, effort, report, patient=patient)
    edges = None if found.mixture is None else edges_of(found)
    if edges is not None and evaluator.target.outer is evaluator.target:
        inside = Bounds(*(on_device(side) for side in edges))
        evaluator.target = Unbounded(evaluator.target, inside)
        found, more = _adapted(evaluator, seed, effort, report, patient=patient)
        gradients += more
    with np.errstate(all="ignore"):
        found, more = _straightened(found, seed, report)
    gradients += more
    counts = {
        "points": evaluator.points,
        "batches": evaluator.batches,
        "gradients": gradients,
    }
    modes = (found.patient, not found.one_mode, found.countless)
    if found.mixture is None:
        return MixtureAnswer(None, 0.0, False, counts, *modes)
    sampler = mixture_sampler(evaluator.target, found, seed, counts)
    told = (_is_usable(found), counts, *modes)
    return MixtureAnswer(sampler, found.efficiency, *told)


def _is_usable(found: Adaptation) -> bool:
    return found.settled and found.efficiency >= (_USABLE if found.one_mode else _USABLE_OF_MANY)


def _straightened(found: Adaptation, seed: int, report: AbstractReporter) -> tuple[Adaptation, int]:
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
        found, more = _adapted(evaluator, seed, effort, report, known)
        gradients += more
        if _is_usable(last) and not (_is_usable(found) and _gains(found, last, before)):
            evaluator.target, found = before, last
            break
        if not _is_usable(found) and found.efficiency < last.efficiency:
            break  # what was straightened wrongly would be again
    if not _is_usable(found) and first.efficiency > found.efficiency:
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
    """Where a mixture does not fit, or may end in a neck, and evaluations are not counted."""
    if found.mixture is None or not _looks_for_bends(found.evaluator, found.effort):
        return False
    if _is_usable(found) and not found.one_mode:
        return False  # what several modes look like together is no bend
    rows = found.archive.resampled(found.generator, _FOLLOWERS)
    return not _is_usable(found) or find_straight(found.archive.points[rows]) is not None


def _looks_for_bends(evaluator: Evaluator, effort: Effort) -> bool:
    few = evaluator.target.dim <= MANY_DIMENSIONS
    return effort is not FRUGAL and evaluator.limit is None and few


def _followers(found: Adaptation) -> tuple[np.ndarray, Straight | None]:
    """Particles that went through funnels, in coordinates that are not straightened; and those in
    which they are straight, if any."""
    rows = found.archive.resampled(found.generator, _FOLLOWERS)
    moves = Moves(found.evaluator, found.generator, found.effort.sweeps)
    cloud = moves.evolved(found.archive.points[rows], found.archive.values[rows])
    points, _ = moves.through_funnels(*cloud, MOST_TURNS)
    target = found.evaluator.target
    before = target.straight if isinstance(target, Unbounded) else None
    if before is not None:
        # Once more from the beginning: what reaches further shows more exactly how it bends.
        if find_straight(found.generator.permutation(points)) is None:
            return points, None
        points = before.outward_points(points)
    return points, find_straight(found.generator.permutation(points))


def _adapted(
    evaluator: Evaluator,
    seed: int,
    effort: Effort,
    report: AbstractReporter,
    known: np.ndarray | None = None,
    *,
    patient: bool = True,
) -> tuple[Adaptation, int]:
    """The mixture, from a cloud that is known or from nothing; and how many gradients it took."""
    target, gradients = evaluator.target, 0
    climbs = can_climb(target)
    report.start(f"searching {target.name}", effort.rounds)

    def modes(starts: np.ndarray) -> Mixture | None:
        nonlocal gradients
        if climbs:
            repeats = _FEW_REPEATS if effort is FRUGAL else _REPEATS
            found = find_modes(target, on_device(starts), repeats)
        else:
            found = find_valued_modes(evaluator, starts)
            if len(found.positions) == 1:
                return None  # draws find it by themselves, with its tails
        gradients += found.gradients
        adaptation.tops = found.tops
        # Chains along the gradient do not come from one mode to another: a mixture does.
        adaptation.patient |= len(found.positions) > 1
        return laplace_mixture(found)

    def scout(cloud: np.ndarray) -> Mixture | None:
        found = laplace_mixture(find_valued_modes(evaluator, images_of(target, cloud, seed)))
        known = adaptation.mixture if adaptation.modes is None else adaptation.modes
        return found if found is None or known is None else found.apart_from(known)

    def hunt(cloud: np.ndarray) -> Mixture | None:
        if not target.differentiable:
            return scout(cloud)
        if target.dim > MOST_DIMENSIONS and adaptation.one_mode:
            return None
        missed = missed_modes(target, cloud, seed)
        evaluator.points += missed.evaluations
        if not len(missed.shares):
            return None
        weights = 0.5 * missed.shares / np.sum(missed.shares) + 0.5 / len(missed.shares)
        return Mixture.of_gaussians(weights, missed.positions, missed.factors)

    rounds = 0

    def watch(efficiency: float) -> None:
        nonlocal rounds
        rounds += 1
        report.advance(1, efficiency=efficiency)

    first = first_location(target)
    mean, factor = (np.asarray(a, np.float64) for a in (first.mean, first.cholesky))
    generator = np.random.default_rng(seed)
    if evaluator.left > effort.each:
        start = mean + generator.standard_normal((8, target.dim)) @ factor.T
        evaluator.points += len(start)
        check_at(target, on_device(start), required=False)
    adaptation = Adaptation(
        evaluator,
        generator,
        effort,
        Archive.empty(target.dim),
        patient=patient,
        find_modes=modes if climbs or not target.differentiable else None,
        # A hunt takes as many evaluations as it takes time: none within a budget.
        hunt=hunt if evaluator.limit is None and target.size <= MANY_DATA else None,
        leaves=_bends if _looks_for_bends(evaluator, effort) else None,
        watch=watch,
    )
    # Weights and places may leave the range of numbers on the way: that is looked for, and where
    # it happens the mixture is none, which `usable` says. NumPy's own words would help nobody.
    with np.errstate(all="ignore"):
        adaptation.run(mean, factor, known)
        if known is None and not np.any(adaptation.archive.values > -np.inf):
            support = support_of(evaluator, seed)
            if support is not None:
                adaptation.run(mean, factor, support)
    report.advance(max(0, effort.rounds - rounds), efficiency=adaptation.efficiency)
    return adaptation, gradients


def _bends(cloud: np.ndarray) -> bool:
    return find_straight(cloud) is not None
