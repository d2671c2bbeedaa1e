"""Progress in Jupyter and in marimo, live, by what they have themselves: no widgets are needed.

A bar is a piece of HTML in the cell's output that is replaced as the work goes on. It takes its
ink from the notebook, and stays in the notebook when the work is done, with the time it took.
"""

import abc
import contextlib
import dataclasses
import html
import sys
import time
from typing import Any

INTERVAL = 0.15
"""Seconds between two pictures: more would fill the notebook's pipe, not tell more."""


class AbstractNotebook(abc.ABC):
    """A place in the output of the running cell."""

    @abc.abstractmethod
    def show(self, content: "_Html") -> None:
        """Put it there, instead of what was there."""

    @abc.abstractmethod
    def end(self) -> None:
        """The work is done."""


class Jupyter(AbstractNotebook):
    """By a display that has a name, under which it is updated."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, content: "_Html") -> None:
        if self._handle is None:
            from IPython.display import display

            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)

    def end(self) -> None:
        pass


class Marimo(AbstractNotebook):
    """By the output of the cell, which its last line replaces when the cell has run."""

    def show(self, content: "_Html") -> None:
        import marimo

        marimo.output.replace(marimo.Html(content._repr_html_()))

    def end(self) -> None:
        import marimo

        marimo.output.clear()


def notebook() -> AbstractNotebook | None:
    """The notebook that this runs in; None elsewhere, as in a terminal, IPython's included."""
    # What runs us was imported before: nothing is imported only to find out.
    marimo = sys.modules.get("marimo")
    if marimo is not None and getattr(marimo, "running_in_notebook", bool)():
        return Marimo()
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return Jupyter() if getattr(shell, "kernel", None) is not None else None


@dataclasses.dataclass
class _Task:
    description: str
    total: int
    began: float
    done: int = 0
    figures: dict[str, float] = dataclasses.field(default_factory=dict)
    ended: float | None = None


class NotebookBars:
    """A line for each piece of the work: bar, steps, time, and the latest figures."""

    def __init__(self, place: AbstractNotebook) -> None:
        self._place: AbstractNotebook | None = place
        self._tasks: list[_Task] = []
        self._shown = 0.0

    def start(self, description: str, total: int) -> None:
        """As of a reporter, as are the others."""
        self._end_last()
        self._tasks.append(_Task(description, total, time.monotonic()))
        self._show(always=True)

    def advance(self, steps: int, **figures: float) -> None:
        """Draw anew, now and then."""
        if self._tasks:
            self._tasks[-1].done += steps
            self._tasks[-1].figures = figures
            self._show()

    def stop(self) -> None:
        """Leave the bars as they are."""
        self._end_last()
        if self._tasks and self._tasks[-1].ended is not None:
            self._show(always=True)
            place, self._tasks = self._place, []
            if place is not None:
                with contextlib.suppress(Exception):
                    place.end()

    def _end_last(self) -> None:
        if self._tasks and self._tasks[-1].ended is None:
            self._tasks[-1].ended = time.monotonic()

    def _show(self, *, always: bool = False) -> None:
        now = time.monotonic()
        if self._place is None or (now - self._shown < INTERVAL and not always):
            return
        self._shown = now
        try:
            self._place.show(_Html("".join(_line(task, now) for task in self._tasks)))
        except Exception:
            # The work matters more than the sight of it, in whatever notebook.
            self._place = None


class _Html:
    """What notebooks show as HTML, and others as nothing much."""

    def __init__(self, lines: str) -> None:
        self._lines = lines

    def _repr_html_(self) -> str:
        return (
            f'<div style="font-variant-numeric: tabular-nums; color: inherit;">{self._lines}</div>'
        )

    def __repr__(self) -> str:
        return "progress"


def _line(task: _Task, now: float) -> str:
    share = min(1.0, task.done / task.total) if task.total > 0 else 0.0
    seconds = (now if task.ended is None else task.ended) - task.began
    told = f"{task.done:,} of {task.total:,} · {_clock(seconds)}"
    if task.ended is None and 0.0 < share < 1.0:
        told += f", {_clock(seconds * (1.0 - share) / share)} to go"
    figures = "  ".join(f"{name} {value:.3g}" for name, value in task.figures.items())
    return (
        '<div style="display: flex; flex-wrap: wrap; gap: 0 .9em; align-items: center;">'
        f'<span style="min-width: 11em;">{html.escape(task.description)}</span>'
        f'<progress value="{share:.4f}" max="1" style="width: 14em;">{share:.0%}</progress>'
        f'<span style="opacity: .8;">{told}</span>'
        f'<span style="opacity: .6;">{html.escape(figures)}</span></div>'
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
