"""`sample`: so many effective draws of a target, by one call.

A mixture that adapts to the target comes first (`learning.first_answer`): it takes seconds, and
often it is enough. Where it is not, because the target is no mixture of a few Gaussians, chains
follow the gradient, if there is one (`learning.gradient_answer`); and where these do not mix, a
flow is learned for as long as that pays for the draws that are wanted. Chains then run until the
smallest effective sample size, of the bulk and of the tails of each coordinate, is what was asked
for.
"""

import dataclasses
import math
import time
from typing import Any

import numpy as np

from salmc import checks
from salmc.diagnostics.chain_statistics import ess_bulk, ess_tail
from salmc.learning.first_answer import FirstAnswer, first_answer
from salmc.learning.fit import fit
from salmc.learning.gradient_answer import can_follow, gradient_answer, must_follow
from salmc.learning.settings import MANY_DIMENSIONS
from salmc.learning.worth import effective_rate
from salmc.programs import make_room
from salmc.progress import AbstractReporter, PartReporter, reporter
from salmc.sampling.draws import Draws
from salmc.sampling.executor import block_length, group_count
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget

_MOST_ROUNDS = 12
_SPARE, _LITTLE_SPARE = 1.3, 1.1
"""So many times the draws that are still wanted, as rates are estimates; less within a budget."""

_SAME = 3

_GROWTH = 2
_FEWEST, _FEWEST_DEAR = 128, 40
"""Draws of a chain in the first round: fewer tell too little of its autocorrelation. Where each
evaluation counts, as few as tell anything."""

_MOST_NUMBERS = 2**28
"""Positions that are kept in memory, 1 GB of them; statistics of them take some more."""

_STUCK = 0.01
"""Effective draws for each draw of the first answer, below which a flow is learned after all."""

_SEARCH_SHARE = 0.6
"""Of a budget, that the search may take."""


_NO_ANSWER = FirstAnswer(None, 0.0, False, {"points": 0})


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
        gradient, follows = None, False
        if evaluations is None and must_follow(target, seed):
            gradient = gradient_answer(target, None, seed, report)
        if gradient is not None and gradient.mixed:
            answer, sampler, rate = _NO_ANSWER, gradient.sampler, gradient.rate
        else:
            answer = first_answer(target, seed, evaluations=limit, report=report)
            follows = can_follow(target) and gradient is None  # not a second time
            sampler, rate = _chosen(answer, target, effective, evaluations, seed, report, follows)
        searched = time.perf_counter() - began
        spent = answer.evaluations["points"] if evaluations is not None else 0
        left = None if evaluations is None else evaluations - spent
        first = left is None and sampler is answer.sampler
        draws, used = _draw(sampler, effective, rate, chains, seed, left, report, first)
        if first and _is_stuck(draws, effective):
            # p/q of the mixture's own draws saw none of what chains came to: a flow may.
            sampler, rate = _learned(answer, target, effective, seed, report, follows)
            searched = time.perf_counter() - began
            draws, used = _draw(sampler, effective, rate, chains, seed, left, report)
    counted: dict[str, int] = {}
    if sampler is answer.sampler:
        counted = {**answer.evaluations, "points": answer.evaluations["points"] + used}
    settings = {
        **draws.settings,
        "effective": effective,
        "search_seconds": round(searched, 2),
        **({"evaluations": counted} if counted else {}),
    }
    return dataclasses.replace(draws, settings=settings, sampler=sampler)


def _chosen(
    answer: FirstAnswer,
    target: AbstractTarget,
    effective: int,
    evaluations: int | None,
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
        return _learned(answer, target, effective, seed, report, follows)
    if answer.sampler is None:
        checks.fail(
            "evaluations",
            f"enough to find the target: {answer.evaluations['points']} were spent, and the "
            "density was positive nowhere. Tell where to look, by Target(start=…)",
            evaluations,
        )
    told = (
        f"Within {evaluations} evaluations no mixture was found that fits the target: "
        f"{answer.efficiency:.2f} effective draws for each draw, or places that it lacks. Allow "
        "more evaluations.",
    )
    warned = dataclasses.replace(answer.sampler, warnings=(*answer.sampler.warnings, *told))
    return warned, effective_rate(answer.efficiency)


def _learned(
    answer: FirstAnswer,
    target: AbstractTarget,
    effective: int,
    seed: int,
    report: AbstractReporter,
    follows: bool,
) -> tuple[Sampler, float]:
    """Chains along the gradient where they mix, else a flow."""
    if follows and (answer.sampler is not None or target.dim > MANY_DIMENSIONS):
        found = gradient_answer(target, answer.sampler, seed, report)
        if found.mixed:
            return found.sampler, found.rate
    sampler = fit(target, seed=seed, effective=effective, progress=report)
    return sampler, effective_rate(_accepted(sampler))


def _is_stuck(draws: Draws, effective: int) -> bool:
    """Whether chains hardly move, and there are too few effective draws."""
    found, count = smallest_ess(draws.positions), draws.positions[..., 0].size
    return found < effective and found < _STUCK * count


def _accepted(sampler: Sampler) -> float:
    """The share of its proposals that a trained kernel's last steps saw accepted."""
    known = sampler.history.get("acceptance") or [0.5]
    return float(known[-1])


def _draw(
    sampler: Sampler,
    effective: int,
    rate: float,
    chains: int,
    seed: int,
    left: int | None,
    report: AbstractReporter,
    gives_up: bool = False,
) -> tuple[Draws, int]:
    """Rounds of draws, each of which goes on where the last ended; and what they evaluated.

    Args:
        sampler: exact.
        effective: draws that are wanted.
        rate: how many to expect for each draw.
        chains, seed: of the run.
        left: evaluations that may still be made; None for any number.
        report: told of each round.
        gives_up: whether chains that hardly move are the end of it, as there is another way.
    """
    parts: list[Draws] = []
    used, found, start = 0, 0.0, None
    most = _MOST_NUMBERS // (chains * sampler.kernel.dim)
    for number in range(_MOST_ROUNDS):
        total = sum(part.positions.shape[1] for part in parts)
        spare = _SPARE if left is None else _LITTLE_SPARE
        wanted = spare * (effective - found) / (max(rate, 1e-4) * chains)
        # An estimate from few draws may be far too low: no round is much longer than all before.
        longest = _GROWTH * total if parts else math.inf
        fewest = 1 if parts else _FEWEST if left is None else _FEWEST_DEAR
        count = int(min(max(math.ceil(wanted), fewest), longest, most - total))
        if parts and left is None and count < _SAME * parts[0].positions.shape[1]:
            count = parts[0].positions.shape[1]  # the program of the first round serves again
        if left is not None:
            count = _within(sampler, chains, count, left - used)
        if count < 1:
            break
        round_seed = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        part = sampler.sample(chains, count, round_seed, start=start, progress=report)
        parts.append(part)
        used += _cost(sampler, chains, count)
        found = smallest_ess(np.concatenate([one.positions for one in parts], axis=1))
        rate = max(found / (chains * (total + count)), 1e-4)
        if found >= effective or part.positions.shape[1] < count:
            break
        if gives_up and number > 0 and rate < _STUCK:
            break
        start = part.positions[:, -1]
    if not parts:
        checks.fail(
            "evaluations", f"at least {2 * chains} more than the search took", f"{left} left"
        )
    return _joined(parts, found, effective, left), used


def smallest_ess(positions: np.ndarray) -> float:
    """Of the bulk and the tails of every coordinate."""
    if positions.shape[1] < 4:
        return 0.0
    found = np.concatenate([ess_bulk(positions), ess_tail(positions)])
    return float(np.min(found)) if np.all(np.isfinite(found)) else 0.0


def _joined(parts: list[Draws], found: float, effective: int, left: int | None) -> Draws:
    """One run of all rounds."""
    first = parts[0]
    warnings = dict.fromkeys(sentence for part in parts for sentence in part.warnings)
    if found < effective:
        cause = "the budget of evaluations" if left is not None else "memory, or an interruption,"
        told = f"{found:.0f} effective draws of {effective} that were asked for"
        warnings[f"{told}: {cause} ended the run."] = None
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts], axis=1)
        for name in ("positions", "log_density", "accepted")
        if getattr(first, name) is not None
    }
    draws = joined["positions"].shape[1]
    return dataclasses.replace(
        first,
        **joined,
        steps=np.arange(1, draws + 1),
        seconds=sum(part.seconds for part in parts),
        compile_seconds=sum(part.compile_seconds for part in parts),
        settings={**first.settings, "draws": draws},
        warnings=tuple(warnings),
    )


def _cost(sampler: Sampler, chains: int, draws: int) -> int:
    """Evaluations of a run: where chains start, and whole blocks of steps."""
    length = block_length(chains, draws, 1, group_count(chains))
    return chains * (1 + (1 + sampler.local) * length * -(-draws // length))


def _within(sampler: Sampler, chains: int, draws: int, left: int) -> int:
    """The most draws of each chain, up to so many, that a budget allows."""
    affordable = (left // chains - 1) // (1 + sampler.local)
    draws = min(draws, affordable)
    while draws > 0 and _cost(sampler, chains, draws) > left:
        draws -= 1
    return draws
