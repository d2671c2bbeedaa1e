"""The jobs that the two image experiments share: training a chain over images, and running it."""

import functools
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from salmc.datasets.fetch import FOLDER_VARIABLE, user_folder
from salmc.datasets.image_data import ImageData, load_images
from salmc.errors import DataError
from salmc.images.pictures import save_gif, save_png, sheet, strip
from salmc.images.sampler import ImageSampler, load
from salmc.images.settings import ImageSettings
from salmc_paper.display.tables import number
from salmc_paper.experiments.training import KERNEL, trained_in_full
from salmc_paper.harness.jobs import Context, Job, NotAvailableError, Product, Record
from salmc_paper.images.frechet import frechet_with_floor

VERSION = 2

NOISES = {0.5: "ξ ~ N(0, 0.5 I)", 0.0: "ξ = 0"}
"""The paper's two settings: variance of the noise, and how it is written."""

STRIP_CHAINS, STRIP_STEPS = 10, 50
SHEET = 100


_LATER = {"second_momentum": 0.99, "warmup": 0.0, "clip": 0.0, "patience": 0, "augmentation": 0.0}
"""Settings that came later, and what was done before: part of a key only where they differ."""


def image_training(
    data: str,
    kernel: str,
    seed: int,
    *,
    steps: int | None = None,
    size: int | None = None,
    colour: bool | None = None,
    augmentation: float = 0.0,
    seconds: float,
) -> Job:
    """A job that trains a chain over images.

    Args:
        data: "mnist", "digits" or the name of a folder in the user's data folder.
        kernel: "mlp" or "conv".
        seed: of the training.
        steps: fewer or more than the default.
        size, colour: of images from a folder.
        augmentation: how much images are changed before the critic sees them.
        seconds: about what it takes.
    """
    arguments = {
        "data": data,
        "kernel": kernel,
        "seed": seed,
        "steps": steps,
        "size": size,
        "colour": colour,
        "augmentation": augmentation,
    }
    name = f"train AL-MC, {kernel} kernel, on {data}, seed {seed}"
    settings = _settings(arguments).as_dictionary()
    settings = {n: value for n, value in settings.items() if _LATER.get(n, ...) != value}
    return Job("train-images", name, arguments, _train, VERSION, settings=settings, seconds=seconds)


def _settings(arguments: dict[str, Any]) -> ImageSettings:
    usual = ImageSettings()
    steps = usual.steps if arguments["steps"] is None else arguments["steps"]
    return usual.replace(steps=steps, augmentation=arguments["augmentation"])


def trained(record: Record) -> ImageSampler:
    """The chain of a training that is done."""
    return load(record.folder_files[KERNEL])


def images_of(arguments: dict[str, Any], split: str) -> ImageData:
    """The images that a training's arguments name.

    Raises:
        NotAvailableError: if they are not on this machine and cannot be downloaded.
    """
    source = arguments["data"]
    try:
        folder = user_folder()
        if source not in ("mnist", "digits"):
            if folder is None or not (folder / source).is_dir():
                raise NotAvailableError(
                    f"There is no folder of images called {source}. Put it into a folder and name "
                    f"that with the environment variable {FOLDER_VARIABLE}."
                )
            source = folder / source
        return load_images(source, size=arguments["size"], colour=arguments["colour"], split=split)
    except DataError as error:
        raise NotAvailableError(str(error)) from error


def run_chain(context: Context, sampler: ImageSampler) -> tuple[np.ndarray, dict[str, Any]]:
    """Run the chain as the job's arguments say; the draws, and what running took."""
    chains, draws = context["chains"], context["draws"]
    options: dict[str, Any] = {"noise": context["noise"], "progress": False}
    sampler.sample(chains, 1, **options)
    began = time.perf_counter()
    drawn = sampler.sample(chains, draws, seed=context["seed"], **options)
    seconds = time.perf_counter() - began
    if drawn.shape[1] < draws:
        raise KeyboardInterrupt
    return drawn, {"draws_per_second": chains * draws / seconds}


def frechet_figures(
    parts: Iterable[np.ndarray], real: np.ndarray, other_real: np.ndarray
) -> dict[str, float]:
    """The distances of all draws, of the first and of the last of them, as figures of a job."""
    distance, first, last = (frechet_with_floor(part, real, other_real) for part in parts)
    return {
        "frechet": distance.value,
        "frechet_floor": distance.floor,
        "frechet_first": first.value,
        "frechet_last": last.value,
    }


def frechet_words(figures: dict[str, Any]) -> str:
    """The same in a sentence."""
    return (
        f"the Fréchet distance is {number(figures['frechet'])} against a floor of "
        f"{number(figures['frechet_floor'])}, {number(figures['frechet_first'])} at the chains' "
        f"beginning and {number(figures['frechet_last'])} at their end"
    )


def parts_of(draws: np.ndarray, count: int) -> list[np.ndarray]:
    """At least `count` draws, if there are: of all, of the first tenth of each chain, of the last.

    A chain that is stationary has its last draws as near the data as its first.
    """
    tenth = max(1, draws.shape[1] // 10)
    parts = []
    for part in (draws, draws[:, :tenth], draws[:, -tenth:]):
        apart = max(1, part.shape[0] * part.shape[1] // count)
        parts.append(part[:, ::apart].reshape(-1, *draws.shape[2:]))
    return parts


def pictures_of(context: Context, draws: np.ndarray) -> tuple[dict[str, np.ndarray], list[str]]:
    """The strip as an array for the figure, and strip, sheet and film as files."""
    shown = np.ascontiguousarray(draws[:STRIP_CHAINS, :STRIP_STEPS])
    # Ends of as many chains, and where chains are few, draws far apart.
    apart = max(1, draws.shape[1] * len(draws) // SHEET)
    sample = draws[:, ::-1].reshape(-1, *draws.shape[2:])[::apart][:SHEET]
    save_png(strip(shown), context.place("strip.png"))
    save_png(sheet(sample), context.place("sheet.png"))
    save_gif(shown, context.place("gif"), columns=5)
    return {"strip": shown}, ["strip.png", "sheet.png", "gif"]


def _train(context: Context) -> Product:
    from salmc.images.train import train

    data = images_of(context.arguments, "train")
    options: dict[str, Any] = {
        "kernel": context["kernel"],
        "settings": _settings(context.arguments),
        "seed": context["seed"],
        "progress": False,
    }
    sampler = trained_in_full(context, functools.partial(train, data, **options))
    figures = {
        "images": len(data.images),
        "shape": list(data.shape),
        "parts": sampler.seconds,
        "steps": sampler.settings.get("steps"),
        "warnings": list(sampler.warnings),
    }
    return Product(figures, files=(KERNEL,))
