"""How far a run of many jobs is: a bar over all of them, and a line for each that ended."""

import abc
import time

from rich.markup import escape

from salmc.progress import BarReporter
from salmc_paper.harness.jobs import Job, Record


class AbstractJobReporter(abc.ABC):
    """Told about each job."""

    @abc.abstractmethod
    def expect(self, total: int) -> None:
        """`total` jobs are ahead."""

    @abc.abstractmethod
    def begin(self, job: Job) -> None:
        """A job begins."""

    @abc.abstractmethod
    def end(self, record: Record, *, kept: bool) -> None:
        """A job ended; `kept` if its result was there before."""

    @abc.abstractmethod
    def stop(self) -> None:
        """All ended, well or not."""


class SilentJobReporter(AbstractJobReporter):
    """Says nothing."""

    def expect(self, total: int) -> None:
        del total

    def begin(self, job: Job) -> None:
        del job

    def end(self, record: Record, *, kept: bool) -> None:
        del record, kept

    def stop(self) -> None:
        pass


class JobBar(BarReporter, AbstractJobReporter):
    """A Rich bar on standard error: experiment, job, how many are done, time so far.

    Each job that was computed leaves a line above the bar, so that a log file shows progress, too.
    """

    def expect(self, total: int) -> None:
        self._total, self._done, self._began = total, 0, time.perf_counter()
        self.start("", total)

    def begin(self, job: Job) -> None:
        if self._task is not None:
            told = f"[cyan]{job.experiment}[/] {escape(job.name)}"
            self._progress.update(self._task, description=told)

    def end(self, record: Record, *, kept: bool) -> None:
        self._done += 1
        self.advance(1)
        if kept:
            return
        if record.done:
            told = f"{record.seconds:.1f} s"
        else:
            told = f"[red]{record.status}[/]: {escape(record.sentence)}"
        elapsed = time.perf_counter() - self._began
        self._progress.console.print(
            f"[dim]{self._done:>4}/{self._total} {elapsed:6.0f} s[/]  "
            f"[cyan]{record.job.experiment}[/] {escape(record.job.name)}: {told}",
            highlight=False,
            soft_wrap=True,
        )
