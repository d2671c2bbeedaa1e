"""Results of jobs on the disk: kept once done, and never half kept."""

import json

import numpy as np
import pytest

from salmc.errors import OutputError
from salmc.json_values import plain
from salmc_paper.harness import store as store_module
from salmc_paper.harness.jobs import Job, Product
from salmc_paper.harness.runner import run_jobs
from trial_jobs import Counter, job


def test_a_job_that_is_done_is_not_run_again(store):
    work = Counter()
    first = run_jobs([job(work)], store)
    second = run_jobs([job(work)], store)
    assert work.calls == 1
    assert first[0].figures == second[0].figures == {"value": 2}
    assert second[0].status == "done"


def test_other_arguments_or_another_version_are_another_job(store):
    work = Counter()
    run_jobs([job(work), job(work, x=2), job(work, version=2)], store)
    assert work.calls == 3
    assert len({job(work).key, job(work, x=2).key, job(work, version=2).key}) == 3


def test_other_settings_or_another_job_that_is_needed_are_another_job(store):
    def chains_of(weight):
        train = Job("train", "train", {"x": 1}, trains, settings={"weight": weight})
        return job(work, needs=[train])

    work, trains = Counter(), Counter()
    run_jobs([chains_of(1.0)], store)
    run_jobs([chains_of(1.0)], store)
    assert (trains.calls, work.calls) == (1, 1)
    run_jobs([chains_of(2.0)], store)
    assert (trains.calls, work.calls) == (2, 2)
    (content,) = [
        json.loads(place.read_text())
        for place in (store.folder / "trial").glob("*.json")
        if chains_of(2.0).key in place.name
    ]
    assert content["needs"] == [f"train/{chains_of(2.0).needs[0].key}"]


def test_arrays_and_files_come_back_as_they_were(store):
    def make(context):
        context.place("txt").write_text("kept")
        return Product({"a": np.float32(1.5)}, {"x": np.arange(3.0)}, files=("txt",))

    run_jobs([job(make)], store)
    record = store.read(job(make))
    assert record.figures == {"a": 1.5}
    np.testing.assert_array_equal(record.arrays["x"], np.arange(3.0))
    assert record.folder_files["txt"].read_text() == "kept"


def test_numbers_that_are_not_finite_become_null_and_read_as_nan(store):
    run_jobs([job(Counter({"a": float("nan"), "b": [np.inf, 1]}))], store)
    text = next((store.folder / "trial").glob("*.json")).read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    record = store.read(job(Counter()))
    assert record.figures == {"a": None, "b": [None, 1]}
    assert np.isnan(record.figure("a"))
    assert np.isnan(record.figure("missing"))


@pytest.mark.parametrize("damage", ["json", "npz", "npz-gone", "other-content", "not-a-dictionary"])
def test_a_damaged_result_is_computed_again(store, damage):
    work = Counter(Product({"value": 1}, {"x": np.arange(1000.0)}))
    run_jobs([job(work)], store)
    place = store.place(job(work), "json")
    if damage == "json":
        place.write_text(place.read_text()[: len(place.read_text()) // 2])
    elif damage == "npz":
        other = store.place(job(work), "npz")
        content = bytearray(other.read_bytes())
        content[len(content) // 2] ^= 0xFF
        other.write_bytes(bytes(content))
    elif damage == "npz-gone":
        store.place(job(work), "npz").unlink()
    elif damage == "other-content":
        content = json.loads(place.read_text())
        content["arguments"] = {"x": 99}
        place.write_text(json.dumps(content))
    else:
        place.write_text("[1, 2]")
    assert store.read(job(work)).status == "not run"
    record = run_jobs([job(work)], store)[0]
    assert work.calls == 2
    assert record.done
    np.testing.assert_array_equal(store.read(job(work)).arrays["x"], np.arange(1000.0))


def test_a_file_that_changed_since_is_made_again(store):
    """A kernel file has no check sum of its own: the record has it."""
    calls = []

    def make(context):
        calls.append(1)
        context.place("kernel").write_bytes(b"whole")
        return Product({}, files=("kernel",))

    run_jobs([job(make)], store)
    store.place(job(make), "kernel").write_bytes(b"whale")
    assert not store.read(job(make)).done
    run_jobs([job(make)], store)
    assert len(calls) == 2
    assert store.place(job(make), "kernel").read_bytes() == b"whole"


def test_a_file_that_was_not_written_in_full_leaves_no_result(store, monkeypatch):
    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.np, "savez_compressed", full_disk)
    work = Counter(Product({"value": 1}, {"x": np.arange(3.0)}))
    with pytest.raises(OutputError, match="No space left"):
        run_jobs([job(work)], store)
    assert store.read(job(work)).status == "not run"
    assert [p.name for p in (store.folder / "trial").iterdir()] == []


def test_plain_leaves_only_what_json_holds():
    value = {"a": np.arange(2), 3: (np.float64(1), None), "c": np.bool_(True), "d": float("inf")}
    assert plain(value) == {"a": [0, 1], "3": [1.0, None], "c": True, "d": None}
