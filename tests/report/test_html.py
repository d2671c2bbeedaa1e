"""The page of a run: whole, escaped, without anything from elsewhere."""

import dataclasses
import json
import re
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import OutputError
from salmc.report.html import MOST_ROWS, render, write_html
from salmc.report.illustrations import Illustration, Illustrations
from salmc.sampling.draws import Draws
from salmc.sampling.files.folder import write_run
from salmc.target import Target

EVIL = "<script>alert('x')</script>\"&"


class Page(HTMLParser):
    """What the page holds; fails where a tag is closed that is not open."""

    VOID = ("meta", "img", "source", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses, self.words = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href", "srcset")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.words += data


def make_draws(name="plain", dim=2, kind="chains", **fields):
    names = [f"{name}{i}" for i in range(dim)]
    target = Target(lambda x: -0.5 * jnp.sum(x**2), dim, name=name, names=names)
    positions = np.random.default_rng(0).normal(size=(20, 60, dim)).astype(np.float32)
    log_density = -0.5 * np.sum(positions**2, axis=-1)
    return Draws(positions, log_density, 1.0, kind, target=target, method="test", **fields)


def write(draws, folder, *, judged=True, **options):
    options = {"plots": None, "command": "salmc run it --seed 3", "spec": "it", **options}
    return write_run(draws, folder, summary=draws.summary() if judged else None, **options)


def test_the_page_tells_all_and_loads_nothing(tmp_path):
    settings = {"seed": 3, "training": {"pool_size": 99}, "training_seconds": {"mover": 1.5}}
    folder = tmp_path / "out"
    write(make_draws(settings=settings), folder, extras=lambda place: write_html(place) and None)
    text = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert 'class="verdict good"' in text
    assert page.words.index("Trustworthy") < page.words.index("bias: KSD²")
    diagnostics = json.loads((folder / "diagnostics.json").read_text())
    for row in diagnostics["table"]["rows"]:
        for cell in row:
            assert cell in page.words
    for label, value in diagnostics["table"]["figures"]:
        assert label in page.words
        assert value in page.words
    for word in ("salmc run it --seed 3", "pool_size", "99", "jaxlib", "training seconds"):
        assert word in page.words
    assert page.addresses == []
    assert "script" not in page.tags
    assert not re.search(r"https?://|@import|url\(", text)
    assert "prefers-color-scheme: dark" in text
    assert "default-src 'none'" in text


def test_where_nothing_was_trained_the_page_speaks_of_no_training(tmp_path):
    """Chains along the gradient: what moves them, what it took to find that, and the search."""
    chosen = {"kernel": "mixture", "exact": True, "search_seconds": 12.3}
    draws = make_draws(settings={**chosen, "training": {"step_size": 0.5, "length": 2}})
    draws = dataclasses.replace(draws, method="gradient", seen=draws.positions[:, -1])
    write_run(draws, tmp_path / "out", summary=draws.summary(hunt=False), plots=None)
    words = Page(render(tmp_path / "out")).words
    assert "missed by draws" in words
    assert "after 12.3 s of preparation" in words
    assert "trajectories along the gradient" in words
    assert "rain" not in words.replace("constrain", "")
    assert "kernel mixture" not in words


def test_pictures_are_part_of_the_page(tmp_path):
    def plots(draws, folder):
        words = [Illustration(n, n.upper(), "", n, b"light", b"dark") for n in ("draws", "trace")]
        (folder / "my <own>.png").write_bytes(b"not really a picture")
        return Illustrations(tuple(words)).write(folder)

    write(make_draws(), tmp_path / "out", plots=plots)
    page = Page(render(tmp_path / "out"))
    assert len(page.addresses) == 5
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert page.words.index("DRAWS") < page.words.index("TRACE") < page.words.index("my <own>")


def test_everything_is_escaped(tmp_path):
    draws = make_draws(EVIL, settings={EVIL: EVIL, "more": {EVIL: EVIL}}, warnings=(EVIL,))
    write(draws, tmp_path / "out", spec=EVIL, command=EVIL)
    text = render(tmp_path / "out")
    page = Page(text)
    assert "script" not in page.tags
    assert "<script" not in text
    assert page.words.count(EVIL) >= 8


def test_what_is_wrong_comes_first_and_in_red(tmp_path):
    draws = make_draws(warnings=("Interrupted at step 3.",))
    write(draws, tmp_path / "out")
    text = render(tmp_path / "out")
    assert 'class="verdict bad"' in text
    words = Page(text).words
    assert words.index("Not trustworthy") < words.index("Interrupted at step 3.")
    assert words.index("Interrupted at step 3.") < words.index("Numbers")
    assert words.count("Interrupted at step 3.") == 1


def test_warnings_after_the_verdict_are_told(tmp_path):
    def plots(draws, folder):
        return ("The picture trace.png could not be drawn: no ink",)

    write(make_draws(), tmp_path / "out", plots=plots)
    assert "no ink" in Page(render(tmp_path / "out")).words


def test_a_run_without_diagnostics(tmp_path):
    write(make_draws(), tmp_path / "out", judged=False)
    text = render(tmp_path / "out")
    assert 'class="verdict bad"' in text
    assert "Not judged" in Page(text).words


@pytest.mark.parametrize("kind", ["chains", "particles"])
def test_many_coordinates_and_no_target(tmp_path, kind):
    draws = make_draws(dim=MOST_ROWS + 5, kind=kind)
    draws = dataclasses.replace(draws, target=None)
    write(draws, tmp_path / "out")
    text = render(tmp_path / "out")
    assert "… and 5 more in diagnostics.json." in Page(text).words
    assert ("R-hat</th>" in text) == (kind == "chains")


def test_a_folder_that_is_none(tmp_path):
    with pytest.raises(OutputError, match="no run folder"):
        write_html(tmp_path / "nowhere")
