"""What experiments make of their results: jobs, tables, words and pictures."""

import itertools
import json
import math
from importlib import import_module

import numpy as np
import pytest
from matplotlib.figure import Figure

from salmc.experiments import drawing, races, rows, six_modes, table1, table2
from salmc.experiments.jobs import Plan, Record, Results, in_order
from salmc.experiments.registry import load
from salmc.experiments.tables import Table, number, ratio, with_all
from salmc.report import style

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
CHAIN_FIGURES = {
    "ess": 1800.0,
    "draws": 2000,
    "chains": 32,
    "seconds": 0.5,
    "compile_seconds": 3.0,
    "ess_per_second": 115200.0,
    "rhat": 1.001,
    "mean_error_rms": 0.02,
    "mean_error_max": 0.05,
    "sd_ratio_min": 0.97,
    "sd_ratio_max": 1.04,
    "density_ratio_acceptance": 0.75,
    "acceptance": None,
    "mmd_squared": 1e-4,
    "fine_mmd_squared": 1e-5,
    "weight_error": 0.01,
    "train_seconds": 30.0,
    "train_compile_seconds": 8.0,
    "train_parts": {"training": 30.0, "compile": 8.0},
    "train_steps": 4000,
}


def made_up(job):
    """Figures and arrays of the form that the job would give."""
    generator = np.random.default_rng(0)
    arguments = job.arguments
    if "floor" in arguments:
        return {"floor": 2e-4, "fine_floor": 1e-4}, {}
    if job.experiment == "race":
        racers = {
            races.title(*racer): {
                "ess": 1000.0,
                "mean_error_rms": 0.0123,
                "ess_per_second": speed,
                "overhead_seconds": 30.0,
            }
            for racer, speed in zip(races.LEARNED, (4e5, 2e5, 1e5, 1e4), strict=True)
        }
        if arguments["warmup"] is not None:
            for name, speed in zip(races.NUTS, (5e3, 2e5, 3e5), strict=True):
                figures = {"ess": 900.0, "ess_per_second": speed, "overhead_seconds": 10.0}
                racers[name] = figures
        return {"racers": racers}, {}
    if job.experiment == "mog10":
        runs = arguments["runs"]
        values = {name: list(1.0 + generator.uniform(size=runs)) for name in MEASURES}
        return values, {}
    if job.experiment == "mog4":
        figures = {"weights": [0.25] * 4, "weight_error": 0.01, "mmd_squared": 1e-4, "floor": 2e-3}
        return figures, {"cloud": generator.normal(size=(50, 2))}
    if job.experiment == "ring-chains":
        values = {name: list(generator.normal(size=5)) for name in ("one", "many")}
        clouds = {name: generator.normal(size=(200, 2)) for name in ("one", "many", "start")}
        return {**values, "floor": 0.01}, clouds
    if job.experiment == "six-modes":
        arrays = {
            "cloud": generator.normal(size=(100, 2)),
            "times": np.array([1, 10, 100, 500]),
            "mmd": np.array([0.7, 0.3, 0.1, 0.05]),
            "autocorrelation": np.exp(-np.arange(61))[:, None] * np.ones(2),
            "ratio": np.full(499, 0.75),
        }
        return {**CHAIN_FIGURES, "between_modes": 0.01}, arrays
    if job.experiment == "split":
        moments = {"mean": [0.0] * 14, "std": [1.0] * 14}
        return {**CHAIN_FIGURES, **moments, "accuracy": 0.84, "nuts_accuracy": 0.83}, {}
    assert job.experiment in ("chains", "nuts")
    return {**CHAIN_FIGURES, "warmup_seconds": 5.0}, {}


MEASURES = ("mse_of_mean", "mse_of_variance", "mmd", "mmd_squared")


def results_of(name, plan=None, change=lambda job, figures: figures):
    records = []
    for job in load(name).jobs(plan or Plan(quick=True)):
        figures, arrays = made_up(job)
        records.append(Record(job, "done", change(job, dict(figures)), arrays))
    return Results(records)


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


# What the tables and words say


def test_table1_has_paper_ours_and_ratio():
    table = table1.tables(results_of("table1"))[0]
    line = dict(zip(table.columns[:4], table.rows[0][:4], strict=True))
    assert line == {
        "sampler": "SAL-MC, MLP",
        "ESS, paper": "1,635",
        "ESS, ours": "1,800",
        "ratio": "1.1 ×",
    }
    assert "0.0002" in table.note


def test_table1_calls_biased_what_is_beyond_its_floor():
    def bias(job, figures):
        biased = job.arguments.get("kernel") == "mlp" and not job.arguments["metropolis"]
        return {**figures, "fine_mmd_squared": 1.0} if biased else figures

    clean = " ".join(table1.words(results_of("table1")))
    biased = " ".join(table1.words(results_of("table1", change=bias)))
    assert "beyond on" not in clean
    assert "SAL-MC, MLP has MMD² within 3 floors on 0 of 2, and beyond on Ring" in biased


def test_bias_that_was_not_measured_is_not_called_right():
    whole = results_of("table1")
    without = Results([r for r in whole.records if "floor" not in r.job.arguments])
    row = rows.ROWS[0]
    assert table1._bar(whole, row.title, row, "ring").biased is False
    assert table1._bar(without, row.title, row, "ring").biased is None
    assert "Without a Metropolis step" not in " ".join(table1.words(without))


def test_table2_compares_accuracy_with_nuts_on_the_same_splits():
    tables = {table.title: table for table in table2.tables(results_of("table2"))}
    row = tables["Test accuracy"].rows[0]
    assert row[:7] == ("Heart", "SAL-MC, MLP", "1", "84.10 %", "84.00 %", "83.00 %", "+1.00")
    first, *_ = tables["Speed, in one run"].rows
    assert first[2:5] == ("1,000", "0.012", "400,000")
    assert first[5:9] == ("40 ×", "80 ×", "2 ×", "1.3 ×")
    assert first[9:] == ("30", "101,266", "8,000,000", "24,000,000")
    exact = tables["Speed, in one run"].rows[2]
    assert exact[-1] == "never"
    assert [row[0] for row in tables["Heart"].rows][-1] == "NUTS (BlackJAX)"


def test_races_are_not_taken_for_rows():
    records = rows.found(results_of("table2"), rows.ROWS[0], "heart")
    assert len(records) == 1
    assert records[0].job.experiment == "chains"


def test_words_follow_the_numbers():
    def change(job, figures):
        bad = job.arguments["method"] == "ag-svgd"
        return {**figures, "mmd_squared": 0.5, "weight_error": 0.5} if bad else figures

    module = load("mog4")
    assert "is seen" in " ".join(module.words(results_of("mog4", change=_better("ag-svgd"))))
    assert "is not seen" in " ".join(module.words(results_of("mog4", change=change)))


def _better(method):
    def change(job, figures):
        value = 1e-6 if job.arguments["method"] == method else 1e-2
        return {**figures, "mmd_squared": value}

    return change


def test_an_ess_that_hides_slow_mixing_is_called_out():
    results = results_of("mog6", change=lambda job, figures: {**figures, "ess": 400.0})
    rival = next(line for line in six_modes.LINES if line.method == rows.RIVAL)
    assert "does not see" not in " ".join(load("mog6").words(results))
    record = results.first(**rival.arguments)
    # Twice the MMD of exact draws: worth a quarter of its 500 draws.
    record.arrays["mmd"] = 2 * record.arrays["mmd"]
    told = [line for line in load("mog6").words(results) if "does not see" in line]
    assert f"{rival.title} has ESS 400 and the MMD of 125 exact draws" in told[0]


def test_tables_are_plain_markdown():
    table = Table("T", ("a", "b"), (("x|y", "1"),), "A note.")
    assert table.markdown() == "**T**\n\n| a | b |\n| --- | --- |\n| x\\|y | 1 |\n\nA note.\n"
    assert [number(v) for v in (1635.4, 0.01234, 1.3e-5, 0.0, math.nan, None)] == [
        "1,635",
        "0.0123",
        "1.3e-05",
        "0",
        "–",
        "–",
    ]
    assert with_all([1.0, 3.0, 2.0]) == "2 (1, 3, 2)"
    assert ratio(10.0, None) == "–"


def test_training_pays_off_where_the_times_cross():
    ours = {"ess_per_second": 1e4, "overhead_seconds": 30.0}
    theirs = {"ess_per_second": 1e3, "overhead_seconds": 3.0}
    count = races.break_even(ours, theirs)
    assert count is not None
    assert 30.0 + count / 1e4 == pytest.approx(3.0 + count / 1e3)
    assert races.break_even(theirs, ours) is None
    assert races.break_even({**ours, "overhead_seconds": 1.0}, theirs) == 0.0
