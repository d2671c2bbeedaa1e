"""`import salmc`, alone and with `fit`, against `import jax, equinox`, in fresh interpreters."""

import subprocess
import sys
import time

from benchmarks.common import record

ROUNDS = 5


def seconds(statement: str) -> float:
    """Wall time of a fresh interpreter that runs the statement."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - began


def main() -> None:
    """Wanted: a ratio of at most 2, all of it loaded."""
    alone, ours, theirs = [], [], []
    for _ in range(ROUNDS):
        theirs.append(seconds("import jax, equinox"))
        alone.append(seconds("import salmc"))
        ours.append(seconds("from salmc import fit"))
    record(
        "import_time",
        {
            "salmc": min(alone),
            "salmc, fit": min(ours),
            "jax, equinox": min(theirs),
            "ratio": min(ours) / min(theirs),
        },
    )
