"""`import salmc`, alone and with `fit`, against `import jax, equinox`, in fresh interpreters."""

import functools
from typing import Any

from salmc_paper.harness.jobs import Context, Job
from salmc_paper.harness.processes import fresh_python
from salmc_paper.harness.timing import take_turns

STATEMENTS = {
    "salmc": "import salmc",
    "salmc, fit": "from salmc import fit",
    "jax, equinox": "import jax, equinox",
}


def jobs() -> list[Job]:
    """All contenders in one."""
    return [Job("import_time", "import salmc", {"turns": 5}, _run, entry=())]


def _run(context: Context) -> dict[str, Any]:
    """Wanted: a ratio of at most 2, all of it loaded."""
    contenders = {
        name: functools.partial(fresh_python, "-c", statement)
        for name, statement in STATEMENTS.items()
    }
    timed = take_turns(contenders, turns=context["turns"], untimed=0)
    seconds = {name: turns.best for name, turns in timed.items()}
    return {**seconds, "ratio": seconds["salmc, fit"] / seconds["jax, equinox"]}
