"""The experiments by name. Each is a module of `experiments` that is imported when it is run.

An experiment module has

    TITLE, PAPER      a heading, and what the paper shows and claims
    jobs(plan)        the jobs, for a full or a quick run
    tables(results)   Markdown tables: paper, ours, ratio
    figure(results)   a picture in which the claim can be seen, or None
    words(results)    what we see, in sentences made from the numbers
"""

import difflib
import importlib
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast, runtime_checkable

from salmc.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from salmc_paper.display.tables import Table
    from salmc_paper.harness.jobs import Job, Plan, Results


@runtime_checkable
class Experiment(Protocol):
    """What an experiment's module has."""

    TITLE: str
    PAPER: str
    WHY: tuple[str, ...]

    def jobs(self, plan: "Plan") -> "list[Job]":
        """What is computed."""

    def tables(self, results: "Results") -> "list[Table]":
        """What is printed."""

    def figure(self, results: "Results") -> "Figure | None":
        """What is drawn."""

    def words(self, results: "Results") -> list[str]:
        """What is seen."""


class Entry(NamedTuple):
    """Where an experiment is, and one line about it."""

    module: str
    explanation: str


EXPERIMENTS: dict[str, Entry] = {
    "table1": Entry("table1", "ESS and speed on Ring, Mog2, Mog6 and Ring5, beside every rival"),
    "table2": Entry("table2", "the same for three Bayesian logistic regressions, with accuracy"),
    "mog10": Entry("mog10", "errors against the number of particles in five dimensions"),
    "mog4": Entry("mog4", "particles on four distant modes of varied width"),
    "mog6": Entry("mog6", "draws of learned kernels on six modes, and how fast MMD falls"),
    "convergence": Entry("convergence", "autocorrelation and acceptance on six modes"),
    "ring-chains": Entry("ring_chains", "one chain of 200 draws against 200 chains of one"),
    "german-epochs": Entry("german_epochs", "ESS and accuracy against the length of training"),
    "mnist": Entry("mnist", "a chain over digits: classes, jumps, Fréchet distance, copies"),
    "faces": Entry("faces", "a chain over faces, CelebA where there is one"),
}


def names(asked: list[str]) -> list[str]:
    """The experiments that were asked for, in order; "all" is every one.

    Raises:
        ArgumentError: if there is none of that name.
    """
    found: list[str] = []
    for name in asked:
        if name != "all" and name not in EXPERIMENTS:
            known = [*EXPERIMENTS, "all"]
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
            remedy = f"Did you mean {near[0]}?" if near else f"There are {', '.join(known)}."
            raise ArgumentError(f"There is no experiment `{name}`. {remedy}")
        found += list(EXPERIMENTS) if name == "all" else [name]
    return list(dict.fromkeys(found))


def load(name: str) -> Experiment:
    """The module of an experiment."""
    module = importlib.import_module(f"salmc_paper.experiments.{EXPERIMENTS[name].module}")
    return cast(Experiment, module)
