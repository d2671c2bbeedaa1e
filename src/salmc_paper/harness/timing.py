"""Contenders that take turns, so that their times can be compared.

Times on a shared machine differ from hour to hour: what was timed apart cannot be compared, and
what was timed one after the other only if nothing else began in between. Contenders that take
turns meet the same disturbances. The shortest time is the least disturbed one; the median is what
a user sees.
"""

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

from salmc import checks

Contender = Callable[[], Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Turns:
    """The timed turns of one contender.

    Attributes:
        results: what it returned in each.
        seconds: what each took.
    """

    results: tuple[Any, ...]
    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The shortest."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The median."""
        return float(statistics.median(self.seconds))


def take_turns(
    contenders: Mapping[str, Contender],
    *,
    turns: int = 5,
    between: Mapping[str, Contender] | None = None,
    untimed: int = 1,
    clock: Callable[[Any], float] | None = None,
) -> dict[str, Turns]:
    """Run all contenders in turn, several times over.

    Args:
        contenders: what each does in a turn, by name.
        turns: that are timed.
        between: contenders that are too dear to repeat: each runs once, the first of them after
            the first timed turn of the others, the next after the second.
        untimed: turns before the timed ones, in which programs are compiled.
        clock: what a result says that it took, such as the seconds of draws, which are without
            compilation; wall time until the result is there where it is None.

    Returns:
        The turns of each contender, those of `between` last.
    """
    rare = list((between or {}).items())
    checks.integer("untimed", untimed, 0)
    checks.integer("turns", turns, len(rare) + 1)
    for _ in range(untimed):
        for run in contenders.values():
            jax.block_until_ready(run())
    found: dict[str, list[tuple[Any, float]]] = {name: [] for name in contenders}
    for turn in range(turns):
        for name, run in contenders.items():
            found[name].append(_timed(run, clock))
        if turn < len(rare):
            name, run = rare[turn]
            found[name] = [_timed(run, clock)]
    found = {name: found[name] for name in (*contenders, *dict(rare))}
    return {
        name: Turns(tuple(result for result, _ in timed), tuple(seconds for _, seconds in timed))
        for name, timed in found.items()
    }


def _timed(run: Contender, clock: Callable[[Any], float] | None) -> tuple[Any, float]:
    began = time.perf_counter()
    result = jax.block_until_ready(run())
    seconds = time.perf_counter() - began
    return result, seconds if clock is None else float(clock(result))
