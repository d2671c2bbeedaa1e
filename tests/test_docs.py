"""The pages agree with the package and with each other. `make docs` runs them; this is quick."""

import ast
import importlib
import importlib.util
import re
from pathlib import Path

import pytest

import salmc

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(file for file in DOCS.rglob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
BASE = "https://github.com/salmc/salmc"
SITE = "https://salmc.github.io/salmc/"
NAMESPACES = ("diagnostics", "images", "kernels", "learning", "movers", "targets")
MODULES = {"salmc": salmc} | {f"salmc.{n}": getattr(salmc, n) for n in NAMESPACES}


def name_of(file: Path) -> str:
    return str(file.relative_to(ROOT))


def entries(page: Path) -> list[Path]:
    """The pages in the tables of contents of a page."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [page.parent / f"{line}.md" for line in lines if line and not line.startswith(":")]


def code(page: Path) -> list[str]:
    """Python that a page shows, in the order of the page."""
    blocks = re.findall(
        r"```(?:python|\{code-cell\} python)\n(.*?)```",
        page.read_text(encoding="utf-8"),
        re.DOTALL,
    )
    lines = (block.splitlines() for block in blocks)
    return ["\n".join(x for x in block if not x.startswith((":tags:", "%%"))) for block in lines]


def test_every_page_is_in_a_table_of_contents():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        assert page.exists(), f"{name_of(page)} is in a table of contents, and not there"
        if page not in reached:
            reached.add(page)
            waiting += entries(page)
    assert set(PAGES) - reached == set()


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    # A picture or page of our own is linked by its full address where it is read on PyPI.
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(f"{BASE}/raw/main/"):
            place = ROOT / link.removeprefix(f"{BASE}/raw/main/")
        elif link.startswith(SITE):
            place = (DOCS / link.removeprefix(SITE)).with_suffix(".md")
        elif re.match(r"[a-z]+:|#", link):
            continue
        else:
            place = page.parent / link.partition("#")[0]
        assert place.exists(), f"{name_of(page)} links to {link}"
    for told in re.findall(r"\{doc\}`([^`]+)`", text):
        place = re.sub(r".*<(.*)>", r"\1", told)
        assert (page.parent / f"{place}.md").exists(), f"{name_of(page)} refers to {place}"


def test_what_is_read_on_pypi_has_full_addresses():
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert [link for link in links if not link.startswith("https://")] == []
    assert any(link.endswith(".png") for link in links)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_in_the_reference(module):
    told = "\n".join(file.read_text(encoding="utf-8") for file in DOCS.glob("reference/*.md"))
    documented = set(re.findall(r"^\.\. (?:auto\w+|py:\w+):: (\S+)$", told, re.MULTILINE))
    wanted = {f"{module}.{name}" for name in MODULES[module].__all__}
    assert wanted - documented - set(MODULES) == set()


def test_whatever_is_in_the_reference_exists():
    for file in DOCS.glob("reference/*.md"):
        for full in re.findall(r"^\.\. \S+:: (salmc\S+)$", file.read_text("utf-8"), re.MULTILINE):
            home, _, name = full.rpartition(".")
            assert hasattr(importlib.import_module(home), name), full


@pytest.mark.parametrize("page", [p for p in TEXTS if code(p)], ids=name_of)
def test_code_parses_and_names_what_there_is(page):
    for block in code(page):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute):
                full = ast.unparse(node)
                if re.fullmatch(r"salmc(\.\w+)+", full):
                    found = salmc
                    for part in full.split(".")[1:]:
                        found = getattr(found, part)


@pytest.mark.parametrize("page", [p for p in PAGES if "{code-cell}" in p.read_text()], ids=name_of)
def test_code_of_cells_fits_on_the_page(page):
    assert [line for block in code(page) for line in block.splitlines() if len(line) > 84] == []


def test_the_charts_of_the_architecture_can_be_drawn():
    place = DOCS / "_site" / "chart.py"
    spec = importlib.util.spec_from_file_location("chart", place)
    chart = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chart)
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    sources = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    drawn = [chart.drawn(source) for source in sources]
    assert [d.count('class="station') for d in drawn] == [s.count('["') for s in sources]
    assert "learning.engine" in drawn[0]
    assert "answers.replicas" in drawn[1]
    with pytest.raises(ValueError, match="not a node"):
        chart.drawn("flowchart TD\n a{what} --> b")
