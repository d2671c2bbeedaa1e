"""Run jobs one after the other: kept results are read, failures are told and passed over.

Jobs run in one process and not side by side: many of them measure time.
"""

import dataclasses
import time
from collections.abc import Callable, Iterable

from salmc.errors import reason
from salmc_paper.harness.jobs import Job, NotAvailableError, Record, in_order
from salmc_paper.harness.progress import AbstractJobReporter, SilentJobReporter
from salmc_paper.harness.store import AbstractStore, without_arrays


@dataclasses.dataclass(frozen=True)
class Cost:
    """What is ahead.

    Attributes:
        jobs: how many in all, with those that others need.
        kept: how many have a result already.
        seconds: an estimate for the others.
    """

    jobs: int
    kept: int
    seconds: float


def cost(jobs: Iterable[Job], store: AbstractStore) -> Cost:
    """What running these jobs would take."""
    ordered = in_order(jobs)
    missing = [job for job in ordered if not store.read(job).done]
    return Cost(len(ordered), len(ordered) - len(missing), sum(job.seconds for job in missing))


def run_jobs(
    jobs: Iterable[Job],
    store: AbstractStore,
    *,
    report: AbstractJobReporter | None = None,
    stopped: Callable[[], bool] = lambda: False,
    again: bool = False,
) -> list[Record]:
    """Run what has no result yet, and what that needs.

    Args:
        jobs: what is wanted.
        store: where results are kept.
        report: told about each job.
        stopped: whether Ctrl-C was pressed. Training and sampling end early and in good order
            when it is, so their result is whole in form only: it is not kept.
        again: run also what has a result, which is then replaced.

    Returns:
        A record of every job, in the order in which they ran, without arrays.

    Raises:
        OutputError: if results cannot be written; what was kept before stays.
        KeyboardInterrupt: if the run was stopped; likewise.
    """
    report = report or SilentJobReporter()
    ordered = in_order(jobs)
    records: dict[tuple[str, str], Record] = {}
    report.expect(len(ordered))
    try:
        for job in ordered:
            needed = tuple(records[need.experiment, need.key] for need in job.needs)
            report.begin(job)
            record = store.read(job)
            kept = record.done and not again
            if not kept:
                record = _run(job, needed, store, stopped)
            records[job.experiment, job.key] = without_arrays(record)
            report.end(record, kept=kept)
    finally:
        report.stop()
    return list(records.values())


def _run(
    job: Job, needed: tuple[Record, ...], store: AbstractStore, stopped: Callable[[], bool]
) -> Record:
    for need in needed:
        if not need.done:
            # The root of it, in the same words, so that lists name it once.
            return store.write_failure(job, need.status, need.sentence)
    needed = tuple(store.read(need.job) for need in needed)
    context = store.context(job, needed)
    began, used = time.perf_counter(), time.process_time()
    try:
        product = job.function(context)
    except NotAvailableError as error:
        return store.write_failure(job, "not available", str(error))
    except Exception as error:
        if stopped():
            raise KeyboardInterrupt from error
        return store.write_failure(job, "failed", reason(error))
    if stopped():
        raise KeyboardInterrupt
    took, used = time.perf_counter() - began, time.process_time() - used
    return store.write(job, product, took, used)
