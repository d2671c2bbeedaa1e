"""German: ESS and test accuracy against the length of the training."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from salmc.report import style
from salmc_paper.display.drawing import plain_logarithms
from salmc_paper.display.tables import DASH, Table, counted, number, percent
from salmc_paper.experiments import rows
from salmc_paper.experiments.chains import size
from salmc_paper.experiments.regressions import kernel_split, nuts_split
from salmc_paper.experiments.training import settings_of
from salmc_paper.harness.jobs import Job, Plan, Record, Results

TITLE = "Figure: ESS and accuracy against training on German"
PAPER = (
    "ESS and test accuracy against training epochs, mean of 10 runs. It finds the same accuracy "
    "for SAL-MC and A-NICE-MC, a much better ESS for SAL-MC, and that A-NICE-MC needs 20,000 "
    "iterations for its highest ESS."
)
WHY: tuple[str, ...] = (
    "SAL-MC needs far fewer steps than the paper's 20,000 epochs: exact moves have brought its "
    "pool to the posterior before training begins, and in the end the mean and covariance of "
    "the MLP kernel's chain are matched to the pool's.",
    "A-NICE-MC needs fewer than the paper's 20,000, too: larger batches, a rate that decays, "
    "and averaged weights.",
)
TARGET = "german"
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Lengths of training, as parts of the default. Each is a training of its own with its own decay of
the learning rate: a snapshot of a longer one would be worse than what so many steps can give."""

LEARNERS = (
    ("SAL-MC, MLP", "sal-mc", "mlp", False, style.SERIES[1]),
    ("SAL-MC, flow, exact MH", "sal-mc", "flow", True, style.SERIES[0]),
    ("A-NICE-MC, exact MH", rows.RIVAL, "nice", True, style.SERIES[3]),
)


def jobs(plan: Plan) -> list[Job]:
    """Trainings of every length on random splits; the full length is that of Table 2."""
    found: list[Job] = []
    shape = size(plan)
    warmup = 200 if plan.quick else 1000
    for _, method, kernel, metropolis, _ in LEARNERS:
        rival = method == rows.RIVAL
        runs = plan.number("rival_runs", 10, 1) if rival else plan.number("runs", 10, 1)
        for split in range(runs):
            nuts = nuts_split(TARGET, split, warmup=warmup, **shape)
            full = settings_of(TARGET, method, kernel)["steps"]
            if plan.quick:
                full = rows.STEPS_QUICK[kernel]
            for share in SHARES[4:] if plan.quick else SHARES:
                point = max(1, round(share * full))
                train = _training(plan, kernel, method, split, point, share)
                job = kernel_split(train, nuts, metropolis, point=point, **shape)
                found.append(job)
    return found


def tables(results: Results) -> list[Table]:
    """ESS, bias and accuracy at each length."""
    lines = []
    for title, method, kernel, _, _ in LEARNERS:
        for point in _points(results, method, kernel):
            records = results.done(method=method, kernel=kernel, point=point)
            nuts = np.mean([record.figure("nuts_accuracy") for record in records])
            lines.append(
                (
                    title,
                    f"{point:,}",
                    str(len(records)),
                    number(_mean(records, "ess")),
                    number(_mean(records, "mean_error_rms"), 2),
                    f"{_mean(records, 'sd_ratio_min'):.2f}–{_mean(records, 'sd_ratio_max'):.2f}",
                    percent(_mean(records, "accuracy")),
                    percent(float(nuts)),
                    number(_mean(records, "train_seconds"), 2),
                )
            )
    columns: tuple[str, ...] = ("sampler", "training steps", "splits", "ESS")
    columns += ("rms error of mean (sd)", "sd ratio", "accuracy", "accuracy of NUTS", "training s")
    note = (
        "Means over the splits. ESS, error of the mean and sd ratio are by the moments of NUTS on "
        "the same split. The paper prints no numbers here, and its epochs are not our steps."
    )
    return [Table("German", columns, tuple(lines) or ((DASH,) * len(columns),), note)]


def words(results: Results) -> list[str]:
    """What the longest training reached, and from when on 90 % of it."""
    sentences = []
    for title, method, kernel, _, _ in LEARNERS:
        points = _points(results, method, kernel)
        if not points:
            continue
        ess = [_mean(results.done(method=method, kernel=kernel, point=p), "ess") for p in points]
        last = results.done(method=method, kernel=kernel, point=points[-1])
        near = next(p for p, value in zip(points, ess, strict=True) if value >= 0.9 * ess[-1])
        gap = _mean(last, "accuracy") - _mean(last, "nuts_accuracy")
        sentences.append(
            f"{title}: ESS {number(ess[-1])} after {points[-1]:,} steps, 90 % of it from {near:,} "
            f"steps on; accuracy {percent(_mean(last, 'accuracy'))}, {100 * gap:+.2f} points from "
            f"NUTS over {counted(len(last), 'split')}."
        )
    return sentences


def figure(results: Results) -> Figure | None:
    """ESS, bias, and accuracy against that of NUTS, over the steps.

    Splits differ by several points and samplers have not all run on as many of them, so accuracies
    are compared split by split.
    """
    made = style.new_figure(12.2, 4.3, headroom=0.35)
    first, second, third = made.subplots(1, 3)
    panels = ((first, "ess"), (second, "mean_error_rms"), (third, "gain"))
    shown = False
    for title, method, kernel, _, colour in LEARNERS:
        points = _points(results, method, kernel)
        found = [results.done(method=method, kernel=kernel, point=point) for point in points]
        shown = shown or bool(points)
        for axes, name in panels:
            if not points:
                continue
            axes.plot(
                points,
                [np.mean([_shown(record, name) for record in records]) for records in found],
                color=colour,
                marker="o",
                markersize=4,
                linewidth=1.9,
                label=title,
            )
            for point, records in zip(points, found, strict=True):
                values = [_shown(record, name) for record in records]
                axes.plot([point] * len(values), values, ".", color=colour, alpha=0.35, ms=4)
    if not shown:
        return None
    third.axhline(0.0, color=style.INK, linestyle="--", label="NUTS")
    for axes, _ in panels:
        axes.set(xscale="log", xlabel="training steps")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="y")
    first.set_ylim(bottom=0)
    plain_logarithms(second)
    reach = 1.15 * max(map(abs, third.get_ylim()))
    third.set_ylim(-reach, reach)
    style.title(first, "ESS of one chain", "points: single splits")
    style.title(second, "Error of the mean", "rms, in standard deviations")
    style.title(third, "Test accuracy", "percentage points above NUTS on the same split")
    handles, labels = third.get_legend_handles_labels()
    made.legend(handles, labels, loc="upper center", ncols=len(labels), bbox_to_anchor=(0.5, 0.998))
    return made


def _training(plan: Plan, kernel: str, method: str, split: int, point: int, share: float) -> Job:
    steps = None if share == 1 else point
    return rows.split_training(plan, TARGET, kernel, method, split, steps, share)


def _points(results: Results, method: str, kernel: str) -> list[int]:
    found = results.done(method=method, kernel=kernel)
    return sorted({record.job.arguments["point"] for record in found})


def _shown(record: Record, name: str) -> float:
    if name == "gain":
        return 100 * (record.figure("accuracy") - record.figure("nuts_accuracy"))
    return record.figure(name)


def _mean(records: list[Record], name: str) -> float:
    return float(np.mean([record.figure(name) for record in records])) if records else float("nan")
