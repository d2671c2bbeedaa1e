"""`salmc reproduce`: what experiments make of their results, and the command."""

import json
import math
import sys
import types

import numpy as np
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from salmc.cli import app
from salmc.errors import ArgumentError
from salmc.experiments import judging, races, registry, rows, six_modes, table1, table2
from salmc.experiments.jobs import Job, NotAvailableError, Plan, Record, Results, in_order
from salmc.experiments.judging import discrepancy, judge_chains, mmd, mmd_path
from salmc.experiments.problems import find_split, find_target
from salmc.experiments.registry import EXPERIMENTS, load, names
from salmc.experiments.tables import Table, number, ratio, with_all
from salmc.report import style
from salmc.sampling.draws import Draws

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


def call(*arguments):
    """Run in this process; wide, so that no sentence is broken into lines."""
    environment = {"COLUMNS": "300", "TERM": "dumb"}
    return CliRunner().invoke(app, [str(word) for word in arguments], env=environment)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


# Made-up results


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
            for mass, speed in (("diagonal", 5e3), ("dense", 2e5)):
                figures = {"ess": 900.0, "ess_per_second": speed, "overhead_seconds": 10.0}
                racers[races.nuts_title(mass)] = figures
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
    assert first[5:] == ("40 ×", "80 ×", "2 ×", "30", "101,266", "8,000,000")
    exact = tables["Speed, in one run"].rows[2]
    assert exact[-1] == "never"
    assert [row[0] for row in tables["Heart"].rows][-1] == "NUTS (BlackJAX)"


def test_races_are_not_taken_for_rows():
    records = rows.found(results_of("table2"), rows.ROWS[0], "heart")
    assert len(records) == 1
    assert "race" not in records[0].job.arguments


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


# What is measured


@pytest.fixture
def few_subsets(monkeypatch):
    """Less averaging of MMD² than in the experiments: quicker, and enough for gross differences."""
    monkeypatch.setattr(judging, "SUBSETS", 2)


def chains_of(target, positions):
    positions = np.asarray(positions, dtype=np.float32)
    log_density = np.zeros(positions.shape[:2])
    return Draws(positions, log_density, seconds=2.0, target=target)


def test_exact_draws_are_judged_exact_and_shifted_ones_biased(few_subsets):
    target = find_target("mog6")
    exact = np.asarray(target.sample(six_modes.jax.random.key(0), 4000)).reshape(4, 1000, 2)
    good = judge_chains(target, chains_of(target, exact))
    assert good["ess"] > 950
    assert good["ess_per_second"] == pytest.approx(good["ess"] * 4 / 2.0)
    assert abs(good["mmd_squared"]) < 2e-3
    bad = judge_chains(target, chains_of(target, exact + 1.0))
    assert bad["mmd_squared"] > 10 * abs(good["mmd_squared"])
    assert bad["mean_error_max"] > 0.2


def test_points_between_modes_show_in_the_fine_discrepancy(few_subsets):
    """The median bandwidth hardly sees the shape of modes; the fine one does."""
    target = find_target("mog6")
    exact = np.asarray(target.sample(six_modes.jax.random.key(0), 4000))
    noise = np.random.default_rng(0).normal(size=exact.shape)
    usual, fine = discrepancy(target, exact + 0.6 * noise)
    _, clean = discrepancy(target, exact)
    assert fine > 20 * abs(clean)
    assert fine > usual


def test_given_moments_replace_those_of_the_target():
    target = find_split("heart", 0).target
    draws = chains_of(target, np.random.default_rng(0).normal(size=(4, 500, target.dim)))
    judged = judge_chains(target, draws, np.zeros(target.dim), np.full(target.dim, 2.0))
    assert judged["sd_ratio_max"] == pytest.approx(0.5, abs=0.05)
    assert "mmd_squared" not in judged


def test_the_path_of_mmd_is_that_of_each_beginning():
    generator = np.random.default_rng(0)
    points, exact = generator.normal(size=(30, 2)), generator.normal(size=(50, 2))
    path = mmd_path(points, exact, 2.0)

    def plain_mmd(x, y):
        kernel = lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(-1) / 2.0).mean()  # noqa: E731
        return math.sqrt(max(kernel(x, x) + kernel(y, y) - 2 * kernel(x, y), 0.0))

    for count in (1, 2, 17, 30):
        assert path[count - 1] == pytest.approx(plain_mmd(points[:count], exact), abs=1e-7)
    assert mmd(points, exact, 2.0) == pytest.approx(path[-1])


def test_splits_of_a_data_set_share_a_name_and_differ_in_rows():
    first, second = find_split("heart", 0), find_split("heart", 1)
    assert first.target.name == second.target.name == "heart-split"
    assert first.target.signed_rows.shape == (216, 14)
    assert first.features.shape == (54, 13)
    assert not np.array_equal(first.features, second.features)


def test_a_target_that_is_not_there_is_not_available():
    with pytest.raises(NotAvailableError, match="no-such"):
        find_target("no-such")


# The command


@pytest.fixture
def tiny(monkeypatch):
    """An experiment of three jobs, the second of which does what the test says."""
    module = types.ModuleType("salmc.experiments.tiny")
    module.TITLE, module.PAPER = "Tiny", "Nothing."
    module.calls, module.second = [], lambda: None

    def work(context):
        module.calls.append(context["number"])
        if context["number"] == 1:
            module.second()
        return {"value": context["number"]}

    def figure(results):
        made = style.new_figure(3.0, 2.0)
        made.add_subplot().plot(results.values("value"))
        return made

    module.jobs = lambda plan: [
        Job("tiny", f"tiny {n}", {"number": n, "quick": plan.quick}, work) for n in range(3)
    ]
    module.tables = lambda results: [
        Table("Tiny", ("n",), tuple((str(v),) for v in results.values("value")))
    ]
    module.words = lambda results: [f"{len(results.done())} are done."]
    module.figure = figure
    monkeypatch.setitem(sys.modules, "salmc.experiments.tiny", module)
    monkeypatch.setitem(registry.EXPERIMENTS, "tiny", registry.Entry("tiny", "a tiny one"))
    return module


def test_the_command_writes_json_markdown_picture_and_page(tiny, tmp_path):
    result = call("reproduce", "tiny", "--out", "out", "--docs", "docs")
    assert result.exit_code == 0, result.output
    out = tmp_path / "here" / "out"
    content = json.loads((out / "tiny.json").read_text())
    assert content["quick"] is False
    assert [job["status"] for job in content["jobs"]] == ["done"] * 3
    assert "3 are done." in (out / "tiny.md").read_text()
    assert (out / "tiny.png").exists()
    page = (out / "results.md").read_text()
    assert "## Tiny" in page
    assert "![Tiny](tiny.png)" in page
    assert "- table1" in page
    docs = tmp_path / "here" / "docs"
    assert "![Tiny](images/results/tiny.png)" in (docs / "results.md").read_text()
    assert (docs / "images" / "results" / "tiny.png").exists()
    call("reproduce", "tiny", "--out", "out")
    assert tiny.calls == [0, 1, 2]


def test_a_failure_is_listed_and_told_by_the_exit_code(tiny):
    def fail():
        raise ValueError("it broke")

    tiny.second = fail
    result = call("reproduce", "tiny", "--out", "out")
    assert result.exit_code == 1
    assert tiny.calls == [0, 1, 2]
    assert "failed: ValueError: it broke" in result.output
    text = open("out/tiny.md").read()  # noqa: SIM115
    assert "2 are done." in text
    assert "failed: tiny 1. ValueError: it broke" in text
    tiny.second = lambda: None
    assert call("reproduce", "tiny", "--out", "out").exit_code == 0
    assert tiny.calls == [0, 1, 2, 1]


def test_ctrl_c_writes_what_there_is_and_the_next_run_goes_on(tiny):
    def stop():
        raise KeyboardInterrupt

    tiny.second = stop
    result = call("reproduce", "tiny", "--out", "out")
    assert result.exit_code == 130
    assert "goes on from there" in result.output
    assert "1 of 3 jobs" in open("out/tiny.md").read()  # noqa: SIM115
    tiny.second = lambda: None
    assert call("reproduce", "tiny", "--out", "out").exit_code == 0
    assert tiny.calls == [0, 1, 1, 2]


def test_quick_results_are_marked_and_live_elsewhere(tiny, tmp_path):
    assert call("reproduce", "tiny", "--quick").exit_code == 0
    text = (tmp_path / "here" / "reproduction" / "quick" / "results.md").read_text()
    assert "This is a quick run" in text
    call("reproduce", "tiny")
    assert "quick run" not in (tmp_path / "here" / "reproduction" / "results.md").read_text()
    assert tiny.calls == [0, 1, 2, 0, 1, 2]


def test_only_runs_some_and_shows_what_was_run_before(tiny):
    assert call("reproduce", "tiny", "--only", "1", "--out", "out").exit_code == 0
    assert tiny.calls == [1]
    assert call("reproduce", "tiny", "--only", "2", "--out", "out").exit_code == 0
    text = open("out/tiny.md").read()  # noqa: SIM115
    assert "2 are done." in text
    assert "not run: tiny 0" in text


def test_an_estimate_runs_nothing(tiny):
    result = call("reproduce", "tiny", "--estimate")
    assert result.exit_code == 0
    assert "3 jobs,    0 kept, about 30 s" in result.output
    assert tiny.calls == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tabel1"], "Did you mean table1?"),
        (["mog4", "--runs", "0"], "`runs` argument must be a whole number of at least 1"),
        (["mog4", "--only", "nothing"], "No job has the words nothing"),
    ],
)
def test_bad_arguments_are_met_with_one_sentence(arguments, sentence):
    result = call("reproduce", *arguments)
    assert result.exit_code == 2
    assert sentence in result.output


def test_names_are_known_and_all_means_all():
    assert names(["all"]) == list(EXPERIMENTS)
    assert names(["mog4", "mog4", "table1"]) == ["mog4", "table1"]
    assert set(OURS) <= set(EXPERIMENTS)
    with pytest.raises(ArgumentError, match="There are table1"):
        names(["xyz"])


def test_a_picture_that_fails_costs_neither_table_nor_words(tiny):
    def fail(results):
        raise RuntimeError("no ink")

    tiny.figure = fail
    assert call("reproduce", "tiny", "--out", "out").exit_code == 0
    text = open("out/tiny.md").read()  # noqa: SIM115
    assert "3 are done." in text
    assert "could not be drawn: RuntimeError: no ink" in text


def test_a_quick_run_of_a_real_experiment():
    result = call("reproduce", "mog4", "--quick", "--only", "sgld", "--out", "out")
    assert result.exit_code == 0, result.output
    content = json.loads(open("out/mog4.json").read())  # noqa: SIM115
    done = [job for job in content["jobs"] if job["status"] == "done"]
    assert [job["arguments"]["method"] for job in done] == ["sgld"]
    assert sum(done[0]["figures"]["weights"]) == pytest.approx(1.0)
    assert done[0]["figures"]["mmd_squared"] > done[0]["figures"]["floor"]
    assert "This is a quick run" in open("out/mog4.md").read()  # noqa: SIM115


def test_training_pays_off_where_the_times_cross():
    ours = {"ess_per_second": 1e4, "overhead_seconds": 30.0}
    theirs = {"ess_per_second": 1e3, "overhead_seconds": 3.0}
    count = races.break_even(ours, theirs)
    assert count is not None
    assert 30.0 + count / 1e4 == pytest.approx(3.0 + count / 1e3)
    assert races.break_even(theirs, ours) is None
    assert races.break_even({**ours, "overhead_seconds": 1.0}, theirs) == 0.0
