"""What an experiment writes: <name>.json, <name>.md with the tables, and <name>.png."""

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from salmc.errors import reason
from salmc.json_values import to_text
from salmc_paper import registry
from salmc_paper.display.tables import Table
from salmc_paper.harness.jobs import Plan, Record, Results, in_order
from salmc_paper.harness.store import Store, machine, write_text

QUICK = (
    "**This is a quick run: few steps, chains and seeds. It shows that everything works; its "
    "numbers mean little.**"
)


def write_outcome(name: str, plan: Plan, store: Store, out: Path, command: str) -> dict[str, Any]:
    """Read the results of an experiment's jobs and write what they show.

    Args:
        name: of the experiment.
        plan: full or quick, and how many seeds.
        store: where results are.
        out: folder of the files.
        command: what was typed.

    Returns:
        What was written as JSON.

    Raises:
        OutputError: if a file cannot be written.
    """
    module = registry.load(name)
    jobs = module.jobs(plan)
    records = [store.read(job) for job in jobs]
    results = Results(records)
    trouble: list[str] = []
    tables: list[Table] = []
    words: list[str] = []
    has_picture = False
    if results.any_done:
        # What cannot be shown must not cost what can.
        try:
            tables, words = module.tables(results), module.words(results)
        except Exception as error:
            trouble.append(f"The tables could not be made: {reason(error)}")
        try:
            has_picture = _draw(module, results, out / f"{name}.png")
        except Exception as error:
            trouble.append(f"The picture could not be drawn: {reason(error)}")
    else:
        words = ["Nothing of this was run yet."]
    if not has_picture:
        (out / f"{name}.png").unlink(missing_ok=True)
    everything = [store.read(job) for job in in_order(jobs)]
    content = {
        "experiment": name,
        "title": module.TITLE,
        "paper": module.PAPER,
        "quick": plan.quick,
        "when": time.strftime("%Y-%m-%d"),
        "command": command,
        "made_by": machine(),
        "what_was_run": _run_words(everything),
        "words": [*words, *trouble],
        "why": list(module.WHY),
        "missing": _missing(everything),
        "tables": [dataclasses.asdict(table) for table in tables],
        "jobs": [_told(record) for record in everything],
    }
    write_text(out / f"{name}.json", to_text(content, indent=1))
    text = section(content, f"{name}.png" if has_picture else None)
    write_text(out / f"{name}.md", f"# {module.TITLE}\n\n{text}")
    return content


def _draw(module: registry.Experiment, results: Results, path: Path) -> bool:
    from salmc.report import style

    with style.look():
        figure = module.figure(results)
        if figure is None:
            return False
        style.save(figure, path)
    return True


def section(content: dict[str, Any], picture: str | None) -> str:
    """The text of an experiment below its heading, from its JSON.

    Args:
        content: of <name>.json.
        picture: where the picture is, seen from the text; None if there is none.
    """
    parts = [QUICK] if content["quick"] else []
    parts.append(f"*The paper.* {content['paper']}")
    parts.append("*Here.*\n\n" + "\n".join(f"- {sentence}" for sentence in content["words"]))
    # A folder may have the files of an earlier version beside new ones.
    if why := content.get("why"):
        parts.append("*Why.*\n\n" + "\n".join(f"- {sentence}" for sentence in why))
    if picture is not None:
        parts.append(f"![{content['title']}]({picture})")
    for table in content["tables"]:
        rows = tuple(tuple(row) for row in table["rows"])
        made = Table(table["title"], tuple(table["columns"]), rows, table["note"])
        parts.append(made.markdown().rstrip())
    parts.append(f"*What was run.* {content['what_was_run']} Command: `{content['command']}`.")
    if content["missing"]:
        parts.append("*What is missing.*\n\n" + "\n".join(f"- {m}" for m in content["missing"]))
    return "\n\n".join(parts) + "\n"


def _run_words(records: Sequence[Record]) -> str:
    """Numbers of jobs, seeds, time and days."""
    done = [record for record in records if record.done]
    told = f"{len(done)} of {len(records)} jobs"
    if not done:
        return f"{told}."
    seconds = sum(record.seconds for record in done)
    days = sorted({record.when for record in done})
    told += f", {seconds / 60:.1f} minutes in all"
    if used := sum(record.cpu_seconds for record in done):
        told += f" ({used / 60:.1f} of processor time)"
    told += f", on {days[0]}" if len(days) == 1 else f", from {days[0]} to {days[-1]}"
    for name, word in (("seed", "seeds"), ("split", "splits"), ("run", "runs")):
        numbers = sorted({a for r in done if isinstance(a := r.job.arguments.get(name), int)})
        if numbers:
            told += f", {word} {numbers[0]}" + (f" to {numbers[-1]}" if len(numbers) > 1 else "")
    made = done[-1].made_by
    return f"{told}; {made.get('cores')} cores, JAX {made.get('jax')}, salmc {made.get('salmc')}."


def _missing(records: Sequence[Record]) -> list[str]:
    """One line for each reason, with the jobs that it hit."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if not record.done:
            reasons.setdefault((record.status, record.sentence), []).append(record.job.name)
    lines = []
    for (status, sentence), names in reasons.items():
        shown = "; ".join(names[:4]) + (f"; and {len(names) - 4} more" if len(names) > 4 else "")
        lines.append(f"{status}: {shown}" + (f". {sentence}" if sentence else ""))
    return lines


def _told(record: Record) -> dict[str, Any]:
    return {
        "name": record.job.name,
        "arguments": record.job.arguments,
        "status": record.status,
        "sentence": record.sentence,
        "seconds": record.seconds,
        "cpu_seconds": record.cpu_seconds,
        "when": record.when,
        "figures": record.figures,
    }
