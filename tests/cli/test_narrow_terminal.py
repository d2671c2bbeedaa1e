"""At 80 columns, and fewer, no number of a table is cut or broken."""

import io

import pytest
from rich.console import Console

from salmc.cli.tables import print_numbers

COLUMNS = ["name", "mean", "sd", "mcse", "5%", "95%", "ess bulk", "ess tail", "R-hat"]
LARGE = ["-1.23e+05", "4.56e+120", "7.89e-04", "-1.11e+05", "-2.22e-05", "12345678", "23456789"]
SMALL = ["-0.00123", "0.0456", "0.000789", "-1.11e-05", "2.22e-04", "400", "999"]


def printed(rows, width, columns=COLUMNS):
    file = io.StringIO()
    print_numbers(Console(file=file, width=width, highlight=False), columns, rows)
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize(
    "name", ["x", "theta[Choate]", "a" * 45, "wide 名前の長い変数" * 3, "[red]b[/]"]
)
def test_no_number_is_cut(width, name):
    text = printed([[name, *LARGE, "12.345"], [f"{name}2", *SMALL, "1.000"]], width)
    words = text.split()
    for figure in [*LARGE, *SMALL, "12.345", "1.000"]:
        assert words.count(figure) == 1, figure
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    # Nothing of a name is lost either, wherever it is folded.
    if width >= 80 and name.isascii():
        assert name in text or len(name) > 40


def test_what_fits_is_one_table():
    rows = [["x0", "0.0123", "1.00", "0.0100", "-1.64", "1.65", "9876", "9999", "1.001"]]
    assert len(printed(rows, 80).splitlines()) == 2
    assert len(printed([["x" * 30, *rows[0][1:]]], 80).splitlines()) == 3


def test_more_columns_than_fit_go_on_below():
    rows = [["tau", *LARGE, "12.345"]]
    lines = printed(rows, 80).splitlines()
    assert [line.split()[0] for line in lines if line] == ["name", "tau", "name", "tau"]
