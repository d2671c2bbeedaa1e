"""Jobs: their order, which of them are meant, and how their results are found."""

from salmc_paper.harness.jobs import Job, Plan, Record, Results, chosen, in_order
from trial_jobs import Counter, job


def test_order_has_every_job_once_after_its_needs():
    a = job(Counter(), 1)
    b = job(Counter(), 2, needs=[a])
    c = job(Counter(), 3, needs=[b, a])
    assert [x.arguments["x"] for x in in_order([c, b, a, c])] == [1, 2, 3]


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


def test_results_are_found_by_arguments():
    records = [Record(job(Counter(), x, kind=k), "done", {"v": x}) for x, k in enumerate("aab")]
    results = Results([*records, Record(job(Counter(), 9, kind="a"))])
    assert results.values("v", kind="a") == [0, 1]
    assert len(results.having(kind="a")) == 3
    assert results.first(kind="c") is None
