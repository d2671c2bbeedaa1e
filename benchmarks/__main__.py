"""`python -m benchmarks [name …]`: run what has no result yet of these benchmarks, or of all."""

import argparse
import importlib
import sys
from pathlib import Path

from salmc.cli.console import INTERRUPTED, Interrupts
from salmc_paper.harness.jobs import Job, chosen
from salmc_paper.harness.one_file import OneFileStore
from salmc_paper.harness.progress import JobBar
from salmc_paper.harness.runner import run_jobs

NAMES = (
    "import_time",
    "svgd_step",
    "many_particles",
    "ag_svgd_quality",
    "affine_change",
    "mog10",
    "tuning",
    "fit_time",
    "learned_kernels",
    "ablation",
    "a_nice_mc",
    "nuts_references",
    "hard_posteriors",
    "hundred_dimensions",
    "million_rows",
    "known_marginals",
    "honesty",
    "first_answer",
    "evidence",
    "peers",
)
QUICK = ("peers",)
"""Benchmarks that have a run of a few minutes."""

RESULTS = Path(__file__).parent / "results"
QUICK_RESULTS = Path("runs") / "benchmarks-quick"


def jobs_of(name: str, *, quick: bool = False) -> list[Job]:
    """The jobs of a benchmark."""
    module = importlib.import_module(f"benchmarks.{name}")
    return list(module.jobs(quick=True) if quick else module.jobs())


def results(folder: Path = RESULTS) -> OneFileStore:
    """Where results are kept."""
    return OneFileStore(folder, lambda name: f"python -m benchmarks {name}")


def main(words: list[str] | None = None) -> int:
    """Run, and tell where the results are; 1 if a job failed, 2 for a name that is not there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    parser.add_argument("--quick", action="store_true", help=f"a few minutes of {QUICK[0]}")
    parser.add_argument("--only", action="append", default=[], help="words of jobs' arguments")
    asked = parser.parse_args(words)
    names = asked.names or list(QUICK if asked.quick else NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"No benchmark is called {unknown[0]!r}; there are {', '.join(NAMES)}.")
        return 2
    if asked.quick and not set(names) <= set(QUICK):
        print(f"There is no quick run of {next(n for n in names if n not in QUICK)!r}.")
        return 2
    store, failed = results(QUICK_RESULTS) if asked.quick else results(), False
    with Interrupts() as interrupts:
        for name in names:
            try:
                records = run_jobs(
                    chosen(jobs_of(name, quick=asked.quick), asked.only),
                    store,
                    report=JobBar(),
                    stopped=lambda: interrupts.seen,
                    again=asked.again,
                )
            except KeyboardInterrupt:
                print("Interrupted; what was done is kept.")
                return INTERRUPTED
            failed = failed or not all(record.done for record in records)
            print(store.place(name), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
