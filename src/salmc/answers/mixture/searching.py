"""The search of a mixture for one target: what it climbs by, what it hunts for, where it begins.

`Adaptation` knows rounds and weights; here it is told how modes of the target at hand are found:
along the gradient, by differences of log p where there is none, and by a hunt once it has settled.
"""

import numpy as np

from salmc.answers.hunted import MOST_DIMENSIONS, images_of, missed_modes
from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.density import Mixture
from salmc.answers.mixture.effort import FRUGAL, Effort
from salmc.answers.mixture.evaluator import Evaluator
from salmc.answers.mixture.laplace import laplace_mixture
from salmc.answers.mixture.support import support_of
from salmc.answers.mixture.valued_climbs import find_valued_modes
from salmc.answers.mixture.weighted_draws import Archive
from salmc.diagnostics.straightening.search import find_straight
from salmc.movers.base import check_at
from salmc.movers.climb import can_climb, find_modes
from salmc.movers.cover import first_location
from salmc.programs import on_device
from salmc.progress import AbstractReporter
from salmc.sizes import MANY_DATA, MANY_DIMENSIONS

_REPEATS, _FEW_REPEATS = 24, 3
"""Climbs in a row that find nothing new, after which there is hardly a mode left: of one that a
sixth of the starts belong to, a chance of 1 in 80. Fewer where a gradient is dear."""


_USABLE = 0.25
_USABLE_OF_MANY = 0.1
"""Effective draws for each draw, at least; what has fewer is no mixture of Gaussians. Less will do
between several modes, as nothing but a flow would come from one to another."""


def is_usable(found: Adaptation) -> bool:
    """Whether a mixture fits, and exact local moves found nothing that it lacks."""
    return found.settled and found.efficiency >= (_USABLE if found.one_mode else _USABLE_OF_MANY)


def looks_for_bends(evaluator: Evaluator) -> bool:
    """Whether coordinates may be straightened: in few dimensions, and not within a budget."""
    return evaluator.limit is None and evaluator.target.dim <= MANY_DIMENSIONS


def adapted(
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
        leaves=_bends if effort is not FRUGAL and looks_for_bends(evaluator) else None,
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
