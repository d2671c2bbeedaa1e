"""Evaluations in a file: none is lost, none made twice, and none believed that is not ours."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import salmc
from salmc.errors import ArgumentError, OutputError, TargetError
from salmc.evaluation import Evaluation
from salmc.kept_evaluations import KeptEvaluations

POINTS = np.random.default_rng(0).normal(size=(40, 2)).astype("f4")
VALUES = -0.5 * np.sum(POINTS.astype(float) ** 2, axis=1)


class Counting:
    """log p of one point; every call is noted, and some fail."""

    def __init__(self, fails_at=None):
        self.calls, self.fails_at = [], fails_at

    def __call__(self, x):
        self.calls.append(x.tobytes())
        if len(self.calls) == self.fails_at:
            raise ValueError("the solver did not converge")
        return -0.5 * float(np.sum(np.asarray(x, float) ** 2))


def evaluation(function, path, **options):
    return Evaluation(function, vectorized=False, keep=path, dim=2, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "evaluations.bin"


@pytest.mark.parametrize("workers", [0, 2])
def test_nothing_is_computed_twice(path, workers):
    pool = {"executor": ThreadPoolExecutor(workers)} if workers else {}
    first = Counting()
    np.testing.assert_allclose(evaluation(first, path, **pool)(POINTS[:30]), VALUES[:30])
    second = Counting()
    again = evaluation(second, path, **pool)
    np.testing.assert_allclose(again(POINTS), VALUES)
    # One more tells that the file is of this function.
    assert len(second.calls) == 10 + 1
    assert again.count == 11
    np.testing.assert_allclose(again(POINTS[::-1]), VALUES[::-1])
    assert len(second.calls) == 11


def test_whatever_a_density_returns_is_kept(path):
    odd = np.array([-np.inf, np.nan, 1e300, -0.0])
    Evaluation(lambda points: odd, keep=path, dim=2)(POINTS[:4])
    again = Evaluation(lambda points: odd[-len(points) :], keep=path, dim=2)
    np.testing.assert_array_equal(again(POINTS[:4]), odd)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_came_before_an_exception_is_kept(path, workers):
    pool = {"executor": ThreadPoolExecutor(workers)} if workers else {}
    failing = Counting(fails_at=33)
    with pytest.raises(TargetError, match="the solver did not converge"):
        evaluation(failing, path, **pool)(POINTS)
    if workers:
        pool["executor"].shutdown()
    mended = Counting()
    np.testing.assert_allclose(evaluation(mended, path)(POINTS), VALUES)
    made = set(failing.calls[:32]) | set(failing.calls[33:])
    assert len(mended.calls) == 1 + len(POINTS) - len(made)


def test_damage_costs_what_is_damaged_and_no_more(path):
    evaluation(Counting(), path)(POINTS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content[:-5])
    again = Counting()
    np.testing.assert_allclose(evaluation(again, path)(POINTS), VALUES)
    assert len(again.calls) == 1 + 2
    last = Counting()
    np.testing.assert_allclose(evaluation(last, path)(POINTS), VALUES)
    assert len(last.calls) == 1


def test_files_of_something_else_are_refused(path):
    evaluation(Counting(), path)(POINTS)
    with pytest.raises(ArgumentError, match="`keep` argument must be a file of this log density"):
        evaluation(lambda x: 1.0, path)
    with pytest.raises(OutputError, match="a density with 3 coordinates"):
        Evaluation(lambda x: 1.0, vectorized=False, keep=path, dim=3)
    with pytest.raises(ArgumentError, match="`keep` argument must be a path"):
        evaluation(Counting(), 3)
    with pytest.raises(OutputError, match="cannot be kept"):
        evaluation(Counting(), path.parent)


def test_a_run_that_an_exception_ended_goes_on_where_it_was(path):
    def target(function, **options):
        return salmc.Target.from_numpy(function, 2, vectorized=False, **options)

    def sample(made):
        return salmc.sample(made, effective=200, evaluations=3000, chains=8, progress=False)

    whole = Counting()
    expected = sample(target(whole)).positions
    broken = Counting(fails_at=len(whole.calls) // 2)
    with pytest.raises(TargetError, match="did not converge"):
        sample(target(broken, keep=path))
    rest = Counting()
    found = sample(target(rest, keep=path)).positions
    np.testing.assert_array_equal(found, expected)
    # The one that failed, and the one that tells that the file is of this function.
    assert len(broken.calls) + len(rest.calls) == len(set(whole.calls)) + 2


def test_a_full_disk_leaves_no_half_of_a_record(tmp_path, monkeypatch):
    kept = KeptEvaluations(tmp_path / "kept", 2)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:37]))
    with pytest.raises(OutputError, match="No space left"):
        kept.add(np.ones((2, 2)), np.zeros(2))
    monkeypatch.undo()
    kept.add(np.full((1, 2), 3.0), np.array([7.0]))
    again = KeptEvaluations(tmp_path / "kept", 2)
    assert len(again) == 1
    assert again.values(np.full((1, 2), 3.0))[0] == [7.0]
