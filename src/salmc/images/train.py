"""AL-MC for images: a Markov chain over images, learned from real ones alone.

The paper's last experiment. `adversarial` has the objective; the training engine is that of all
methods (`salmc.learning.engine`).
"""

import hashlib
import math
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from salmc import checks
from salmc.datasets.image_data import ImageData, load_images
from salmc.diagnostics.point_sets import subset
from salmc.errors import ArgumentError
from salmc.images.adversarial import ImageAdversarial
from salmc.images.critic import ImageCritic
from salmc.images.sampler import ImageSampler, no_whitening
from salmc.images.settings import ImageSettings
from salmc.kernels.conv import ConvKernel
from salmc.kernels.image import AbstractImageKernel
from salmc.kernels.image_mlp import ImageMLPKernel
from salmc.learning import engine
from salmc.learning.checkpoint import Checkpoint, Restored
from salmc.learning.engine import Record
from salmc.learning.method import TrainingState
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.files.atomic import final_place, new_file, output_errors

KERNEL_NAMES = ("conv", "mlp")

SHEET_CHAINS = 100
"""Images on the sheet that a person can watch."""

_KEPT_IMAGES = 256
"""Real images that are stored with a kernel, for chains that start from data."""

_FEWEST = 20
_DIGEST_IMAGES = 64


def train(
    data: ImageData | np.ndarray | str | Path,
    *,
    kernel: str | AbstractImageKernel = "conv",
    steps: int | None = None,
    size: int | None = None,
    colour: bool | None = None,
    settings: ImageSettings | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    sheet: str | Path | None = None,
    sheet_every: int = 500,
    progress: bool | AbstractReporter = True,
) -> ImageSampler:
    """Learn a chain over images.

    Args:
        data: "mnist", "digits", a folder, an `ImageData`, or bytes (n, height, width[, channels]),
            which may be a memory map larger than memory.
        kernel: "conv", "mlp" for images of odd sides too, or a kernel with its first weights.
        steps: in place of the settings'.
        size, colour: pixels a side, and channels; only for data that are named.
        settings: how to train; by default `ImageSettings()`.
        seed: the same seed gives the same kernel.
        out: the `.salmc` file to write in the end.
        checkpoint: a file in which the state is saved now and then.
        resume: go on from `checkpoint` if it is there.
        sheet: a PNG file of samples, replaced every `sheet_every` steps, to watch.
        sheet_every: steps between two sheets.
        progress: True for a bar, False for silence, or a reporter.

    Returns:
        The sampler, with averaged weights. After Ctrl-C with those of that moment, and a warning.

    Raises:
        ArgumentError: if the data are not images, or too few.
        OutputError: if a file cannot be written, or the checkpoint is another run's.
    """
    checks.integer("seed", seed, 0)
    checks.integer("sheet_every", sheet_every, 1)
    if resume and checkpoint is None:
        checks.fail("checkpoint", "a path, to resume from it", None)
    settings = ImageSettings() if settings is None else settings
    if not isinstance(settings, ImageSettings):
        checks.fail("settings", "ImageSettings", settings)
    if steps is not None:
        settings = settings.replace(steps=checks.integer("steps", steps, 1))
    images, name = _images(data, size, colour, progress)
    for place in (out, checkpoint, sheet):
        _check_writable(place)

    key = jax.random.key(seed)
    keys = [jax.random.fold_in(key, i) for i in range(4)]
    shape = (images.shape[1], images.shape[2], images.shape[3])
    made = _kernel(kernel, shape, keys[0])
    critic = ImageCritic(keys[1], shape, width=settings.critic_width)
    method = ImageAdversarial(made, critic, settings)
    state, record = method.begin(keys[2]), Record()
    identity: dict[str, Any] = {
        "method": "al-mc images",
        "kernel": {"name": made.name, **made.description()},
        "settings": settings.as_dictionary(),
        "seed": seed,
        "data": _digest(images),
    }
    if resume and checkpoint is not None and Path(checkpoint).expanduser().exists():
        found = Restored(checkpoint, identity)
        state, record = found.state(state), found.record

    kept = _some(images, seed)
    details = {**settings.as_dictionary(), "seed": seed, "data": name, "shape": list(shape)}

    def sampler_of(state: TrainingState) -> ImageSampler:
        return ImageSampler(
            kernel=method.kernel_with(state.average),
            images=kept,
            settings=details,
            history=dict(record.history),
            seconds=dict(record.seconds),
            warnings=tuple(record.warnings),
        )

    def watch(state: TrainingState, began: int, done: int) -> None:
        if sheet is not None and began // sheet_every < done // sheet_every:
            write_sheet(sampler_of(state), sheet)

    saved = None
    if checkpoint is not None:
        saved = Checkpoint(Path(checkpoint), identity, no_whitening(), np.zeros(0))
    with reporter(progress) as report:
        state = engine.train(
            method,
            state,
            keys[3],
            record,
            report,
            checkpoint=saved,
            feed=partial(_chunk_of, images, settings, seed),
            watch=watch,
        )
    sampler = sampler_of(state)
    if sheet is not None:
        write_sheet(sampler, sheet)
    if out is not None:
        sampler.save(out)
    return sampler


def _chunk_of(images: np.ndarray, settings: ImageSettings, seed: int, done: int) -> np.ndarray:
    """The real images of the steps from `done` on, as rows of bytes.

    They are taken out of the data on the host, so that data larger than memory are no different
    from small ones; which, depends on the seed and the step's number alone.
    """
    rows = np.stack(
        [
            np.random.default_rng([seed, done + i]).integers(0, len(images), settings.batch)
            for i in range(settings.chunk)
        ]
    )
    # In the order of the file, which is quicker for a memory map, and back.
    unique, inverse = np.unique(rows, return_inverse=True)
    taken = np.asarray(images[unique]).reshape(len(unique), -1)
    return taken[inverse.reshape(rows.shape)]


def write_sheet(sampler: ImageSampler, path: str | Path) -> Path:
    """A hundred samples as a PNG file: the fifth draws of as many chains; atomic."""
    from salmc.images.pictures import sheet

    draws = sampler.sample(SHEET_CHAINS, 5, progress=False)
    with new_file(path) as file:
        sheet(draws[:, -1]).save(file, format="PNG")
    return Path(path)


def _images(
    data: Any, size: int | None, colour: bool | None, progress: bool | AbstractReporter
) -> tuple[np.ndarray, str]:
    """Bytes (n, height, width, channels), and what they are called."""
    if isinstance(data, (str, Path)):
        data = load_images(data, size=size, colour=colour, progress=progress)
    elif size is not None or colour is not None:
        raise ArgumentError(
            "The `size` and `colour` arguments are for data that are named, as in data='mnist': "
            "an array is taken as it is."
        )
    images, name = (data.images, data.name) if isinstance(data, ImageData) else (data, "images")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8:
        given = getattr(images, "dtype", type(images).__name__)
        checks.fail("data", "a name, a folder, ImageData or an array of bytes (uint8)", str(given))
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or len(images) < _FEWEST or math.prod(images.shape) == 0:
        expectation = f"of shape (n, height, width, channels) with n ≥ {_FEWEST}"
        checks.fail("data", expectation, f"shape {images.shape}")
    return images, name


def _kernel(
    kernel: str | AbstractImageKernel, shape: tuple[int, int, int], key: jax.Array
) -> AbstractImageKernel:
    if isinstance(kernel, str):
        name = checks.choice("kernel", kernel, KERNEL_NAMES)
        return ConvKernel(key, shape) if name == "conv" else ImageMLPKernel(key, shape)
    if not isinstance(kernel, AbstractImageKernel):
        checks.fail("kernel", "'conv', 'mlp' or a kernel over images", kernel)
    if kernel.shape != shape:
        checks.fail("kernel", f"over images of shape {shape}", f"one over {kernel.shape}")
    return kernel


def _some(images: np.ndarray, seed: int) -> np.ndarray:
    rows = subset(len(images), _KEPT_IMAGES, np.random.default_rng(seed))
    return np.array(images[rows])


def _digest(images: np.ndarray) -> str:
    """Tells one set of images from another, by its size and some of them."""
    rows = np.linspace(0, len(images) - 1, _DIGEST_IMAGES).astype(int)
    content = np.ascontiguousarray(images[np.unique(rows)]).tobytes()
    return hashlib.sha256(str(images.shape).encode() + content).hexdigest()[:16]


def _check_writable(path: str | Path | None) -> None:
    """Find out before long work whether a file can be written there."""
    if path is None:
        return
    place = final_place(path)
    with output_errors(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            checks.fail("out", "a file", f"the folder {place}")
        probe = place.with_name(f".{place.name}.probe")
        probe.touch()
        probe.unlink()
