"""Progress goes through one reporter object: long work never prints by itself."""

import abc

from salmc.notebook_progress import NotebookBars, notebook


class AbstractReporter(abc.ABC):
    """Told how far long work has come; a context manager around that work."""

    @abc.abstractmethod
    def start(self, description: str, total: int) -> None:
        """A new piece of work of `total` steps begins."""

    @abc.abstractmethod
    def advance(self, steps: int, **figures: float) -> None:
        """`steps` more are done; `figures` are worth showing beside the bar."""

    @abc.abstractmethod
    def stop(self) -> None:
        """The work ended, well or not."""

    def __enter__(self) -> "AbstractReporter":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class SilentReporter(AbstractReporter):
    """Says nothing."""

    def start(self, description: str, total: int) -> None:
        del description, total

    def advance(self, steps: int, **figures: float) -> None:
        del steps, figures

    def stop(self) -> None:
        pass


class BarReporter(AbstractReporter):
    """A Rich progress bar on standard error, with the latest figures beside it."""

    def __init__(self) -> None:
        from rich import console, progress

        self._progress = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("[dim]{task.fields[figures]}"),
            console=console.Console(stderr=True),
        )
        self._task: progress.TaskID | None = None

    def start(self, description: str, total: int) -> None:
        self._progress.start()
        self._task = self._progress.add_task(description, total=total, figures="")

    def advance(self, steps: int, **figures: float) -> None:
        if self._task is None:
            return
        text = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
        self._progress.update(self._task, advance=steps, figures=text)

    def stop(self) -> None:
        self._progress.stop()


class NotebookReporter(NotebookBars, AbstractReporter):
    """Bars in the output of a notebook's cell."""


class PartReporter(AbstractReporter):
    """For one of several parts of the work: the end of the part is not the end of the whole."""

    def __init__(self, whole: AbstractReporter) -> None:
        self._whole = whole

    def start(self, description: str, total: int) -> None:
        self._whole.start(description, total)

    def advance(self, steps: int, **figures: float) -> None:
        self._whole.advance(steps, **figures)

    def stop(self) -> None:
        pass


def reporter(progress: "bool | AbstractReporter") -> AbstractReporter:
    """True: a bar, of the notebook where we are in one; False: silence; a reporter: itself."""
    if isinstance(progress, AbstractReporter):
        return progress
    if not progress:
        return SilentReporter()
    place = notebook()
    return BarReporter() if place is None else NotebookReporter(place)
