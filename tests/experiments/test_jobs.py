"""Jobs: kept once done, tried again after a failure, and never half kept."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from salmc.errors import OutputError, SalmcError
from salmc.experiments import store as store_module
from salmc.experiments.jobs import (
    Job,
    NotAvailableError,
    Plan,
    Product,
    Record,
    Results,
    chosen,
    in_order,
    plain,
)
from salmc.experiments.progress import JobBar
from salmc.experiments.runner import cost, run_jobs
from salmc.experiments.store import Store


class Counter:
    """A job's function that counts its calls."""

    def __init__(self, result=None, error=None):
        self.calls, self.result, self.error = 0, result, error

    def __call__(self, context):
        self.calls += 1
        self.context = context
        if self.error is not None:
            raise self.error
        return self.result if self.result is not None else {"value": 2 * context["x"]}


def job(function, x=1, needs=(), version=1, **more):
    return Job("trial", f"job {x}", {"x": x, **more}, function, version, tuple(needs))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "jobs")


# Kept results


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


# Failures


def test_a_failure_is_told_in_a_sentence_and_the_others_go_on(store):
    bad = Counter(error=SalmcError("The density is +inf."))
    strange = Counter(error=ValueError("a\nb"))
    good = Counter()
    records = run_jobs([job(bad, 1), job(strange, 2), job(good, 3)], store)
    assert [record.status for record in records] == ["failed", "failed", "done"]
    assert records[0].sentence == "The density is +inf."
    assert records[1].sentence == "ValueError: a"
    assert store.read(job(bad, 1)).sentence == "The density is +inf."


def test_a_failed_job_is_tried_again_and_its_failure_forgotten(store):
    work = Counter(error=ValueError("not today"))
    run_jobs([job(work)], store)
    work.error = None
    record = run_jobs([job(work)], store)[0]
    assert record.done
    assert work.calls == 2
    assert not list((store.folder / "trial").glob("*.failed.json"))


def test_what_is_not_available_says_so_and_takes_its_dependants_along(store):
    missing = job(Counter(error=NotAvailableError("There is no such method.")), 1)
    dependant = Counter()
    records = run_jobs([job(dependant, 2, needs=[missing])], store)
    assert [record.status for record in records] == ["not available"] * 2
    assert records[1].sentence == "There is no such method."
    assert dependant.calls == 0


# Jobs that need others


def test_needs_run_first_once_and_are_handed_over(store):
    base = Counter(Product({"value": 7}, {"x": np.ones(2)}))
    first = job(base, 1)
    left, right = Counter(), Counter()
    run_jobs([job(left, 2, needs=[first]), job(right, 3, needs=[first])], store)
    assert base.calls == 1
    assert left.context.needed[0].figures == {"value": 7}
    np.testing.assert_array_equal(right.context.needed[0].arrays["x"], np.ones(2))


def test_a_damaged_need_is_made_anew_before_what_needs_it(store):
    base, above = Counter({"value": 7}), Counter()
    first = job(base, 1)
    run_jobs([first], store)
    store.place(first, "json").write_text("{")
    run_jobs([job(above, 2, needs=[first])], store)
    assert base.calls == 2
    assert above.context.needed[0].figures == {"value": 7}


def test_order_has_every_job_once_after_its_needs():
    a = job(Counter(), 1)
    b = job(Counter(), 2, needs=[a])
    c = job(Counter(), 3, needs=[b, a])
    assert [x.arguments["x"] for x in in_order([c, b, a, c])] == [1, 2, 3]


# Stopping


def test_ctrl_c_ends_the_run_and_keeps_what_was_done(store):
    good = Counter()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([job(good, 1), job(Counter(error=KeyboardInterrupt()), 2)], store)
    assert store.read(job(good, 1)).done
    assert store.read(job(good, 2)).status == "not run"
    run_jobs([job(good, 1), job(good, 2)], store)
    assert good.calls == 2


def test_a_result_of_work_that_ctrl_c_cut_short_is_not_kept(store):
    """Training returns in good order when it is interrupted; that half must not be kept."""
    pressed = []

    def half(context):
        pressed.append(True)
        return {"value": "half"}

    with pytest.raises(KeyboardInterrupt):
        run_jobs([job(half)], store, stopped=lambda: bool(pressed))
    assert store.read(job(half)).status == "not run"


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    code = """
    import sys, time
    from salmc.experiments.jobs import Job
    from salmc.experiments.runner import run_jobs
    from salmc.experiments.store import Store

    def work(context):
        with open("calls", "a") as file:
            file.write(f"{context['x']}\\n")
        if context["x"] == 2 and sys.argv[1] == "hang":
            time.sleep(600)
        return {"x": context["x"]}

    run_jobs([Job("trial", "j", {"x": x}, work) for x in range(4)], Store("jobs"))
    """
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    process = subprocess.Popen([sys.executable, str(script), "hang"], cwd=tmp_path)
    calls = tmp_path / "calls"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (calls.exists() and "2" in calls.read_text()):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert calls.read_text().split() == ["0", "1", "2"]
    subprocess.run([sys.executable, str(script), "go"], cwd=tmp_path, check=True)
    assert calls.read_text().split() == ["0", "1", "2", "2", "3"]


# What is asked for


def test_only_takes_commas_as_or_and_repetition_as_and():
    jobs = [
        job(Counter(), i, target=t, kernel=k)
        for i, (t, k) in enumerate([("ring", "mlp"), ("ring", "flow"), ("mog2", "flow")])
    ]
    assert [j.arguments["x"] for j in chosen(jobs, [])] == [0, 1, 2]
    assert [j.arguments["x"] for j in chosen(jobs, ["ring"])] == [0, 1]
    assert [j.arguments["x"] for j in chosen(jobs, ["ring,mog2", "flow"])] == [1, 2]
    assert chosen(jobs, ["nothing"]) == []


def test_only_keeps_what_others_are_judged_by():
    floors = [
        Job("trial", f"floor of {t}", {"target": t}, Counter(), support=True)
        for t in ("ring", "mog2")
    ]
    jobs = [*floors, job(Counter(), 1, target="ring", kernel="mlp")]
    assert [j.name for j in chosen(jobs, ["mlp"])] == ["floor of ring", "job 1"]


def test_a_plan_gives_what_was_asked_for_before_its_defaults():
    assert Plan().number("seeds", 3, 1) == 3
    assert Plan(quick=True).number("seeds", 3, 1) == 1
    assert Plan(quick=True, seeds=5).number("seeds", 3, 1) == 5


def test_the_cost_leaves_out_what_is_kept(store):
    jobs = [job(Counter(), x) for x in range(3)]
    run_jobs(jobs[:1], store)
    told = cost(jobs, store)
    assert (told.jobs, told.kept, told.seconds) == (3, 1, 20.0)


def test_results_are_found_by_arguments():
    records = [Record(job(Counter(), x, kind=k), "done", {"v": x}) for x, k in enumerate("aab")]
    results = Results([*records, Record(job(Counter(), 9, kind="a"))])
    assert results.values("v", kind="a") == [0, 1]
    assert len(results.having(kind="a")) == 3
    assert results.first(kind="c") is None


def test_plain_leaves_only_what_json_holds():
    value = {"a": np.arange(2), 3: (np.float64(1), None), "c": np.bool_(True), "d": float("inf")}
    assert plain(value) == {"a": [0, 1], "3": [1.0, None], "c": True, "d": None}


def test_progress_has_a_line_for_each_job_that_ran(store, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    good, bad = Counter(), Counter(error=ValueError("[bold]no"))
    run_jobs([job(good, 1)], store)
    run_jobs([job(good, 1), job(good, 2), job(bad, 3)], store, report=JobBar())
    told = capfd.readouterr().err
    assert "2/3" in told
    assert "job 2" in told
    assert "ValueError: [bold]no" in told
    assert "job 1:" not in told
