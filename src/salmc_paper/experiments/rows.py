"""The rows of the paper's two tables: learned kernels with and without a Metropolis step."""

import math
from collections.abc import Callable
from typing import NamedTuple

from salmc_paper.display import published
from salmc_paper.display.tables import DASH, median, number, ratio, with_all
from salmc_paper.display.tables import published as printed
from salmc_paper.experiments.chains import kernel_chains
from salmc_paper.experiments.training import training
from salmc_paper.harness.jobs import Job, Plan, Record, Results


class Row(NamedTuple):
    """A sampler that the tables show.

    Attributes:
        title: how it is called.
        method, kernel: as `fit` calls them.
        metropolis: whether proposals may be rejected.
        paper: (method, metropolis) of the paper's row that it is compared with, or None.
    """

    title: str
    method: str
    kernel: str
    metropolis: bool
    paper: tuple[str, bool] | None

    @property
    def arguments(self) -> dict[str, object]:
        """By which its jobs are found."""
        return {"method": self.method, "kernel": self.kernel, "metropolis": self.metropolis}


RIVAL = "a-nice-mc"

ROWS = (
    Row("SAL-MC, MLP", "sal-mc", "mlp", False, ("sal-mc", False)),
    Row("SAL-MC, MLP, p(x′)/p(x)", "sal-mc", "mlp", True, ("sal-mc", True)),
    Row("SAL-MC, flow", "sal-mc", "flow", False, ("sal-mc", False)),
    Row("SAL-MC, flow, exact MH", "sal-mc", "flow", True, ("sal-mc", True)),
    Row("SAL-MC, NICE, exact MH", "sal-mc", "nice", True, ("sal-mc", True)),
    Row("A-NICE-MC", RIVAL, "nice", False, None),
    Row("A-NICE-MC, exact MH", RIVAL, "nice", True, (RIVAL, True)),
)
"""Rows with a Metropolis step that is exact say so; p(x′)/p(x) is the paper's, which is not."""

STEPS_QUICK = {"mlp": 400, "flow": 200, "nice": 100}
TRAINING_SECONDS = {"mlp": 30.0, "flow": 35.0, "nice": 60.0}
RIVAL_SECONDS = 200.0


def quick_steps(plan: Plan, kernel: str) -> int | None:
    """Steps of a quick run; None for the kernel's own number."""
    return STEPS_QUICK[kernel] if plan.quick else None


def trainings(plan: Plan, target: str, kernel: str, method: str = "sal-mc") -> list[Job]:
    """One training for each seed."""
    rival = method == RIVAL
    # The rival's network is large, whoever trains it.
    dear = rival or kernel == "nice"
    count = plan.number("rival_seeds", 1, 1) if dear else plan.number("seeds", 3, 1)
    seconds = RIVAL_SECONDS if rival else TRAINING_SECONDS[kernel]
    steps = quick_steps(plan, kernel)
    share = 0.25 if plan.quick else 1.0
    return [
        training(target, kernel, seed, method=method, steps=steps, seconds=share * seconds)
        for seed in range(count)
    ]


def split_training(
    plan: Plan,
    target: str,
    kernel: str,
    method: str,
    split: int,
    steps: int | None = None,
    share: float = 1.0,
) -> Job:
    """The training on a random split, which the figure of epochs shares; `share` of its cost."""
    share *= 0.25 if plan.quick else 1.0
    rival = method == RIVAL
    seconds = RIVAL_SECONDS if rival else TRAINING_SECONDS[kernel]
    if steps is None:
        steps = quick_steps(plan, kernel)
    return training(
        target, kernel, split, method=method, steps=steps, split=split, seconds=share * seconds
    )


def learned_jobs(plan: Plan, target: str, *, chains: int, draws: int) -> list[Job]:
    """The jobs of all rows of a target; one training serves rows with and without a step."""
    jobs = []
    for method, kernel in dict.fromkeys((row.method, row.kernel) for row in ROWS):
        for train in trainings(plan, target, kernel, method):
            for row in ROWS:
                if (row.method, row.kernel) == (method, kernel):
                    jobs.append(kernel_chains(train, row.metropolis, chains=chains, draws=draws))
    return jobs


def found(results: Results, row: Row, target: str) -> list[Record]:
    """The results of a row, one for each seed."""
    return results.done(target=target, split=None, **row.arguments)


Line = Callable[
    [str, list[Record], published.Published | None, published.Published | None], tuple[str, ...]
]
"""Title, results, the paper's ESS and its ESS per second ↦ the words of a line."""


def lines(results: Results, target: str, line: Line) -> list[tuple[str, ...]]:
    """A line for each row of a target's table; where there is no result, what became of it."""
    made: list[tuple[str, ...]] = []
    for row in ROWS:
        records = found(results, row, target)
        if records:
            paper = (paper_ess(row, target), paper_speed(row, target))
            made.append(line(row.title, records, *paper))
            continue
        trouble = results.having(target=target, split=None, **row.arguments)
        told = trouble[0].status if trouble else "not run"
        made.append((row.title, f"*{told}*", *[DASH] * 10))
    return made


def cells(
    title: str,
    records: list[Record],
    paper: published.Published | None,
    speed: published.Published | None,
    bias: tuple[str, ...],
) -> tuple[str, ...]:
    """The words of a line: ESS and speed beside the paper's, what is told of bias, and the rest."""
    rate, accepted = values(records, "ess_per_second"), values(records, "acceptance")
    trained = values(records, "train_seconds") or values(records, "warmup_seconds")
    compiling = values(records, "train_compile_seconds") or values(records, "compile_seconds")
    return (
        title,
        printed(paper),
        with_all(values(records, "ess")),
        ratio(comparable_ess(records), paper),
        printed(speed),
        with_all(rate),
        ratio(median(rate), speed),
        *bias,
        f"{max(values(records, 'rhat'), default=float('nan')):.3f}",
        number(median(accepted)) if accepted else DASH,
        f"{median(trained):.0f} ({max(compiling):.0f})" if trained else DASH,
    )


def paper_ess(row: Row, target: str) -> published.Published | None:
    """The paper's ESS for the row."""
    return None if row.paper is None else published.ess(*row.paper, target)


def paper_speed(row: Row, target: str) -> published.Published | None:
    """The paper's ESS per second for the row."""
    return None if row.paper is None else published.ess_per_second(*row.paper, target)


def comparable_ess(records: list[Record]) -> float:
    """Median ESS as if chains had the paper's 2000 draws: a quick run has fewer."""
    shares = [record.figure("ess") / record.figure("draws") for record in records]
    return published.DRAWS.value * median(shares)


def values(records: list[Record], figure: str) -> list[float]:
    """A figure of each record, where it is a number."""
    numbers = [record.figure(figure) for record in records]
    return [value for value in numbers if math.isfinite(value)]
