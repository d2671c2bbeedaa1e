"""Many steps of learning: compiled chunks, and what happens between them.

After each chunk the host looks at its figures. A chunk that went wrong (NaN, or a collapse of the
figure) is undone and tried again at half the learning rate. Training ends early when the figure no
longer improves, and on Ctrl-C with the last good weights.

The randomness of a step depends on the seed and the step's number alone. So the result does not
depend on how steps are divided into chunks, and a run that is resumed from a checkpoint ends with
the same kernel, bit for bit, as one that was never stopped.
"""

import dataclasses
import math
import time
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.compiled import RUNTIME_ERRORS, failure
from salmc.errors import TargetError
from salmc.learning.checkpoint import Checkpoint, Record
from salmc.learning.sal_scheme import SAL_SCHEME
from salmc.learning.scheme import Scheme
from salmc.learning.settings import TrainingSettings
from salmc.learning.state import Problem, TrainingState
from salmc.learning.validation import TOLERANCES, has_collapsed, held_out_figure
from salmc.progress import AbstractReporter
from salmc.target import Points

_MOST_ROLLBACKS = 4

_ENOUGH_SKIPPED = 0.5
"""Share of updates that were not finite from which on a chunk counts as gone wrong."""


@eqx.filter_jit
def advance_chunk(
    problem: Problem,
    settings: TrainingSettings,
    state: TrainingState,
    key: PRNGKeyArray,
    count: Int[Array, ""],
    scheme: Scheme = SAL_SCHEME,
) -> tuple[TrainingState, Float[Array, " figures"], Float[Array, ""]]:
    """`count` steps; it is traced, so that chunks of every length share one compilation.

    Returns:
        The state, the mean of each figure over the steps whose update was finite, and the share
        of those whose update was not.
    """
    dynamic, static = eqx.partition(state, eqx.is_array)

    def body(_: Array, carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        dynamic, total, taken = carry
        state, figures, fine = scheme.step(problem, settings, eqx.combine(dynamic, static), key)
        total = total + jnp.where(fine, figures, 0.0)
        return eqx.filter(state, eqx.is_array), total, taken + fine

    zeros = jnp.zeros(len(scheme.figure_names(problem, settings)))
    start = (dynamic, zeros, jnp.zeros(()))
    dynamic, total, taken = jax.lax.fori_loop(0, count, body, start)
    return eqx.combine(dynamic, static), total / taken, 1.0 - taken / jnp.maximum(count, 1)


def train(
    problem: Problem,
    settings: TrainingSettings,
    state: TrainingState,
    key: PRNGKeyArray,
    record: Record,
    scheme: Scheme = SAL_SCHEME,
    *,
    held: Points | None = None,
    report: AbstractReporter,
    checkpoint: Checkpoint | None = None,
) -> TrainingState:
    """Train until `settings.steps`, an early stop, too many rollbacks or Ctrl-C.

    Args:
        problem, settings, state: what is trained, how, and from where on.
        key: of all steps.
        record: history, seconds and warnings; it is added to.
        scheme: what the method does in a step and between steps.
        held: samples that the kernel is not trained on; the pool serves where there are none.
        report: told after each chunk.
        checkpoint: where states are saved now and then.

    Returns:
        The last good state.
    """
    traced = settings.traced()
    steps_key, move_key, figure_key = (jax.random.fold_in(key, i) for i in range(3))
    kind = scheme.figure_kind(problem, settings)
    every = scheme.pool_move_every(problem, settings)
    record.figure_kind = kind
    done = int(state.step)
    report.start(_title(problem), settings.steps)
    if done:
        report.advance(done)
    try:
        with _timed(record, "compile"):
            jax.block_until_ready(
                advance_chunk(problem, traced, state, steps_key, jnp.array(0), scheme)[0].weights
            )
        good, chunks = state, 0
        while done < settings.steps and not record.finished:
            moved = None
            if every and done % every == 0:
                with _timed(record, scheme.pool_move_name):
                    where = jax.random.fold_in(move_key, done)
                    state, accepted = scheme.pool_move(problem, traced, state, where)
                    moved = float(accepted)
            count = _next_stop(settings, done, every) - done
            with _timed(record, "training"):
                state, means, skipped = advance_chunk(
                    problem, traced, state, steps_key, jnp.array(count), scheme
                )
                names = scheme.figure_names(problem, settings)
                figures = dict(zip(names, np.asarray(means).tolist(), strict=True))
            with _timed(record, "validation"):
                figure = _figure(problem, kind, state, figures, held, figure_key)
            if _went_wrong(record, problem, figures, figure, float(skipped), state):
                state = _roll_back(record, settings, good, done, done + count)
                continue
            done += count
            if skipped > 0:
                record.skipped += round(float(skipped) * count)
            state = _judge(record, settings, state, figure)
            record.add(done, figure, {f"{scheme.pool_move_name}_acceptance": moved}, figures)
            good, chunks = state, chunks + 1
            report.advance(count, **_shown(figures, kind, figure))
            if checkpoint is not None and chunks % settings.checkpoint_every == 0:
                with _timed(record, "checkpoint"):
                    checkpoint.write(good, record)
    except KeyboardInterrupt:
        if done == 0:
            raise
        state = good
        # Saved before the warning: a run that goes on from here was not interrupted in the end.
        if checkpoint is not None:
            checkpoint.write(good, record)
        record.warnings.append(
            f"Interrupted at step {done} of {settings.steps}; the kernel is as it was then."
        )
    except RUNTIME_ERRORS as error:
        sentence = f"The target failed after step {done}: {failure(error)}"
        if done == 0:
            raise TargetError(sentence) from error
        record.warnings.append(sentence)
        state = good
    if record.skipped:
        record.warnings.append(
            f"{record.skipped} of {done} updates were not finite and were left out."
        )
    return state


def _next_stop(settings: TrainingSettings, done: int, every: int) -> int:
    """Where the next chunk ends: at a multiple of `chunk`, a move of the pool, or the end."""
    stops = [(done // settings.chunk + 1) * settings.chunk, settings.steps]
    if every:
        stops.append((done // every + 1) * every)
    return min(stops)


def _figure(
    problem: Problem,
    kind: str,
    state: TrainingState,
    figures: dict[str, float],
    held: Points | None,
    key: PRNGKeyArray,
) -> float:
    if kind == "rejection":
        return 1.0 - figures["acceptance"]
    if kind == "stay":
        return 1.0 - figures["jump"]
    step_key = jax.random.fold_in(key, state.step)
    compared = state.pool if held is None else held
    return float(held_out_figure(problem, kind, state, compared, step_key))


def _went_wrong(
    record: Record,
    problem: Problem,
    figures: dict[str, float],
    figure: float,
    skipped: float,
    state: TrainingState,
) -> bool:
    numbers = [figure, *figures.values(), float(jnp.sum(state.weights))]
    if skipped >= _ENOUGH_SKIPPED or not all(map(math.isfinite, numbers)):
        return True
    kind = str(record.figure_kind)
    return record.best is not None and has_collapsed(kind, figure, record.best, problem.kernel.dim)


def _roll_back(
    record: Record, settings: TrainingSettings, good: TrainingState, done: int, reached: int
) -> TrainingState:
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


def _judge(
    record: Record, settings: TrainingSettings, state: TrainingState, figure: float
) -> TrainingState:
    """Remember the best weights; stop when nothing better came for long."""
    if record.best is None or figure < record.best - TOLERANCES[str(record.figure_kind)]:
        record.best, record.stale = figure, 0
        return dataclasses.replace(state, best=state.average)
    record.stale += 1
    if settings.patience and record.stale >= settings.patience:
        record.finished = True
    return state


def _shown(figures: dict[str, float], kind: str, figure: float) -> dict[str, float]:
    losses = ("kernel_loss", "critic_loss", "acceptance", "jump")
    shown = {name: figures[name] for name in losses if name in figures}
    return shown if kind in ("rejection", "stay") else {**shown, kind: figure}


def _title(problem: Problem) -> str:
    trained = f"learning {problem.kernel.name}"
    return trained if problem.target is None else f"{trained} on {problem.target.name}"


class _timed:  # noqa: N801 - reads as a verb where it is used
    """Adds the seconds of a block to a part of the record."""

    def __init__(self, record: Record, part: str) -> None:
        self.record, self.part = record, part

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.record.add_seconds(self.part, time.perf_counter() - self.began)
