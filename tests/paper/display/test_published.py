"""The published numbers are those of the paper's source, where it is at hand."""

import re
from pathlib import Path

import pytest

from salmc_paper.display import published

SOURCE = Path(__file__).parents[4] / "shared" / "paper" / "sal-mc.tex"


@pytest.fixture(scope="module")
def paper():
    if not SOURCE.exists():
        pytest.skip("the paper's source is not here")
    return SOURCE.read_text(encoding="utf-8")


def rows_of(paper, label):
    """(method, MH) ↦ cells of a table, as the LaTeX has them."""
    end = paper.index(f"\\label{{{label}}}")
    body = paper[paper.rindex("\\begin{tabular}", 0, end) : end]
    body = re.sub(r"\\(textbf|textit|it)\b|[{}]", "", body)
    found, method = {}, None
    for line in body.split("\\\\"):
        name = re.search(r"\\multirow\S*?(SAL-MC|A-NICE-MC)", line)
        method = name.group(1).lower() if name else method
        cells = [cell.strip() for cell in line.split("&")]
        if method and len(cells) > 2 and cells[1] in ("-", "MH"):
            found[method, cells[1] == "MH"] = cells[2:]
    return found


@pytest.mark.parametrize(
    ("label", "targets"),
    [
        ("tab:tab1", ("ring", "mog2", "mog6", "ring5")),
        ("tab:tab2", ("heart", "australian", "german")),
    ],
)
def test_tables_are_the_papers(paper, label, targets):
    rows = rows_of(paper, label)
    assert set(rows) == {(m, h) for m in ("sal-mc", "a-nice-mc") for h in (False, True)}
    for (method, metropolis), cells in rows.items():
        assert len(cells) == len(targets)
        for target, cell in zip(targets, cells, strict=True):
            ess = published.ess(method, metropolis, target)
            speed = published.ess_per_second(method, metropolis, target)
            if "/" in cell and cell != "N/A":
                assert (ess.value, speed.value) == tuple(map(float, cell.split("/")))
            else:
                assert ess is None
                assert speed is None


def test_accuracies_are_the_papers(paper):
    text = re.search(r"respectively ([\d.]+)\\%, ([\d.]+)\\% and ([\d.]+)\\%", paper)
    for target, number in zip(("heart", "australian", "german"), text.groups(), strict=True):
        for method in ("sal-mc", "a-nice-mc"):
            assert published.accuracy(method, target).value == pytest.approx(float(number) / 100)


def test_sentences_are_the_papers(paper):
    assert "both POS and SGLD achieve a very low ESS that is around 10" in paper
    assert published.ess("pos", False, "ring").value == 10
    assert published.ess("sgld", False, "ring5").value == 10
    assert r"$\hat{R} = 1.00$ using 32 chains" in paper
    assert (published.RHAT.value, published.CHAINS.value) == (1.00, 32)
    assert "ESS (2000 maximum)" in paper
    assert published.DRAWS.value == 2000


def test_every_number_says_where_it_stands():
    numbers = published.all_numbers()
    assert len(numbers) == 2 * (3 + 4 + 4 + 3 + 3 + 3) + 3
    assert all(entry.where for _, entry in numbers)
    assert published.ess("a-nice-mc", False, "ring") is None
    assert published.ess("pos", False, "heart") is None
