"""`import salmc` against `import jax, equinox`, each in fresh interpreters, turn by turn."""

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
    """Wanted: a ratio of at most 2."""
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(seconds("import jax, equinox"))
        ours.append(seconds("import salmc"))
    record(
        "import_time",
        {"salmc": min(ours), "jax, equinox": min(theirs), "ratio": min(ours) / min(theirs)},
    )
