"""`salmc reproduce`: the command, its files and its exit codes."""

import json
import subprocess
import sys
import types

import pytest

from command import call
from salmc.errors import ArgumentError
from salmc.report import style
from salmc_paper import registry
from salmc_paper.display.tables import Table
from salmc_paper.harness.jobs import Job
from salmc_paper.registry import EXPERIMENTS, names


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")


@pytest.fixture
def tiny(monkeypatch):
    """An experiment of three jobs, the second of which does what the test says."""
    module = types.ModuleType("salmc_paper.experiments.tiny")
    module.TITLE, module.PAPER, module.WHY = "Tiny", "Nothing.", ("It is tiny.",)
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
    monkeypatch.setitem(sys.modules, "salmc_paper.experiments.tiny", module)
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
    assert "*Why.*\n\n- It is tiny." in page
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
    assert {"table1", "table2", "mog6", "german-epochs", "mnist"} <= set(EXPERIMENTS)
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


def test_help_lists_the_command_and_waits_for_nothing():
    program = """
import sys
from salmc.cli import app
print("salmc_paper" in sys.modules)
try:
    app(["--help"])
except SystemExit:
    print([name for name in ("jax", "numpy", "matplotlib") if name in sys.modules])
"""
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert told[0] == "False"
    assert any("reproduce" in line and "Run the paper's experiments" in line for line in told)
    assert told[-1] == "[]"
