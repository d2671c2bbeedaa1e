"""Results of a benchmark in one file: older files count, new ones know which job they are of."""

import json

import numpy as np
import pytest

from salmc_paper.harness.jobs import Job, Product
from salmc_paper.harness.one_file import OneFileStore
from salmc_paper.harness.runner import run_jobs

HEADER = {"command": "old", "when": "2020-01-01", "cores": 7, "python": "3.11", "jax": "0.1"}


@pytest.fixture
def one_file(tmp_path):
    return OneFileStore(tmp_path, lambda name: f"measure {name}")


def job(entry, calls=None, version=1):
    def run(context):
        if calls is not None:
            calls.append(context["entry"])
        return {"value": len(context["entry"]), "bad": np.nan}

    return Job("bench", f"job {entry}", {"entry": entry}, run, version, entry=entry)


def content(store):
    return json.loads(store.place("bench").read_text())


def test_figures_stand_at_their_entry_and_are_not_computed_again(one_file):
    calls = []
    jobs = [job(("a", "1"), calls), job(("a", "2"), calls), job(("b",), calls)]
    run_jobs(jobs, one_file)
    found = content(one_file)
    assert found["command"] == "measure bench"
    assert found["a"] == {"1": {"value": 2, "bad": None}, "2": {"value": 2, "bad": None}}
    assert found["b"] == {"value": 1, "bad": None}
    assert set(found["jobs"]) == {one.key for one in jobs}
    records = run_jobs(jobs, one_file)
    assert len(calls) == 3
    assert all(record.done for record in records)
    run_jobs(jobs[:1], one_file, again=True)
    assert len(calls) == 4


def test_a_job_without_an_entry_stands_at_its_name_and_an_empty_one_fills_the_file(one_file):
    named = Job("named", "a name", {}, lambda context: {"x": 1})
    filling = Job("filling", "whole", {}, lambda context: {"x": 1, "y": 2}, entry=())
    run_jobs([named, filling], one_file)
    assert json.loads(one_file.place("named").read_text())["a name"] == {"x": 1}
    assert json.loads(one_file.place("filling").read_text())["y"] == 2
    assert one_file.read(filling).figures == {"x": 1, "y": 2}


def test_an_older_file_counts_and_keeps_its_header_when_others_are_added(one_file):
    one_file.place("bench").write_text(json.dumps({**HEADER, "a": {"1": {"value": 5}}}))
    calls = []
    old, new = job(("a", "1"), calls), job(("a", "2"), calls)
    assert one_file.read(old).figures == {"value": 5}
    assert one_file.read(old).when == "2020-01-01"
    run_jobs([old, new], one_file)
    assert calls == [("a", "2")]
    found = content(one_file)
    assert found["a"]["1"] == {"value": 5}
    assert found["older"] == HEADER
    assert one_file.read(old).when == "2020-01-01"
    assert one_file.read(old).made_by["cores"] == 7
    assert one_file.read(new).when > "2020-01-01"


def test_another_version_makes_figures_void(one_file):
    calls = []
    run_jobs([job(("a",), calls)], one_file)
    assert not one_file.read(job(("a",), version=2)).done
    run_jobs([job(("a",), calls, version=2)], one_file)
    assert len(calls) == 2
    assert list(content(one_file)["jobs"]) == [job(("a",), version=2).key]


def test_a_failure_costs_no_result_that_is_there(one_file):
    run_jobs([job(("a",))], one_file)
    before = content(one_file)

    def fail(context):
        raise ValueError("not today")

    records = run_jobs([Job("bench", "bad", {}, fail)], one_file)
    assert records[0].sentence == "ValueError: not today"
    assert content(one_file) == before


def test_a_damaged_file_counts_as_missing(one_file):
    run_jobs([job(("a",))], one_file)
    one_file.place("bench").write_text("{")
    assert not one_file.read(job(("a",))).done
    assert run_jobs([job(("a",))], one_file)[0].done


def test_there_is_no_room_for_arrays_and_files(one_file):
    with pytest.raises(ValueError, match="room for figures"):
        one_file.write(job(("a",)), Product({}, {"x": np.ones(3)}), 1.0)
    record = run_jobs(
        [Job("bench", "file", {}, lambda context: {"at": context.place("txt")})], one_file
    )[0]
    assert "figures alone" in record.sentence
