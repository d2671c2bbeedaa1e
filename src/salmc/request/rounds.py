"""Rounds of draws, each of which goes on where the last ended, until enough are effective."""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.chain_statistics import ess_bulk, ess_tail
from salmc.progress import AbstractReporter
from salmc.sampling.draws import Draws
from salmc.sampling.executor import block_length, group_count
from salmc.sampling.sampler import Sampler

_MOST_ROUNDS = 12
_SPARE, _LITTLE_SPARE = 1.3, 1.1
"""So many times the draws that are still wanted, as rates are estimates; less within a budget."""

_SAME = 3

_GROWTH = 2
_FEWEST, _FEWEST_DEAR = 128, 40
"""Draws of a chain in the first round: fewer tell too little of its autocorrelation. Where each
evaluation counts, as few as tell anything."""

STUCK, SLOW = 0.01, 0.05
"""Effective draws for each draw below which chains hardly move, and another way is better; and
below which it is where that way is chains along the gradient, which take less time to prepare than
a flow."""

_MOST_NUMBERS = 2**28
"""Positions that are kept in memory, 1 GB of them; statistics of them take some more."""


def draw_rounds(
    sampler: Sampler,
    effective: int,
    rate: float,
    chains: int,
    seed: int,
    left: int | None,
    report: AbstractReporter,
    worst: float = 0.0,
    start: Float[np.ndarray, "chains dim"] | None = None,
) -> tuple[Draws, int]:
    """Rounds of draws, each of which goes on where the last ended; and what they evaluated.

    Args:
        sampler: exact.
        effective: draws that are wanted.
        rate: how many to expect for each draw.
        chains, seed: of the run.
        left: evaluations that may still be made; None for any number.
        report: told of each round.
        worst: effective draws for each draw below which chains are given up, where there is
            another way.
        start: of the chains; by default drawn from the pool.
    """
    parts: list[Draws] = []
    used, found = 0, 0.0
    most = _MOST_NUMBERS // (chains * sampler.kernel.dim)
    for number in range(_MOST_ROUNDS):
        total = sum(part.positions.shape[1] for part in parts)
        spare = _SPARE if left is None else _LITTLE_SPARE
        wanted = spare * (effective - found) / (max(rate, 1e-4) * chains)
        # An estimate from few draws may be far too low: no round is much longer than all before.
        longest = _GROWTH * total if parts else math.inf
        fewest = 1 if parts else _FEWEST if left is None else _FEWEST_DEAR
        count = int(min(max(math.ceil(wanted), fewest), longest, most - total))
        if parts and left is None:
            count = _by_the_same_program(sampler, chains, count, parts[0].positions.shape[1])
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
        if number > 0 and rate < worst:
            break
        start = part.positions[:, -1]
    if not parts:
        checks.fail(
            "evaluations", f"at least {2 * chains} more than the search took", f"{left} left"
        )
    return _joined(parts, found, effective, left), used


def _by_the_same_program(sampler: Sampler, chains: int, count: int, first: int) -> int:
    """As few draws as are wanted and more, for which the program of the first round serves again;
    where far more are wanted, a longer one may."""
    if count >= _SAME * first:
        return count
    width = 1 if sampler.ladder is None else sampler.ladder.rungs

    def length(draws: int) -> int:
        return block_length(chains, draws, width, group_count(chains))

    own = length(first)
    multiples = range(-(-count // own) * own, _SAME * first, own)
    return next((draws for draws in multiples if length(draws) == own), first)


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
