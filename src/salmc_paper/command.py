"""`salmc reproduce`: the paper's tables and figures, beside the published numbers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from salmc.cli.console import BAD_INPUT, INTERRUPTED, Interrupts, complain, one_sentence, output
from salmc_paper.registry import EXPERIMENTS

if TYPE_CHECKING:
    from rich.console import Console

    from salmc_paper.harness.jobs import Plan, Record
    from salmc_paper.harness.store import Store

_NAMES = ", ".join(EXPERIMENTS)


def reproduce(
    experiments: Annotated[list[str], typer.Argument(help=f"Of {_NAMES}; or all.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A smoke run: its numbers mean little.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder of results. Jobs that are done there are not run again.",
            show_default="reproduction, with --quick reproduction/quick",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only jobs with this word, such as mog6 or a-nice-mc; commas mean or, giving "
            "the option twice means and. Others are shown if they were run before."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Trainings of each kernel of ours.")] = None,
    runs: Annotated[
        int | None, typer.Option(help="Repetitions, or random splits of the data.")
    ] = None,
    rival_seeds: Annotated[int | None, typer.Option(help="Trainings of A-NICE-MC.")] = None,
    rival_runs: Annotated[
        int | None, typer.Option(help="Random splits of the data for A-NICE-MC.")
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(help="Also write results.md and images/results into this folder."),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Tell what it would cost, and run nothing.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no tables.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Run the paper's experiments; a stopped run goes on where it was.

    Exit code 0 if all jobs have a result, 1 if some have none, which a list at the end tells.
    """
    with one_sentence(debug=debug), Interrupts() as interrupts:
        from salmc import checks
        from salmc.cli.results import command_line
        from salmc_paper.harness.jobs import Plan, chosen
        from salmc_paper.harness.progress import JobBar, SilentJobReporter
        from salmc_paper.harness.runner import run_jobs
        from salmc_paper.harness.store import Store
        from salmc_paper.outcome import write_outcome
        from salmc_paper.page import write_docs, write_page
        from salmc_paper.registry import load, names

        numbers = {
            "seeds": seeds,
            "runs": runs,
            "rival_seeds": rival_seeds,
            "rival_runs": rival_runs,
        }
        for name, value in numbers.items():
            if value is not None:
                checks.integer(name.replace("_", "-"), value, 1)
        wanted = names(experiments)
        plan = Plan(quick, **numbers)
        folder = out or Path("reproduction") / ("quick" if quick else "")
        store = Store(folder / "jobs")
        modules = {name: load(name) for name in wanted}
        jobs = [job for m in modules.values() for job in chosen(m.jobs(plan), only or [])]
        if only and not jobs:
            complain(f"No job has the words {' and '.join(only)}.")
            raise typer.Exit(BAD_INPUT)
        console = output()
        if estimate or not quiet:
            _tell_cost(console, wanted, plan, store, only or [])
        if estimate:
            return
        report = SilentJobReporter() if quiet else JobBar()
        records: list[Record] = []
        interrupted = False
        try:
            records = run_jobs(jobs, store, report=report, stopped=lambda: interrupts.seen)
        except KeyboardInterrupt:
            interrupted = True
            complain("Interrupted; what was done is kept, and the same command goes on from there.")
        with interrupts.hold():
            for name in wanted:
                write_outcome(name, plan, store, folder, command_line())
            page = write_page(folder)
            if docs is not None:
                page = write_docs(folder, docs)
        if quiet:
            console.print(str(page), soft_wrap=True)
        else:
            _tell(console, folder, wanted, page)
        if interrupted or interrupts.seen:
            raise typer.Exit(INTERRUPTED)
        if _tell_troubles(records):
            raise typer.Exit(1)


def _tell_cost(
    console: "Console", wanted: list[str], plan: "Plan", store: "Store", only: list[str]
) -> None:
    """What is ahead, before it begins; trainings that experiments share are counted once."""
    from salmc_paper.harness.jobs import chosen
    from salmc_paper.harness.runner import cost
    from salmc_paper.registry import load

    everything = []
    for name in wanted:
        jobs = chosen(load(name).jobs(plan), only)
        everything += jobs
        told = cost(jobs, store)
        line = f"{name:<14} {told.jobs:>4} jobs, {told.kept:>4} kept, about {_time(told.seconds)}"
        console.print(line, highlight=False)
    told = cost(everything, store)
    line = f"{'together':<14} {told.jobs:>4} jobs, {told.kept:>4} kept, about {_time(told.seconds)}"
    console.print(f"[bold]{line}[/]", highlight=False)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _tell(console: "Console", folder: Path, wanted: list[str], page: Path) -> None:
    from rich.markdown import Markdown

    for name in wanted:
        text = (folder / f"{name}.md").read_text(encoding="utf-8")
        console.print(Markdown(text))
    console.print(f"\n[dim]{page} collects all.[/]", soft_wrap=True, highlight=False)


def _tell_troubles(records: "list[Record]") -> bool:
    """The jobs without a result, each reason once; tells whether there were any."""
    reasons: dict[str, list[str]] = {}
    for record in records:
        if not record.done:
            reasons.setdefault(f"{record.status}: {record.sentence}", []).append(record.job.name)
    for sentence, names in reasons.items():
        complain(f"{len(names)} × {sentence} ({names[0]}{', …' if len(names) > 1 else ''})")
    return bool(reasons)
