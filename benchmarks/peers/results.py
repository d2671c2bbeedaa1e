"""Kept figures as rows, and what they say of times to other numbers of effective draws."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from benchmarks.peers.densities import DENSITIES
from benchmarks.peers.judging import ENOUGH
from benchmarks.peers.plan import REGRESSIONS
from salmc_paper.harness.jobs import Record

RIGHT = ("right", "short")
"""Outcomes whose times count."""


@dataclasses.dataclass(frozen=True)
class Time:
    """CPU seconds to so many effective draws, measured or extrapolated from a measured rate."""

    seconds: float
    measured: bool

    def __str__(self) -> str:
        digits = f"{self.seconds:.1f}" if self.seconds < 99.95 else f"{self.seconds:,.0f}"
        return digits if self.measured else f"~{digits}"


@dataclasses.dataclass(frozen=True)
class Row:
    """One peer on one target: the figures of each request, by effective draws."""

    target: str
    peer: str
    runs: dict[int, dict[str, Any]]

    @property
    def best(self) -> dict[str, Any]:
        """The figures of the largest request."""
        return self.runs[max(self.runs)]

    def at(self, effective: int) -> dict[str, Any]:
        """The figures of a request, or of the largest if that was not made."""
        return self.runs.get(effective, self.best)

    def right_at(self, effective: int) -> bool:
        """Whether the draws of a request were right, so that its time counts."""
        return self.at(effective)["outcome"] in RIGHT

    def time_to(self, effective: int) -> Time | None:
        """CPU seconds to so many effective draws; None if that is not known."""
        run = self.runs.get(effective)
        if run is not None and run.get("ess", 0.0) >= ENOUGH * effective:
            return Time(total_seconds(self.target, run), measured=True)
        known = run if run is not None and run.get("ess") else self.best
        if not known.get("ess") or seconds_of_evaluation(self.target):
            # What evaluations of a search and of draws cost is not told apart.
            return None
        growing = known["cpu_seconds"] - known["ready_cpu_seconds"]
        seconds = known["ready_cpu_seconds"] + growing * effective / known["ess"]
        return Time(seconds, measured=False)


def seconds_of_evaluation(target: str) -> float:
    """What an evaluation is taken to cost beside what it does."""
    return 0.0 if target in REGRESSIONS else DENSITIES[target]().seconds


def total_seconds(target: str, run: dict[str, Any]) -> float:
    """CPU seconds of a run, with what its evaluations are taken to cost."""
    dear = seconds_of_evaluation(target)
    return float(run["cpu_seconds"]) + (dear * run["evaluations"] if dear else 0.0)


def rows(records: Iterable[Record], seed: int = 0) -> list[Row]:
    """All that is kept, in the order of the records."""
    found: dict[tuple[str, str], Row] = {}
    for record in records:
        asked = record.job.arguments
        if record.done and asked["seed"] == seed:
            key = asked["target"], asked["peer"]
            row = found.setdefault(key, Row(*key, {}))
            row.runs[asked["effective"]] = record.figures
    return list(found.values())


def best_peer(found: Iterable[Row], target: str, effective: int) -> tuple[str, Time] | None:
    """The quickest peer that is right, salmc not among them."""
    times = [
        (row.peer, time)
        for row in found
        if row.target == target and row.peer != "salmc" and row.right_at(effective)
        for time in [row.time_to(effective)]
        if time is not None
    ]
    return min(times, key=lambda pair: pair[1].seconds) if times else None


def ratio(found: Iterable[Row], target: str, effective: int) -> float:
    """Seconds of salmc over those of the quickest peer that is right; NaN where one lacks."""
    listed = list(found)
    ours = next((r for r in listed if r.target == target and r.peer == "salmc"), None)
    theirs = best_peer(listed, target, effective)
    time = ours.time_to(effective) if ours is not None and ours.right_at(effective) else None
    return math.nan if time is None or theirs is None else time.seconds / theirs[1].seconds
