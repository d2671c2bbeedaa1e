"""Jobs are run once, after what they need; failures are told, and a stopped run goes on."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from salmc.errors import SalmcError
from salmc_paper.harness.jobs import NotAvailableError, Product
from salmc_paper.harness.progress import JobBar
from salmc_paper.harness.runner import cost, run_jobs
from trial_jobs import Counter, job

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
    from salmc_paper.harness.jobs import Job
    from salmc_paper.harness.runner import run_jobs
    from salmc_paper.harness.store import Store

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


# Progress and cost


def test_the_cost_leaves_out_what_is_kept(store):
    jobs = [job(Counter(), x) for x in range(3)]
    run_jobs(jobs[:1], store)
    told = cost(jobs, store)
    assert (told.jobs, told.kept, told.seconds) == (3, 1, 20.0)


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
