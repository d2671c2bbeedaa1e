"""Races: the samplers of one target, timed one after the other in one job.

Rows of a table that were run apart cannot be compared in speed. Here learned kernels, A-NICE-MC and
NUTS take turns within a few minutes. NUTS runs three times: as it comes, with a diagonal mass
matrix and all chains in one program; with a dense one, which is better for a posterior with strong
correlations; and with that and two threads, as our own chains have them, which few would take the
trouble to do.
"""

import dataclasses
import functools
from typing import Any

from salmc_paper.display.tables import DASH, Table, number
from salmc_paper.experiments import rows
from salmc_paper.experiments.chains import TIMED, size, timed_draws, told_seconds
from salmc_paper.experiments.regressions import reference_moments, run_nuts
from salmc_paper.experiments.training import trained, training_seconds
from salmc_paper.harness.jobs import Context, Job, Plan, Record, Results
from salmc_paper.harness.timing import take_turns
from salmc_paper.measures.judging import judge_chains
from salmc_paper.measures.problems import REGRESSIONS, TITLES, find_target

VERSION = 2
LEARNED = (
    ("sal-mc", "mlp", False),
    ("sal-mc", "flow", False),
    ("sal-mc", "flow", True),
    (rows.RIVAL, "nice", True),
)
"""Method, kernel, and whether proposals may be rejected."""

NUTS: dict[str, dict[str, Any]] = {
    "NUTS, diagonal": {"mass_matrix": "diagonal"},
    "NUTS, dense": {"mass_matrix": "dense"},
    "NUTS, dense, two threads": {"mass_matrix": "dense", "threads": 2},
}
RIVAL = "A-NICE-MC, exact MH"
_STREAM = 500
_TURNS = 1 + len(NUTS)


def race(plan: Plan, target: str, warmup: int = 0) -> Job:
    """All samplers on a target; NUTS on the regressions alone, as it cannot leave a mode."""
    kernels = dict.fromkeys((method, kernel) for method, kernel, _ in LEARNED)
    needs = tuple(rows.trainings(plan, target, kernel, method)[0] for method, kernel in kernels)
    arguments = {
        "target": target,
        "warmup": warmup if target in REGRESSIONS else None,
        **size(plan),
    }
    return Job("race", f"race on {target}", arguments, _race, VERSION, needs, seconds=60.0)


def race_table(results: Results, targets: tuple[str, ...]) -> Table | None:
    """ESS/s of every sampler over that of the rivals, and what training costs."""
    lines = []
    for target in targets:
        record = _of(results, target)
        racers = {} if record is None else record.figures["racers"]
        lines += [_line(TITLES[target], name, racers) for name in racers]
    if not lines:
        return None
    nuts = targets[0] in REGRESSIONS
    columns: tuple[str, ...] = ("target", "sampler", "ESS")
    columns += ("rms error of mean (sd)" if nuts else "MMD²", "ESS/s", "over A-NICE-MC")
    if nuts:
        columns += tuple(f"over {name}" for name in NUTS)
    columns += ("training or warm-up s",)
    if nuts:
        columns += tuple(f"draws until paid off, {name}" for name in NUTS)
    width = len(columns)
    note = (
        "All samplers of a target in one job, one after the other; ESS/s over all chains. Learned "
        f"kernels take {_TURNS} turns of {TIMED} runs, before, between and after those of NUTS "
        "where it runs; the median is told. Training and warm-up are without compilation."
    )
    if nuts:
        note += (
            " Paid off: the effective draws from which training and sampling together have taken "
            "less time than warm-up and sampling by NUTS. NUTS is BlackJAX's, with a diagonal mass "
            "matrix (its default) and with a dense one, all chains in one program; and with its "
            "chains on two threads, as ours are."
        )
    return Table("Speed, in one run", columns, tuple(line[:width] for line in lines), note)


def race_words(results: Results, targets: tuple[str, ...]) -> list[str]:
    """On how many targets a sampler is ahead of A-NICE-MC, and by how much of NUTS."""
    sentences = []
    records = {t: r for t in targets if (r := _of(results, t)) is not None}
    for method, kernel, metropolis in LEARNED:
        name = title(method, kernel, metropolis)
        if method == rows.RIVAL or not records:
            continue
        ratios = {t: _ratio(r.figures["racers"], name, RIVAL) for t, r in records.items()}
        ahead = sum(value > 1 for value in ratios.values())
        told = ", ".join(f"{number(v, 2)} × on {TITLES[t]}" for t, v in ratios.items())
        sentence = f"ESS/s of {name} over our A-NICE-MC, in one run: {told}"
        sentences.append(f"{sentence} (ahead on {ahead} of {len(ratios)}).")
        for target, record in records.items():
            racers = record.figures["racers"]
            over = [_ratio(racers, name, nuts) for nuts in NUTS if nuts in racers]
            if over:
                plain, dense, threads = (number(value, 2) for value in over)
                sentences.append(
                    f"On {TITLES[target]} {name} has {plain} times the ESS/s of NUTS (diagonal "
                    f"mass matrix), {dense} times with a dense one, {threads} times with its "
                    "chains on two threads besides."
                )
    return sentences


def title(method: str, kernel: str, metropolis: bool) -> str:
    """The title of the tables' row."""
    wanted = {"method": method, "kernel": kernel, "metropolis": metropolis}
    return next(row.title for row in rows.ROWS if row.arguments == wanted)


def break_even(ours: dict[str, Any], theirs: dict[str, Any]) -> float | None:
    """Effective draws from which we are ahead, training and warm-up included; None for never.

    Overheads o and rates r: o₁ + n/r₁ = o₂ + n/r₂ at n = (o₁ − o₂)/(1/r₂ − 1/r₁).
    """
    ahead = 1.0 / theirs["ess_per_second"] - 1.0 / ours["ess_per_second"]
    if ahead <= 0:
        return None
    return max(0.0, (ours["overhead_seconds"] - theirs["overhead_seconds"]) / ahead)


def _race(context: Context) -> dict[str, Any]:
    name = context["target"]
    target = find_target(name)
    warmup = context["warmup"]
    moments = reference_moments(name) if warmup is not None else ()
    shape = {"chains": context["chains"], "draws": context["draws"]}
    records = {(r.job.arguments["method"], r.job.arguments["kernel"]): r for r in context.needed}
    samplers = {key: trained(record) for key, record in records.items()}
    learned = {
        title(method, kernel, metropolis): functools.partial(
            timed_draws, samplers[method, kernel], seed=_STREAM, metropolis=metropolis, **shape
        )
        for method, kernel, metropolis in LEARNED
    }
    overheads = {
        title(method, kernel, metropolis): training_seconds(records[method, kernel])[0]
        for method, kernel, metropolis in LEARNED
    }
    nuts = {
        told: functools.partial(run_nuts, target, warmup=warmup, seed=1, **shape, **options)
        for told, options in (NUTS.items() if warmup is not None else ())
    }
    raced = take_turns(learned, turns=_TURNS, between=nuts, untimed=0, clock=told_seconds)
    racers: dict[str, dict[str, Any]] = {}
    for told, turns in raced.items():
        draws = dataclasses.replace(turns.results[0], seconds=turns.median)
        judged = judge_chains(target, draws, *moments)
        if told in learned:
            judged.update(overhead_seconds=overheads[told], all_seconds=turns.seconds)
        else:
            judged["overhead_seconds"] = float(draws.settings["warmup_seconds"])
        racers[told] = judged
    return {"racers": racers}


def _line(target: str, name: str, racers: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    figures = racers[name]
    learned = not name.startswith("NUTS")
    # ESS is blind to bias, which therefore stands beside it.
    bias = figures.get("mmd_squared", figures.get("mean_error_rms"))
    line = [target, name, number(figures["ess"]), number(bias, 2)]
    line.append(number(figures["ess_per_second"]))
    line.append(_times(_ratio(racers, name, RIVAL)))
    overhead = number(figures["overhead_seconds"], 2)
    if not any(nuts in racers for nuts in NUTS):
        return (*line, overhead)
    line += [_times(_ratio(racers, name, nuts)) for nuts in NUTS]
    line.append(overhead)
    for rival in NUTS:
        paid = break_even(figures, racers[rival]) if learned else float("nan")
        line.append("never" if paid is None else number(paid, 2))
    return tuple(line)


def _times(value: float) -> str:
    told = number(value, 2)
    return told if told == DASH else f"{told} ×"


def _ratio(racers: dict[str, dict[str, Any]], name: str, other: str) -> float:
    if name not in racers or other not in racers:
        return float("nan")
    return float(racers[name]["ess_per_second"] / racers[other]["ess_per_second"])


def _of(results: Results, target: str) -> Record | None:
    return next((r for r in results.done(target=target) if r.job.experiment == "race"), None)
