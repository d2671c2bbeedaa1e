"""What tables and sentences say about results, and when they say it."""

import math

import pytest

from made_up_results import results_of
from salmc_paper.display.tables import Table, number, ratio, with_all
from salmc_paper.experiments import races, rows, six_modes, table1, table2
from salmc_paper.harness.jobs import Results
from salmc_paper.registry import load


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
