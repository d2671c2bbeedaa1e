"""MNIST: a Markov chain over handwritten digits, with noise and without."""

import dataclasses
import math
import time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from salmc.report import style
from salmc_paper.display.image_drawing import strip_panel
from salmc_paper.display.image_figures import class_bars, transition_map
from salmc_paper.display.tables import Table, number, percent
from salmc_paper.experiments.image_jobs import (
    NOISES,
    frechet_figures,
    frechet_words,
    image_training,
    images_of,
    parts_of,
    pictures_of,
    run_chain,
    trained,
)
from salmc_paper.experiments.training import training_seconds
from salmc_paper.harness.jobs import Context, Job, Plan, Product, Record, Results
from salmc_paper.images.classes import (
    class_distribution,
    classes_per_chain,
    stays_if_independent,
    steps_between_changes,
    transition_matrix,
)
from salmc_paper.images.classifier_file import load_classifier, save_classifier
from salmc_paper.images.classifier_training import ClassifierSettings, train_classifier
from salmc_paper.images.neighbours import check_for_copies

TITLE = "Figure: a chain over MNIST digits"
PAPER = (
    "AL-MC trained on real images with α = 0.1. Classified by a network of 99.1 % accuracy, the "
    "draws are even over the ten digits, with ξ ~ N(0, 0.5 I) and with ξ = 0. With noise the chain "
    "makes distant jumps; without, transitions are smooth and all digits take longer to appear. "
    "The paper prints no numbers but the accuracy of its classifier."
)
WHY: tuple[str, ...] = (
    "The first and the last draws without noise are consecutive ones of a hundred chains, few of "
    "them independent: tenths of other chains had 4.5 to 6.6, in no order (decision 0022).",
)
VERSION = 1
CHAIN_VERSION = 2
KERNELS = {"conv": "convolutional"}
"""The fully connected kernel takes two thirds of the time a step, and is further from the data."""
DIGITS = 10
EVEN = (0.07, 0.13)
"""The share of each digit that counts as even."""

MOVING_DIGITS = 3
"""A chain without noise that visits fewer digits on average counts as standing still."""

_CLASSIFIER = "classifier.npz"
_COPY_CHECK = 2_000
"""Draws, and held-out images, whose nearest training images are looked for."""
_COMPARED = 10_000
"""Draws in a Fréchet distance."""


def jobs(plan: Plan) -> list[Job]:
    """The classifier, a training for each kernel and seed, and a chain for each noise."""
    quick = plan.quick
    epochs = 1 if quick else ClassifierSettings().epochs
    classifier = Job(
        "mnist",
        "classifier of MNIST",
        {"part": "classifier", "epochs": epochs, "seed": 0},
        _classifier,
        VERSION,
        settings=dataclasses.asdict(ClassifierSettings(epochs=epochs)),
        seconds=40.0 * epochs,
    )
    chains, draws = (20, 60) if quick else (100, 1000)
    found = [classifier]
    for kernel, title in KERNELS.items():
        for seed in range(plan.number("seeds", 1, 1)):
            steps = 100 if quick else 16_000
            cost = 60.0 if quick else 1300.0
            training = image_training("mnist", kernel, seed, steps=steps, seconds=cost)
            for noise, words_of_noise in NOISES.items():
                asked = {"kernel": kernel, "noise": noise, "seed": seed}
                arguments = {"part": "chain", **asked, "chains": chains, "draws": draws}
                name = f"chain of the {title} kernel, {words_of_noise}, seed {seed}"
                needs = (training, classifier)
                found.append(
                    Job("mnist", name, arguments, _chain, CHAIN_VERSION, needs, seconds=90)
                )
    return found


def tables(results: Results) -> list[Table]:
    """Shares of digits, changes of class, Fréchet distance and copies; then each digit."""
    chains = results.done(part="chain")
    lines, shares = [], []
    for record in chains:
        figures, wait = record.figures, record.figures["steps_between_changes"]
        lines.append(
            (
                _told(record),
                f"{percent(min(figures['shares']), 1)} – {percent(max(figures['shares']), 1)}",
                "never changes" if wait is None else number(wait),
                number(figures["steps_if_independent"]),
                number(figures["digits_per_chain"]),
                f"{number(figures['frechet'])} (floor {number(figures['frechet_floor'])})",
                f"{number(figures['frechet_first'])}, {number(figures['frechet_last'])}",
                f"{percent(figures['share_of_copies'])} ({percent(figures['limit'], 1)})",
                number(figures["draws_per_second"], 2),
            )
        )
        shares.append((_told(record), *(percent(share, 1) for share in figures["shares"])))
    real = results.first(part="classifier")
    if real is not None:
        shares.append(
            ("held-out images", *(percent(share, 1) for share in real.figures["real_shares"]))
        )
    columns = (
        "chain",
        "least and most frequent digit",
        "steps between changes of digit",
        "if draws were independent",
        "different digits in a chain",
        "Fréchet distance",
        "of the first and of the last draws",
        "copies (by chance)",
        "draws/s",
    )
    note = (
        "Fréchet distance in the classifier's last hidden layer, to the held-out images; its floor "
        "is that of as many training images. The first and the last draws are as many, of each "
        "chain the first tenth and the last. A copy lies nearer to one training image than 1 % of "
        "held-out images do; more than the share in brackets would be more than chance. Draws of "
        "one chain without noise depend on each other: its shares and distance are of fewer "
        "effective draws."
    )
    return [
        Table("Chains over MNIST", columns, tuple(lines), note),
        Table(
            "Digits of the draws", ("chain", *(str(i) for i in range(DIGITS))), tuple(shares), ""
        ),
    ]


def words(results: Results) -> list[str]:
    """The paper's claims, and whether they are seen."""
    sentences = []
    instrument = results.first(part="classifier")
    if instrument is not None:
        figures = instrument.figures
        sentences.append(
            f"The classifier tells {percent(figures['accuracy'])} of the held-out images right "
            f"(the paper's: 99.1 %), after {number(figures['seconds'])} s of training."
        )
    for kernel, title in KERNELS.items():
        noisy = results.first(part="chain", kernel=kernel, noise=0.5)
        quiet = results.first(part="chain", kernel=kernel, noise=0.0)
        for record in (noisy, quiet):
            if record is not None:
                sentences += _sentences(record)
        if noisy is not None and quiet is not None:
            waits = [_wait(noisy), _wait(quiet)]
            visited = quiet.figure("digits_per_chain")
            # A chain that stands still changes digit slowly, too: it is not a smooth one.
            seen = waits[0] < waits[1] < math.inf and visited >= MOVING_DIGITS
            sentences.append(
                f"That the {title} kernel's chain jumps with noise and moves smoothly without is "
                f"{'seen' if seen else 'not seen'}: {_changes(waits[0])} with noise, "
                f"{_changes(waits[1])} without, where a chain of "
                f"{quiet.job.arguments['draws']} draws visits {number(visited)} digits."
            )
    return sentences


def figure(results: Results) -> Figure | None:
    """Strips of both settings, and below them digits and transitions, of the first kernel run."""
    records = [
        record
        for kernel in KERNELS
        for noise in NOISES
        if (record := results.first(part="chain", kernel=kernel, noise=noise)) is not None
    ]
    if not records:
        return None
    kernel = records[0].job.arguments["kernel"]
    shown = [record for record in records if record.job.arguments["kernel"] == kernel]
    made = style.new_figure(12.6, 3.2 * len(shown) + 4.6)
    rows = made.add_gridspec(len(shown) + 1, 1, height_ratios=[3.0] * len(shown) + [4.0])
    for row, record in enumerate(shown):
        detail = "rows: chains; columns: consecutive draws"
        strip_panel(made.add_subplot(rows[row]), record.arrays["strip"], _setting(record), detail)
    panels = rows[len(shown)].subgridspec(1, 1 + len(shown), width_ratios=[1.3] + [1] * len(shown))
    digits = [str(i) for i in range(DIGITS)]
    shares = {_setting(record): np.array(record.figures["shares"]) for record in shown}
    class_bars(made.add_subplot(panels[0]), shares, digits, EVEN)
    for i, record in enumerate(shown, start=1):
        axes = made.add_subplot(panels[i])
        transition_map(axes, record.arrays["transitions"], digits)
        style.title(axes, _setting(record), _changes(_wait(record)))
    return made


def _classifier(context: Context) -> Product:
    everything = {"data": "mnist", "size": None, "colour": None}
    data, held_out = (images_of(everything, split) for split in ("train", "held-out"))
    assert data.labels is not None
    assert held_out.labels is not None
    settings = ClassifierSettings(epochs=context["epochs"])
    began = time.perf_counter()
    classifier = train_classifier(
        data.images, data.labels, settings, seed=context["seed"], progress=False
    )
    seconds = time.perf_counter() - began
    save_classifier(classifier, context.place(_CLASSIFIER))
    figures = {
        "accuracy": classifier.accuracy(held_out.images, held_out.labels),
        "seconds": seconds,
        "real_shares": class_distribution(classifier.classify(held_out.images), DIGITS),
    }
    return Product(figures, files=(_CLASSIFIER,))


def _chain(context: Context) -> Product:
    training, instrument = context.needed
    data, held_out = (images_of(training.job.arguments, split) for split in ("train", "held-out"))
    draws, figures = run_chain(context, trained(training))
    flat = draws.reshape(-1, *data.shape)
    classifier = load_classifier(instrument.folder_files[_CLASSIFIER])
    classes = classifier.classify(draws)
    shares = class_distribution(classes, DIGITS)
    parts = parts_of(draws, _COMPARED)
    # As many training images as there are draws give the distance to the same held-out images.
    chosen = np.random.default_rng(context["seed"]).permutation(len(data.images))[: len(parts[0])]
    real = classifier.features(held_out.images)
    others = classifier.features(data.images[np.sort(chosen)])
    distances = frechet_figures(map(classifier.features, parts), real, others)
    some = np.random.default_rng(context["seed"]).permutation(len(flat))[:_COPY_CHECK]
    copies = check_for_copies(flat[some], held_out.images[: len(some)], data.images)
    arrays, files = pictures_of(context, draws)
    training_time, compiling = training_seconds(training)
    figures |= {
        "shares": shares,
        "steps_between_changes": steps_between_changes(classes),
        "digits_per_chain": classes_per_chain(classes),
        "steps_if_independent": stays_if_independent(shares),
        **distances,
        "training_seconds": training_time,
        "compile_seconds": compiling,
        **copies.figures(),
    }
    arrays |= {"transitions": transition_matrix(classes, DIGITS)}
    return Product(figures, arrays, tuple(files))


def _sentences(record: Record) -> list[str]:
    figures: dict[str, Any] = record.figures
    least, most = min(figures["shares"]), max(figures["shares"])
    even = least >= EVEN[0] and most <= EVEN[1]
    copying = "copies training images" if figures["copies"] else "does not copy training images"
    return [
        f"{_told(record)}: every digit has between {percent(least, 1)} and {percent(most, 1)} of "
        f"the draws, {'even' if even else 'not even'} by the measure of 7 % to 13 %; "
        f"{frechet_words(figures)}; the chain {copying}."
    ]


def _told(record: Record) -> str:
    arguments = record.job.arguments
    title = KERNELS[arguments["kernel"]]
    seed = f", seed {arguments['seed']}" if arguments["seed"] else ""
    return f"{title} kernel, {_setting(record)}{seed}"


def _setting(record: Record) -> str:
    return NOISES[record.job.arguments["noise"]]


def _wait(record: Record) -> float:
    found = record.figures["steps_between_changes"]
    return math.inf if found is None else float(found)


def _changes(wait: float) -> str:
    if math.isinf(wait):
        return "the digit never changes"
    return f"the digit changes every {number(wait)} steps"
