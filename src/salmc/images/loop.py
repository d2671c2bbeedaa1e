"""Many steps on images: compiled chunks, and what happens between them.

Each chunk gets its real images as bytes, taken out of the data on the host, so that data larger
than memory are no different from small ones. What a step draws (rows of the data, noise, restarts)
depends on the seed and the step's number alone: a run that is resumed from a checkpoint ends with
the same kernel, bit for bit, as one that was never stopped.
"""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from salmc.images.settings import ImageSettings
from salmc.images.step import FIGURES, ImageProblem, ImageState, training_step
from salmc.learning.checkpoint import Record
from salmc.progress import AbstractReporter

_MOST_ROLLBACKS = 4

_ENOUGH_SKIPPED = 0.5
"""Share of updates that were not finite from which on a chunk counts as gone wrong."""

Save = Callable[[ImageState, Record], None]


@eqx.filter_jit
def advance_chunk(
    problem: ImageProblem,
    settings: ImageSettings,
    state: ImageState,
    real: UInt8[Array, "chunk batch dim"],
    key: PRNGKeyArray,
    count: Int[Array, ""],
) -> tuple[ImageState, Float[Array, " figures"], Float[Array, ""]]:
    """The first `count` steps of a chunk.

    Returns:
        The state, the mean of each figure over the steps whose update was finite, and the share
        of those whose update was not.
    """

    def body(i: Array, carry: tuple[ImageState, Array, Array]) -> tuple[ImageState, Array, Array]:
        state, total, taken = carry
        state, figures, fine = training_step(problem, settings, state, real[i], key)
        return state, total + jnp.where(fine, figures, 0.0), taken + fine

    start = (state, jnp.zeros(len(FIGURES)), jnp.zeros(()))
    state, total, taken = jax.lax.fori_loop(0, count, body, start)
    return state, total / taken, 1.0 - taken / jnp.maximum(count, 1)


def run_steps(
    problem: ImageProblem,
    settings: ImageSettings,
    state: ImageState,
    images: UInt8[np.ndarray, "n height width channels"],
    seed: int,
    key: PRNGKeyArray,
    record: Record,
    *,
    report: AbstractReporter,
    save: Save | None = None,
    show: Save | None = None,
    show_every: int = 0,
) -> ImageState:
    """Train until `settings.steps`, too many rollbacks or Ctrl-C.

    Args:
        problem, settings, state: what is trained, how, and from where on.
        images: the data, possibly a memory map.
        seed: of the choice of images.
        key: of all steps.
        record: history, seconds and warnings; it is added to.
        report: told after each chunk.
        save: called now and then with a state to keep.
        show: called every `show_every` steps with a state to look at.

    Returns:
        The last good state.
    """
    traced, done = settings.traced(), int(state.step)
    report.start(f"learning {problem.kernel.name}", settings.steps)
    if done:
        report.advance(done)
    good, chunks, began = state, 0, time.perf_counter()
    real = _chunk_of(images, settings, seed, done)
    try:
        while done < settings.steps and not record.finished:
            count = min(settings.chunk - done % settings.chunk, settings.steps - done)
            state, means, skipped = advance_chunk(
                problem, traced, good, jnp.asarray(real), key, jnp.array(count)
            )
            # The host takes out the next images while the device is busy with these.
            ahead = _chunk_of(images, settings, seed, done + count)
            figures = dict(zip(FIGURES, np.asarray(means).tolist(), strict=True))
            if _went_wrong(figures, float(skipped)):
                good = _roll_back(record, settings, good, done, done + count)
                continue
            real, good, done, chunks = ahead, state, done + count, chunks + 1
            record.skipped += round(float(skipped) * count)
            for name, value in {"step": float(done), **figures}.items():
                record.history.setdefault(name, []).append(value)
            now = time.perf_counter()
            part = "compile and first steps" if chunks == 1 else "training"
            record.add_seconds(part, now - began)
            began = now
            report.advance(count, **{name: figures[name] for name in FIGURES[:2]})
            if show is not None and _passed(show_every, done - count, done):
                show(good, record)
            if save is not None and chunks % settings.checkpoint_every == 0:
                save(good, record)
            record.add_seconds("files", time.perf_counter() - began)
            began = time.perf_counter()
    except KeyboardInterrupt:
        if done == 0:
            raise
        # Saved before the warning: a run that goes on from here was not interrupted in the end.
        if save is not None:
            save(good, record)
        if done < settings.steps:
            record.warnings.append(
                f"Interrupted at step {done} of {settings.steps}; the kernel is as it was then."
            )
    if record.skipped:
        record.warnings.append(
            f"{record.skipped} of {done} updates were not finite and were left out."
        )
    return good


def _chunk_of(images: np.ndarray, settings: ImageSettings, seed: int, done: int) -> np.ndarray:
    """The real images of the steps from `done` on, as rows of bytes."""
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


def _passed(every: int, before: int, after: int) -> bool:
    return every > 0 and before // every < after // every


def _went_wrong(figures: dict[str, Any], skipped: float) -> bool:
    return skipped >= _ENOUGH_SKIPPED or not all(map(math.isfinite, figures.values()))


def _roll_back(
    record: Record, settings: ImageSettings, good: ImageState, done: int, reached: int
) -> ImageState:
    """The last good state at a lower rate; the end of training if that was tried often enough."""
    record.rollbacks += 1
    again = record.rollbacks < _MOST_ROLLBACKS
    record.finished = not again
    record.warnings.append(
        f"Training diverged between steps {done} and {reached} and was taken back to step {done}"
        + (
            ", to go on at half the learning rate."
            if again
            else "; it ends there. Use a smaller learning rate."
        )
    )
    rate = settings.learning_rate * 0.5**record.rollbacks
    return dataclasses.replace(good, rate=jnp.asarray(rate, dtype=float))
