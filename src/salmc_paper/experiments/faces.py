"""Faces: a Markov chain over photographs, CelebA's where the user has them."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from salmc.datasets.fetch import user_folder
from salmc.errors import DataError
from salmc.report import style
from salmc_paper.display.image_drawing import strip_panel
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
from salmc_paper.harness.jobs import Context, Job, Plan, Product, Record, Results
from salmc_paper.images.frechet import principal_components
from salmc_paper.images.neighbours import check_for_copies

TITLE = "Figure: a chain over faces"
PAPER = (
    "AL-MC trained on CelebA: with ξ ~ N(0, 0.5 I) the chain jumps, with ξ = 0 transitions are "
    "smooth, “though not as obvious” as on MNIST. The paper prints no numbers. CelebA is used "
    "where the data folder has it as img_align_celeba; otherwise a folder called faces stands in."
)
WHY: tuple[str, ...] = (
    "By eye: most draws are faces at a glance, of more kinds than before; about one in eight is "
    "smeared, dark or grainy. Chains without noise are smooth and come back from such stretches.",
)
VERSION = 2
KERNEL = "conv"


class Form(NamedTuple):
    """How the images of a folder are read, and how long is trained on them."""

    size: int
    colour: bool
    steps: int | None
    augmentation: float


FOLDERS = {
    "img_align_celeba": Form(64, True, None, 0.0),
    "celeba": Form(64, True, None, 0.0),
    "faces": Form(32, False, 6000, 1.0),
}
"""Folders that are looked for, in this order. A critic of a few hundred faces sees them changed."""

SETTLED = 10
"""Draws that a chain from noise is given to become an image."""

MOVING = 0.5
"""A chain without noise moves if it gets this far, in units of the distance of real images."""

_COMPONENTS = 20
"""Of the training images: the space of the Fréchet distance, for there is no classifier of them."""

_MOST_COMPARED = 2_000
"""Draws and images in the Fréchet distance and in the search for copies."""


def jobs(plan: Plan) -> list[Job]:
    """One training for each seed, and a chain for each noise."""
    quick = plan.quick
    folder, form = _folder()
    found = []
    for seed in range(plan.number("seeds", 1, 1)):
        training = image_training(
            folder,
            KERNEL,
            seed,
            steps=40 if quick else form.steps,
            size=form.size,
            colour=form.colour,
            augmentation=form.augmentation,
            seconds=60.0 if quick else 1800.0,
        )
        for noise, words_of_noise in NOISES.items():
            arguments = {
                "noise": noise,
                "seed": seed,
                "chains": 10 if quick else 40,
                "draws": 50 if quick else 500,
            }
            name = f"chain over faces, {words_of_noise}, seed {seed}"
            needs = (training,)
            found.append(Job("faces", name, arguments, _chain, VERSION, needs, seconds=20.0))
    return found


def tables(results: Results) -> list[Table]:
    """How far a step goes, the Fréchet distance and copies."""
    lines = []
    for record in results.done():
        figures = record.figures
        lines.append(
            (
                _setting(record),
                f"{number(figures['step_length'])} ({number(figures['far_length'])})",
                f"{number(figures['travel'])} ({number(figures['real_length'])})",
                f"{number(figures['frechet'])} (floor {number(figures['frechet_floor'])})",
                f"{number(figures['frechet_first'])}, {number(figures['frechet_last'])}",
                f"{number(figures['median_distance_of_draws'])} "
                f"({number(figures['median_distance_of_held_out'])})",
                f"{percent(figures['share_of_copies'])} ({percent(figures['limit'], 1)})",
                number(figures["draws_per_second"], 2),
            )
        )
    columns = (
        "chain",
        "distance of consecutive draws (of draws of two chains)",
        f"distance of draw {SETTLED} and the last (of two real images)",
        f"Fréchet distance, {_COMPONENTS} components",
        "of the first and of the last draws",
        "distance to the nearest training image (held-out images')",
        "copies (by chance)",
        "draws/s",
    )
    known = results.done()[0].figures
    note = (
        f"{known['training_images']:,} training images of {known['data']} and "
        f"{known['held_out_images']:,} held-out ones. Distances are Euclidean, of pixels from "
        "0 to 1. The Fréchet distance is in the space of the first principal components of "
        "the training images, to the held-out images; its floor is that of as many "
        "training images. Few held-out images make the floor and the limit for copies coarse."
    )
    return [Table("Chains over faces", columns, tuple(lines), note)]


def words(results: Results) -> list[str]:
    """The paper's claim, and whether it is seen; whether draws are copies."""
    sentences = []
    for record in results.done():
        figures = record.figures
        copying = "are copies of" if figures["copies"] else "are not copies of"
        sentences.append(
            f"{_setting(record)}: {frechet_words(figures)}; the draws {copying} training images."
        )
    noisy, quiet = (results.first(noise=noise) for noise in NOISES)
    if noisy is not None and quiet is not None:
        lengths = [record.figure("step_length") for record in (noisy, quiet)]
        travel, real = quiet.figure("travel"), quiet.figure("real_length")
        # Consecutive draws of a chain that stands still are near, too: it is not a smooth one.
        seen = lengths[1] < lengths[0] and travel >= MOVING * real
        sentences.append(
            f"That the chain jumps with noise and moves smoothly without is "
            f"{'seen' if seen else 'not seen'}: consecutive draws are {number(lengths[0])} apart "
            f"with noise and {number(lengths[1])} without, where a chain's draw {SETTLED} and its "
            f"last are {number(travel)} apart, and two real images {number(real)}."
        )
    return sentences


def figure(results: Results) -> Figure | None:
    """Strips of both settings."""
    records = [r for noise in NOISES if (r := results.first(noise=noise)) is not None]
    if not records:
        return None
    made = style.new_figure(12.6, 3.2 * len(records))
    panels = made.subplots(len(records), 1, squeeze=False)[:, 0]
    for axes, record in zip(panels, records, strict=True):
        detail = "rows: chains; columns: consecutive draws"
        strip_panel(axes, record.arrays["strip"], _setting(record), detail)
    return made


def _folder() -> tuple[str, Form]:
    """The first folder of faces that the user has; the last name where there is none."""
    try:
        place = user_folder()
    except DataError:
        place = None
    for name, form in FOLDERS.items():
        if place is not None and (place / name).is_dir():
            return name, form
    return "faces", FOLDERS["faces"]


def _chain(context: Context) -> Product:
    (training,) = context.needed
    data, held_out = (images_of(training.job.arguments, split) for split in ("train", "held-out"))
    draws, figures = run_chain(context, trained(training))
    flat = draws.reshape(-1, *data.shape)
    generator = np.random.default_rng(context["seed"])
    some = generator.permutation(len(flat))[: min(_MOST_COMPARED, len(data.images))]
    ends = parts_of(draws, len(some))[1:]
    compared = np.asarray(held_out.images[:_MOST_COMPARED])
    mean, directions = principal_components(np.asarray(data.images[:_MOST_COMPARED]), _COMPONENTS)

    def project(images: np.ndarray) -> np.ndarray:
        return (images.reshape(len(images), -1) / 255.0 - mean) @ directions

    real = project(np.asarray(data.images[:_MOST_COMPARED]))
    parts = (project(part[: len(some)]) for part in (flat[some], *ends))
    distances = frechet_figures(parts, project(compared), real)
    copies = check_for_copies(flat[some], compared, data.images)
    arrays, files = pictures_of(context, draws)
    figures |= {
        "data": data.name,
        "training_images": len(data.images),
        "held_out_images": len(held_out.images),
        "step_length": _mean_distance(draws[:, 1:], draws[:, :-1]),
        "far_length": _mean_distance(draws[1:], draws[:-1]),
        "travel": _mean_distance(draws[:, SETTLED], draws[:, -1]),
        "real_length": _mean_distance(compared[1:], compared[:-1]),
        **distances,
        **copies.figures(),
    }
    return Product(figures, arrays, tuple(files))


def _mean_distance(first: np.ndarray, second: np.ndarray) -> float:
    """The mean Euclidean distance of images to their counterparts, of pixels from 0 to 1."""
    difference = (first.astype(np.float32) - second) / 255.0
    return float(np.mean(np.sqrt(np.sum(difference**2, axis=(-3, -2, -1)))))


def _setting(record: Record) -> str:
    arguments: dict[str, Any] = record.job.arguments
    seed = f", seed {arguments['seed']}" if arguments["seed"] else ""
    return NOISES[arguments["noise"]] + seed
