"""What experiments make of their results: jobs, tables, words and pictures."""

import itertools
import json
from importlib import import_module

import numpy as np
import pytest
from matplotlib.figure import Figure

from made_up_results import results_of
from salmc.report import style
from salmc_paper.display import drawing
from salmc_paper.harness.jobs import Plan, Record, Results, in_order
from salmc_paper.registry import load

OURS = (
    "table1",
    "table2",
    "mog10",
    "mog4",
    "mog6",
    "convergence",
    "ring-chains",
    "german-epochs",
)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("quick", [True, False])
def test_an_experiment_makes_tables_words_and_a_picture(name, quick, tmp_path):
    module = load(name)
    results = results_of(name, Plan(quick=quick))
    tables = module.tables(results)
    assert tables
    for table in tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    told = module.words(results)
    assert told
    assert all(sentence.endswith(".") and "nan" not in sentence for sentence in told)
    with style.look():
        picture = module.figure(results)
        assert isinstance(picture, Figure)
        style.save(picture, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", OURS)
def test_an_experiment_shows_what_there_is_when_the_rival_is_missing(name):
    module = load(name)
    records = [
        Record(r.job, "not available", sentence="There is no rival here.")
        if "a-nice-mc" in r.job.arguments.values()
        else r
        for r in results_of(name).records
    ]
    results = Results(records)
    assert module.tables(results)
    assert module.words(results)
    with style.look():
        assert module.figure(results) is not None


@pytest.mark.parametrize("name", OURS)
def test_jobs_have_names_keys_and_costs_of_their_own(name):
    module = load(name)
    full, quick = module.jobs(Plan()), module.jobs(Plan(quick=True))
    for jobs in (full, quick):
        ordered = in_order(jobs)
        assert len({(job.experiment, job.key) for job in jobs}) == len(jobs)
        assert len({(job.experiment, job.name) for job in ordered}) == len(ordered)
        assert all(job.seconds > 0 for job in ordered)
        json.dumps([job.arguments for job in ordered])
    assert sum(job.seconds for job in in_order(quick)) < sum(job.seconds for job in in_order(full))
    trained = [job for job in in_order(full) if job.experiment == "train"]
    assert not {job.key for job in trained} & {job.key for job in in_order(quick)}


def test_experiments_share_trainings():
    """Ring's figure, Mog6's and Table 1 need the same kernels; German's and Table 2 likewise."""
    plan = Plan()

    def trainings(name):
        jobs = in_order(load(name).jobs(plan))
        return {job.key for job in jobs if job.experiment == "train"}

    assert trainings("ring-chains") < trainings("table1")
    assert trainings("mog6") == trainings("convergence") < trainings("table1")
    assert trainings("german-epochs") & trainings("table2")


def test_labels_of_bars_keep_clear_of_the_papers_mark():
    shares = np.linspace(0.0, 1.0, 101)
    for bar, mark in itertools.product(shares, shares[1:]):
        start, inside = drawing._label_place(bar, mark)
        assert not start < mark < start + drawing._LABEL
        assert start + drawing._LABEL <= (bar if inside else 1.05)
        assert inside or start >= bar
    assert drawing._label_place(0.9, None) == (drawing._GAP, True)


def test_a_new_default_makes_new_trainings_and_all_that_rests_on_them(monkeypatch):
    def keys(**arguments):
        jobs = in_order(load("table2").jobs(Plan(seeds=1, runs=1, rival_runs=1)))
        found = [j for j in jobs if all(j.arguments.get(n) == v for n, v in arguments.items())]
        assert len(found) > 2
        return {job.key for job in found}

    rivals, ours = keys(method="a-nice-mc"), keys(method="sal-mc", kernel="mlp")
    races_before = {race.key for race in load("table2").jobs(Plan()) if race.experiment == "race"}
    monkeypatch.setattr(import_module("salmc.learning.nice_settings"), "_VELOCITY", 1.0)
    assert not keys(method="a-nice-mc") & rivals
    assert keys(method="sal-mc", kernel="mlp") == ours
    races_after = {race.key for race in load("table2").jobs(Plan()) if race.experiment == "race"}
    assert not races_after & races_before


def test_one_training_serves_rows_with_and_without_metropolis():
    jobs = load("table1").jobs(Plan(seeds=1))
    chosen = [("kernel", "flow"), ("target", "ring")]
    flows = [j for j in jobs if all(j.arguments.get(name) == value for name, value in chosen)]
    assert [j.arguments["metropolis"] for j in flows] == [False, True]
    assert flows[0].needs[0].key == flows[1].needs[0].key


def test_seeds_and_runs_are_settable():
    jobs = in_order(load("table1").jobs(Plan(seeds=2, rival_seeds=1)))
    trained = [j.arguments for j in jobs if j.experiment == "train"]
    assert {a["seed"] for a in trained if a["kernel"] == "flow"} == {0, 1}
    assert {a["seed"] for a in trained if a["method"] == "a-nice-mc"} == {0}
    splits = {j.arguments.get("split") for j in load("table2").jobs(Plan(runs=4))}
    assert splits == {None, 0, 1, 2, 3}
