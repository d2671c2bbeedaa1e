"""A race: learned kernels take turns, NUTS runs between them, and medians are told."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np

from salmc.sampling.draws import Draws
from salmc_paper.experiments import races
from salmc_paper.harness.jobs import Context, Plan, Record


def test_learned_kernels_take_turns_around_nuts(monkeypatch):
    order = []
    seconds = itertools.count(1.0)
    draws = Draws(np.zeros((2, 5, 3)), np.zeros((2, 5)), seconds=1.0)

    def learned(sampler, **options):
        order.append("kernel")
        return dataclasses.replace(draws, seconds=next(seconds))

    def nuts(target, **options):
        order.append(options["mass_matrix"])
        return dataclasses.replace(draws, seconds=7.0, settings={"warmup_seconds": 5.0})

    monkeypatch.setattr(races, "trained", lambda record: None)
    monkeypatch.setattr(races, "timed_draws", learned)
    monkeypatch.setattr(races, "run_nuts", nuts)
    monkeypatch.setattr(races, "training_seconds", lambda record: (30.0, 8.0))
    monkeypatch.setattr(
        races, "judge_chains", lambda target, made, *moments: {"seconds": made.seconds}
    )
    job = races.race(Plan(quick=True), "heart", 200)
    needed = tuple(Record(need, "done") for need in job.needs)
    found = job.function(Context(job.arguments, needed, Path))["racers"]

    turn = ["kernel"] * len(races.LEARNED)
    assert order == [*turn, "diagonal", *turn, "dense", *turn, "dense", *turn]
    assert list(found) == [*(races.title(*racer) for racer in races.LEARNED), *races.NUTS]
    first = found[races.title(*races.LEARNED[0])]
    # The four kernels took 1, 2, 3, 4 seconds, then 5, 6, 7, 8, and so on.
    told = {"seconds": 7.0, "overhead_seconds": 30.0, "all_seconds": (1.0, 5.0, 9.0, 13.0)}
    assert first == told
    assert found["NUTS, dense"] == {"seconds": 7.0, "overhead_seconds": 5.0}
