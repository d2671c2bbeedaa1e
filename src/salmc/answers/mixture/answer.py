"""A sampler in seconds: a mixture that adapts to the target, bound as a kernel.

Nothing is trained by gradients of a network, and next to nothing compiled: the density itself, and
where there is a gradient a climb to the modes. Where a mixture does not fit because of funnels, it
is tried again in coordinates in which they are straight. `usable` says whether that is enough for
the target at hand; where it is not, `fit` learns a flow.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.binding import mixture_sampler
from salmc.answers.mixture.effort import effort_for
from salmc.answers.mixture.evaluator import Evaluator
from salmc.answers.mixture.searching import adapted, is_usable
from salmc.answers.mixture.straightened import straightened
from salmc.answers.mixture.support import edges_of
from salmc.answers.mixture.taught import teach
from salmc.bounds import Bounds, Unbounded
from salmc.programs import on_device
from salmc.progress import AbstractReporter, SilentReporter
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget

_SEVERAL_DIMENSIONS = 8
"""Below which repairs and bends cost little."""


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
        found: all that the mixture was told, for more rounds; None where there is no mixture.
    """

    sampler: Sampler | None
    efficiency: float
    usable: bool
    evaluations: dict[str, int]
    patient: bool = True
    several: bool = False
    countless: bool = False
    found: Adaptation | None = None


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
    found, gradients = adapted(evaluator, seed, effort, report, patient=patient)
    edges = None if found.mixture is None else edges_of(found)
    if edges is not None and evaluator.target.outer is evaluator.target:
        inside = Bounds(*(on_device(side) for side in edges))
        evaluator.target = Unbounded(evaluator.target, inside)
        found, more = adapted(evaluator, seed, effort, report, patient=patient)
        gradients += more
    with np.errstate(all="ignore"):
        found, more = straightened(found, seed, report)
    return _answer(found, seed, gradients + more)


def taught_answer(
    answer: MixtureAnswer, positions: Float[np.ndarray, "chains draws dim"], seed: int = 0
) -> MixtureAnswer:
    """The mixture, once more, taught by where its chains stayed.

    Args:
        answer: which had a mixture.
        positions: of its chains.
        seed: as before.
    """
    assert answer.found is not None
    teach(answer.found, positions)
    taught = _answer(answer.found, seed, answer.evaluations["gradients"])
    if taught.sampler is None:
        return taught
    # One place where a chain stays for long is worth a local step after each draw.
    return taught._replace(sampler=dataclasses.replace(taught.sampler, local=1))


def _answer(found: Adaptation, seed: int, gradients: int) -> MixtureAnswer:
    evaluator = found.evaluator
    counts = {
        "points": evaluator.points,
        "batches": evaluator.batches,
        "gradients": gradients,
    }
    modes = (found.patient, not found.one_mode, found.countless)
    if found.mixture is None:
        return MixtureAnswer(None, 0.0, False, counts, *modes)
    sampler = mixture_sampler(evaluator.target, found, seed, counts)
    return MixtureAnswer(sampler, found.efficiency, is_usable(found), counts, *modes, found)
