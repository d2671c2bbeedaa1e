"""`python -m benchmarks [name …]`: run what has no result yet of these benchmarks, or of all."""

import argparse
import importlib
import sys
from pathlib import Path

from salmc.cli.console import INTERRUPTED, Interrupts
from salmc_paper.harness.jobs import Job
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
    "honesty",
    "first_answer",
)
RESULTS = Path(__file__).parent / "results"


def jobs_of(name: str) -> list[Job]:
    """The jobs of a benchmark."""
    return list(importlib.import_module(f"benchmarks.{name}").jobs())


def results(folder: Path = RESULTS) -> OneFileStore:
    """Where results are kept."""
    return OneFileStore(folder, lambda name: f"python -m benchmarks {name}")


def main(words: list[str] | None = None) -> int:
    """Run, and tell where the results are; 1 if a job failed, 2 for a name that is not there."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    asked = parser.parse_args(words)
    names = asked.names or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"No benchmark is called {unknown[0]!r}; there are {', '.join(NAMES)}.")
        return 2
    store, failed = results(), False
    with Interrupts() as interrupts:
        for name in names:
            try:
                records = run_jobs(
                    jobs_of(name),
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
