"""`sample`: so many effective draws of a target, by one call.

A mixture that adapts to the target comes first (`answers.mixture.answer`): it takes seconds, and
often it is enough. Where it is not, because the target is no mixture of a few Gaussians, chains
follow the gradient, if there is one (`answers.gradient.answer`); and where these do not mix, a
flow is learned for as long as that pays for the draws that are wanted. Chains then run until the
smallest effective sample size, of the bulk and of the tails of each coordinate, is what was asked
for.
"""

import dataclasses
import time
from typing import Any

import jax.numpy as jnp
import numpy as np

from salmc import checks
from salmc.answers.gradient.answer import (
    GradientAnswer,
    can_begin,
    can_follow,
    gradient_answer,
    must_follow,
)
from salmc.answers.mixture.answer import MixtureAnswer, mixture_answer, taught_answer
from salmc.answers.replicas.answer import replica_answer
from salmc.diagnostics.trial.tails import require_proper
from salmc.learning.fit import accepted_share, choose_mover, default_kernel, fit
from salmc.learning.worth import effective_rate
from salmc.programs import make_room, one_thread
from salmc.progress import AbstractReporter, PartReporter, reporter
from salmc.request.rounds import SLOW, STUCK, draw_rounds, smallest_ess
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget

_LOOKED_FROM = 256
"""Points of a first answer from which to look whether the density falls far out."""

_SEARCH_SHARE = 0.6
"""Of a budget, that the search may take."""

_MOST_TAUGHT = 4
"""How often chains that stick teach their mixture, before a flow is learned."""

_NO_ANSWER = MixtureAnswer(None, 0.0, False, {"points": 0})


@one_thread
def sample(
    target: AbstractTarget,
    effective: int = 10_000,
    *,
    evaluations: int | None = None,
    chains: int = 32,
    seed: int = 0,
    progress: bool | AbstractReporter = True,
) -> Draws:
    """Draw from a target until there are as many effective draws as asked for.

    Args:
        target: what to sample from: `salmc.Target(log_density, dim=…)`.
        effective: the smallest effective sample size to reach, of the bulk and of the tails of
            every coordinate.
        evaluations: of the log density, at most; never exceeded. What was found within it is
            returned, and a warning says what is missing.
        chains: how many, all at once.
        seed: of all of it.
        progress: True for a bar, False for silence, or a reporter.

    Returns:
        Exact draws. `draws.sampler` made them, and may be saved, drawn from again or improved;
        `draws.settings["evaluations"]` says what they cost, for targets whose cost is counted.

    Raises:
        TargetError: if the density cannot be used.

    Example:
        >>> import salmc
        >>> target = salmc.Target(lambda x: -0.5 * (x**2).sum(), dim=2)
        >>> draws = salmc.sample(target, effective=1000, progress=False)
        >>> draws.positions.shape[::2]
        (32, 2)
    """
    if not isinstance(target, AbstractTarget):
        checks.fail("target", "a target, such as salmc.Target(log_density, dim=…)", target)
    checks.integer("effective", effective, 1)
    checks.integer("chains", chains, 1)
    checks.integer("seed", seed, 0)
    if evaluations is not None:
        checks.integer("evaluations", evaluations, 1)
    make_room()
    began = time.perf_counter()
    with reporter(progress) as whole:
        report = PartReporter(whole)
        limit = None if evaluations is None else int(_SEARCH_SHARE * evaluations)
        answer, gradient = _searched(target, seed, limit, report)
        # Of several modes that a mixture does not fit, some may be none.
        apart = answer.countless or (answer.several and answer.usable)
        follows = gradient is None and limit is None and can_follow(target) and not apart
        if gradient is not None and gradient.mixed:
            sampler, rate = gradient.sampler, gradient.rate
        else:
            asked = (target, effective, seed, report, follows)
            sampler, rate = _chosen(answer, gradient, evaluations, *asked)
        searched = time.perf_counter() - began
        spent = answer.evaluations["points"] if evaluations is not None else 0
        left = None if evaluations is None else evaluations - spent
        first = left is None and sampler is answer.sampler
        dear = not target.differentiable
        worst = 0.0 if not first else SLOW if follows or dear else STUCK
        draws, used = draw_rounds(sampler, effective, rate, chains, seed, left, report, worst)
        for _ in range(_MOST_TAUGHT if first and dear else 0):
            if not _is_stuck(draws, effective, SLOW):
                break
            answer = taught_answer(answer, draws.positions, seed)
            if answer.sampler is None:
                break
            sampler, rate = answer.sampler, effective_rate(answer.efficiency)
            # Chains that found what the mixture lacked are the only ones that know how heavy it is.
            last = draws.positions[:, -1]
            wanted = (sampler, effective, rate, chains, seed, None, report, worst)
            draws, more = draw_rounds(*wanted, last)
            used += more
        if first and _is_stuck(draws, effective, worst):
            sampler, rate = _instead(draws, answer, target, effective, seed, report, follows)
            searched = time.perf_counter() - began
            draws, more = draw_rounds(sampler, effective, rate, chains, seed, left, report)
            used += more
    counted: dict[str, int] = {}
    if answer.sampler is not None and sampler.kernel is answer.sampler.kernel:
        counted = {**answer.evaluations, "points": answer.evaluations["points"] + used}
    settings = {
        **draws.settings,
        "seed": seed,
        "effective": effective,
        "search_seconds": round(searched, 2),
        **({"evaluations": counted} if counted else {}),
    }
    return dataclasses.replace(draws, settings=settings, sampler=sampler)


def _searched(
    target: AbstractTarget, seed: int, limit: int | None, report: AbstractReporter
) -> tuple[MixtureAnswer, GradientAnswer | None]:
    """A mixture, and chains along the gradient if they were tried; where these mix, no mixture.

    Chains come first where a mixture would be tried in vain, and second where it does not settle.
    Only where they do not mix is the mixture taken as far as it goes.
    """
    if limit is not None or not can_follow(target):
        return mixture_answer(target, seed, evaluations=limit, report=report), None
    if must_follow(target, seed):
        gradient = gradient_answer(target, None, seed, report)
    else:
        answer = mixture_answer(target, seed, report=report, patient=False)
        if answer.usable or answer.patient:
            return answer, None
        gradient = _followed(answer, target, seed, report)
    if gradient.mixed:
        return _NO_ANSWER, gradient
    return mixture_answer(target, seed, report=report), gradient


def _chosen(
    answer: MixtureAnswer,
    gradient: GradientAnswer | None,
    evaluations: int | None,
    target: AbstractTarget,
    effective: int,
    seed: int,
    report: AbstractReporter,
    follows: bool,
) -> tuple[Sampler, float]:
    """The first answer where it is enough, or all that a budget allows; else what is learned.

    Returns:
        The sampler, and its effective draws for each draw, as far as is known.
    """
    if answer.usable and answer.sampler is not None:
        return answer.sampler, effective_rate(answer.efficiency)
    if evaluations is None:
        return _learned(answer, gradient, target, effective, seed, report, follows)
    if answer.sampler is None:
        checks.fail(
            "evaluations",
            f"enough to find the target: {answer.evaluations['points']} were spent, and there was "
            "nothing to draw from yet. Allow more, or tell where to look, by Target(start=…)",
            evaluations,
        )
    told = (
        f"Within {evaluations} evaluations it was not settled that the mixture fits the target "
        f"({answer.efficiency:.2f} effective draws for each draw, as far as it saw). "
        "Allow more evaluations.",
    )
    warned = dataclasses.replace(answer.sampler, warnings=(*answer.sampler.warnings, *told))
    return warned, effective_rate(answer.efficiency)


def _learned(
    answer: MixtureAnswer,
    gradient: GradientAnswer | None,
    target: AbstractTarget,
    effective: int,
    seed: int,
    report: AbstractReporter,
    follows: bool,
) -> tuple[Sampler, float]:
    """Chains along the gradient where they mix, else replicas where these do, else a flow.

    Raises:
        TargetError: where there is no distribution to learn: that takes a second to see, and what
            follows would look for it for minutes.
    """
    if follows and (answer.sampler is not None or can_begin(target, seed)):
        gradient = _followed(answer, target, seed, report)
        if gradient.mixed:
            return gradient.sampler, gradient.rate
    else:
        require_proper(target.unbounded, _seen(answer))
    if can_follow(target):
        # Chains that did not mix may have found coordinates that suit each of the modes.
        known = None if gradient is None else gradient.sampler.target
        tempered = replica_answer(target.unbounded if known is None else known, seed, report)
        if tempered is not None:
            return tempered.sampler, tempered.rate
    mover = choose_mover(target, seed, follows=False)  # such chains do not mix, or cannot be had
    # A mixture has been tried.
    asked: dict[str, Any] = {"kernel": default_kernel("sal-mc"), "effective": effective}
    sampler = fit(target, mover=mover, seed=seed, progress=report, **asked)
    return sampler, effective_rate(accepted_share(sampler))


def _instead(
    draws: Draws,
    answer: MixtureAnswer,
    target: AbstractTarget,
    effective: int,
    seed: int,
    report: AbstractReporter,
    follows: bool,
) -> tuple[Sampler, float]:
    """In the place of a mixture whose chains hardly move: p/q of its own draws saw none of what
    they came to. Where they are only slow, it stays unless chains along the gradient mix."""
    found = _followed(answer, target, seed, report) if follows else None
    if found is not None and found.mixed:
        return found.sampler, found.rate
    if answer.sampler is None or _is_stuck(draws, effective, STUCK):
        return _learned(answer, found, target, effective, seed, report, follows=False)
    return answer.sampler, smallest_ess(draws.positions) / draws.positions[..., 0].size


def _followed(
    answer: MixtureAnswer, target: AbstractTarget, seed: int, report: AbstractReporter
) -> GradientAnswer:
    """Chains along the gradient, from where a mixture found the target.

    Raises:
        TargetError: where there is no distribution.
    """
    require_proper(target.unbounded, _seen(answer))
    return gradient_answer(target, answer.sampler, seed, report)


def _seen(answer: MixtureAnswer) -> np.ndarray | None:
    """Where the first answer found the target, in coordinates without bounds."""
    if answer.sampler is None or answer.sampler.target is None:
        return None
    inner = answer.sampler.target.outer.unbounded
    return np.asarray(inner.inward(jnp.asarray(answer.sampler.pool[:_LOOKED_FROM], dtype=float)))


def _is_stuck(draws: Draws, effective: int, worst: float) -> bool:
    """Whether chains were given up, and there are too few effective draws."""
    found, count = smallest_ess(draws.positions), draws.positions[..., 0].size
    return found < effective and found < worst * count
