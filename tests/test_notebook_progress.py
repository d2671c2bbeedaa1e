"""Progress in notebooks: seen live, escaped, and never the end of the work."""

import json
import sys
import types

import pytest

from salmc import notebook_progress
from salmc.notebook_progress import AbstractNotebook, Jupyter, Marimo, notebook
from salmc.progress import BarReporter, NotebookReporter, SilentReporter, reporter

NOTEBOOK = """
import salmc.progress, time
with salmc.progress.reporter(True) as report:
    report.start("first <part>", 4)
    for _ in range(4):
        time.sleep(0.2)
        report.advance(1, acceptance=0.5)
    report.start("second", 2)
    report.advance(2)
"""


class Kept(AbstractNotebook):
    def __init__(self):
        self.pictures, self.ended = [], 0

    def show(self, content):
        self.pictures.append(content._repr_html_())

    def end(self):
        self.ended += 1


def test_bars_grow_and_stay(monkeypatch):
    monkeypatch.setattr(notebook_progress, "INTERVAL", 0.0)
    place = Kept()
    with NotebookReporter(place) as report:
        report.start("<b>evil", 4)
        report.advance(1, acceptance=0.25)
        report.advance(3)
        report.start("second", 2)
    for share, picture in zip(("0.0000", "0.2500", "1.0000"), place.pictures, strict=False):
        assert f'value="{share}"' in picture
    assert "acceptance 0.25" in place.pictures[1]
    assert "&lt;b&gt;evil" in place.pictures[0]
    assert "1 of 4" in place.pictures[1]
    assert "4 of 4" in place.pictures[-1]
    assert "second" in place.pictures[-1]
    assert place.ended == 1


def test_pictures_are_few():
    place = Kept()
    with NotebookReporter(place) as report:
        report.start("quick", 10_000)
        for _ in range(10_000):
            report.advance(1)
    assert len(place.pictures) < 20
    assert "10,000 of 10,000" in place.pictures[-1]


def test_a_notebook_that_fails_does_not_end_the_work():
    class Broken(Kept):
        def show(self, content):
            raise RuntimeError("gone")

    with NotebookReporter(Broken()) as report:
        report.start("work", 2)
        report.advance(2)


def test_where_we_are(monkeypatch):
    monkeypatch.setitem(sys.modules, "marimo", None)
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert notebook() is None
    assert isinstance(reporter(True), BarReporter)
    assert isinstance(reporter(False), SilentReporter)
    # IPython in a terminal has a shell without a kernel.
    for shell, kind in ((object(), type(None)), (types.SimpleNamespace(kernel=1), Jupyter)):
        module = types.SimpleNamespace(get_ipython=lambda shell=shell: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        assert isinstance(notebook(), kind)
    assert isinstance(reporter(True), NotebookReporter)
    running = types.SimpleNamespace(running_in_notebook=lambda: True)
    monkeypatch.setitem(sys.modules, "marimo", running)
    assert isinstance(notebook(), Marimo)


def test_a_real_notebook():
    """Executed by Jupyter itself, where it is installed."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    import nbformat

    content = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    updates = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, cell_index):
            if message["msg_type"] == "update_display_data":
                updates.append(message)
            return super().process_message(message, cell, cell_index)

    Client(content, timeout=120).execute()
    (output,) = content.cells[0].outputs
    text = output["data"]["text/html"]
    assert "first &lt;part&gt;" in text
    assert "4 of 4" in text
    assert "2 of 2" in text
    assert len(updates) >= 4, json.dumps(content)
