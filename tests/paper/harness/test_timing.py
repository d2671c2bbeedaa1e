"""Contenders take turns; figures of a process of its own come back, or why there are none."""

import time

import jax.numpy as jnp
import pytest

from salmc.errors import ArgumentError, SalmcError
from salmc_paper.harness.processes import fresh_python, measured_apart
from salmc_paper.harness.timing import take_turns


def contender(calls, name, seconds):
    """One that notes its call and says of each what it took."""
    told = iter(seconds)

    def run():
        calls.append(name)
        return next(told)

    return run


def test_contenders_take_turns_and_dear_ones_run_once_between():
    calls = []
    found = take_turns(
        {
            "first": contender(calls, "first", [9.0, 1.0, 3.0, 2.0]),
            "second": contender(calls, "second", [9.0, 5.0, 4.0, 6.0]),
        },
        turns=3,
        between={
            "dear": contender(calls, "dear", [70.0]),
            "dearer": contender(calls, "dearer", [80.0]),
        },
        clock=lambda result: result,
    )
    both = ["first", "second"]
    assert calls == [*both, *both, "dear", *both, "dearer", *both]
    assert list(found) == ["first", "second", "dear", "dearer"]
    # The untimed turn, which compiles, does not count.
    assert found["first"].seconds == found["first"].results == (1.0, 3.0, 2.0)
    assert (found["first"].best, found["first"].median) == (1.0, 2.0)
    assert (found["second"].best, found["second"].median) == (4.0, 5.0)
    assert found["dear"].seconds == (70.0,)


def test_without_a_clock_it_is_wall_time_until_the_result_is_there():
    def slow():
        time.sleep(0.05)
        return jnp.ones(3), "anything"

    found = take_turns({"slow": slow}, turns=2, untimed=0)["slow"]
    assert all(0.05 <= seconds < 5.0 for seconds in found.seconds)
    assert found.results[0][1] == "anything"


def test_turns_must_be_enough_for_those_between():
    with pytest.raises(ArgumentError, match="at least 2"):
        take_turns({}, turns=1, between={"dear": lambda: None})


def test_a_fresh_process_gives_figures_or_says_why_not(tmp_path, monkeypatch):
    (tmp_path / "measured.py").write_text(
        "import json, sys\nprint('on the way')\nprint(json.dumps({'word': sys.argv[1]}))\n"
    )
    monkeypatch.chdir(tmp_path)
    assert measured_apart("measured", "yes") == {"word": "yes"}
    with pytest.raises(SalmcError, match=r"ended with 1: ValueError: no"):
        fresh_python("-c", "raise ValueError('no')")
