"""The one training engine: many steps of a method in compiled chunks, and what happens between.

After each chunk the host looks at its figures. A chunk that went wrong (NaN, or a collapse of the
figure) is undone and tried again at half the learning rate. Training ends early when the figure no
longer improves, and on Ctrl-C with the last good weights.

The randomness of a step depends on the seed and the step's number alone. So the result does not
depend on how steps are divided into chunks, and a run that is resumed from a checkpoint ends with
the same kernel, bit for bit, as one that was never stopped.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.learning.method import AbstractMethod, TrainingState
from salmc.learning.settings import TrainingSettings
from salmc.learning.validation import TOLERANCES, has_collapsed
from salmc.programs import RUNTIME_ERRORS, compiled, failure, nothing_left
from salmc.progress import AbstractReporter

if TYPE_CHECKING:
    from salmc.learning.checkpoint import Checkpoint

_MOST_ROLLBACKS = 4
_ENOUGH_SKIPPED, _FEW_SKIPPED = 0.5, 0.01
"""Share of updates that were not finite: a chunk with more went wrong, a run with less is fine."""

Feed = Callable[[int], Any]
"""The data of the chunk that begins at a step, with a leading axis over its steps."""


@dataclasses.dataclass
class Record:
    """What a run tells about itself, all of it JSON.

    Attributes:
        history: figures by name, one entry for each chunk.
        seconds: by part.
        warnings: sentences.
        figure_kind: what is looked at to judge progress.
        best: the best figure so far.
        stale: chunks since then.
        rollbacks, skipped: chunks undone, and updates left out.
        finished, courses: whether training ended before its last step, and how many came to it.
        trajectory: step size and length that move chains well along the gradient, if known.
    """

    history: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    warnings: list[str] = dataclasses.field(default_factory=list)
    figure_kind: str | None = None
    best: float | None = None
    stale: int = 0
    rollbacks: int = 0
    skipped: int = 0
    finished: bool = False
    courses: int = 0
    trajectory: list[float] = dataclasses.field(default_factory=list)

    def add(self, row: dict[str, float], sometimes: dict[str, float | None]) -> None:
        """One chunk more. Every list has the same length; NaN where there was nothing to tell."""
        for name, value in sometimes.items():
            if value is not None or name in self.history:
                row[name] = math.nan if value is None else value
        for name, value in row.items():
            self.history.setdefault(name, []).append(value)

    @contextlib.contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Adds the seconds of a block to a part of the work."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = self.seconds.get(part, 0.0) + time.perf_counter() - began


@compiled
def advance_chunk(
    method: AbstractMethod,
    state: TrainingState,
    key: PRNGKeyArray,
    count: Int[Array, ""],
    data: Any = None,
) -> tuple[TrainingState, Float[Array, " figures"], Float[Array, ""]]:
    """`count` steps; it is traced, so that chunks of every length share one compilation.

    Returns the state, the mean of each figure over the steps whose update was finite, and the share
    of those whose update was not.
    """
    dynamic, static = eqx.partition(state, eqx.is_array)
    names = method.figure_names

    def body(i: Array, carry: tuple[Any, Array, Array]) -> tuple[Any, Array, Array]:
        dynamic, total, taken = carry
        given = jax.tree.map(lambda leaf: leaf[i], data)
        state, figures, fine = method.step(eqx.combine(dynamic, static), key, given)
        total = total + jnp.where(fine, jnp.stack([figures[name] for name in names]), 0.0)
        return eqx.filter(state, eqx.is_array), total, taken + fine

    start = (dynamic, jnp.zeros(len(names)), jnp.zeros(()))
    dynamic, total, taken = jax.lax.fori_loop(0, count, body, start)
    return eqx.combine(dynamic, static), total / taken, 1.0 - taken / jnp.maximum(count, 1)


@compiled
def _move_pool(
    method: AbstractMethod, state: TrainingState, key: PRNGKeyArray
) -> tuple[TrainingState, Float[Array, ""]]:
    return method.move_pool(state, key)


def train(
    method: AbstractMethod,
    state: TrainingState,
    key: PRNGKeyArray,
    record: Record,
    report: AbstractReporter,
    *,
    checkpoint: "Checkpoint | None" = None,
    feed: Feed | None = None,
    watch: Callable[[TrainingState, int, int], None] | None = None,
) -> TrainingState:
    """Train until the end of a course, an early stop, too many rollbacks or Ctrl-C.

    A course is `settings.steps` long. Where its end shows that more is to be learned, as when the
    pool has not settled, another one follows, at half the rate.

    Args:
        method, state: what is trained, and from where on.
        key: of all steps.
        record: history, seconds and warnings; it is added to.
        report: told after each chunk.
        checkpoint: where states are saved now and then.
        feed: data from the host, for methods that are fed.
        watch: shown the state after each chunk, and the steps at which the chunk began and ended.

    Returns:
        The last good state.
    """
    settings: TrainingSettings = method.settings
    program, every, move = traced(method), method.pool_move_every, method.pool_move_name
    steps_key, move_key, figure_key = (jax.random.fold_in(key, i) for i in range(3))
    kind = record.figure_kind = method.figure_kind
    done, good, chunks = int(state.step), state, 0
    end = int(state.begun) + settings.steps
    data = None if feed is None else feed(done)
    report.start(method.title, settings.steps)
    if done:
        report.advance(done)
    try:
        with record.timed("compile"):
            nothing = advance_chunk(program, state, steps_key, jnp.array(0), data)
            jax.block_until_ready(nothing[0].weights)
        while done < end and not record.finished:
            moved = None
            if every and done % every == 0 and method.wants_pool_move(state):
                with record.timed(move):
                    state, accepted = _move_pool(program, state, jax.random.fold_in(move_key, done))
                    moved = float(accepted)
            count = _next_stop(settings, done, every, end) - done
            with record.timed("training"):
                state, means, skipped = advance_chunk(
                    program, state, steps_key, jnp.array(count), data
                )
                # The host makes the next data ready while the device is busy with these.
                ahead = None if feed is None else feed(done + count)
                figures = dict(zip(method.figure_names, np.asarray(means).tolist(), strict=True))
            with record.timed("validation"):
                chunk_key = jax.random.fold_in(figure_key, state.step)
                figure = None if kind is None else method.figure(state, figures, chunk_key)
            if _went_wrong(record, method, figures, figure, float(skipped), state):
                state = _roll_back(record, settings, good, done, done + count)
                continue
            began, done, data = done, done + count, ahead
            record.skipped += round(float(skipped) * count)
            row = {"step": float(done), **figures}
            if figure is not None:
                row["figure"] = figure
                state = _judge(record, settings, state, figure)
            record.add(row, {f"{move}_acceptance": moved})
            # At a move of the pool, where a chunk ends however long chunks are.
            if every and done == (end - settings.steps // 2) // every * every:
                state = method.remembers(state)
            if (done == end or record.finished) and method.goes_on(state, record.courses + 1):
                state, end = _next_course(record, settings, state), done + settings.steps
                report.start(f"{method.title}, course {record.courses + 1}", settings.steps)
            good, chunks = state, chunks + 1
            report.advance(count, **_shown(figures, kind, figure))
            with record.timed("checkpoint"):
                if watch is not None:
                    watch(good, began, done)
                if checkpoint is not None and chunks % settings.checkpoint_every == 0:
                    checkpoint.try_write(good, record, done)
    except KeyboardInterrupt:
        if done == 0:
            raise
        # Saved before the warning: a run that goes on from here was not interrupted in the end.
        if checkpoint is not None:
            checkpoint.try_write(good, record, done)
        if done < end:
            record.warnings.append(
                f"Interrupted at step {done} of {end}; the kernel is as it was then."
            )
    except RUNTIME_ERRORS as error:
        sentence = f"The target failed after step {done}: {failure(error)}"
        if done == 0:
            raise nothing_left(sentence, error) from error
        record.warnings.append(sentence)
    if record.skipped > _FEW_SKIPPED * done:
        record.warnings.append(
            f"{record.skipped} of {done} updates were not finite and were left out."
        )
    return good


def traced(method: AbstractMethod) -> AbstractMethod:
    """The method with the settings that compiled code depends on."""
    return dataclasses.replace(method, settings=method.settings.traced())


def _next_course(record: Record, settings: TrainingSettings, state: TrainingState) -> TrainingState:
    """The state at the beginning of another course, which is judged anew."""
    record.courses, record.finished, record.best, record.stale = record.courses + 1, False, None, 0
    rate = jnp.asarray(settings.learning_rate * 0.5 ** (1 + record.rollbacks), dtype=float)
    return dataclasses.replace(state, begun=state.step, rate=rate)


def _next_stop(settings: TrainingSettings, done: int, every: int, end: int) -> int:
    """Where the next chunk ends: at a multiple of `chunk`, a move of the pool, or the end."""
    stops = [(done // settings.chunk + 1) * settings.chunk, end]
    if every:
        stops.append((done // every + 1) * every)
    return min(stops)


def _went_wrong(
    record: Record,
    method: AbstractMethod,
    figures: dict[str, float],
    figure: float | None,
    skipped: float,
    state: TrainingState,
) -> bool:
    numbers = [*figures.values(), float(jnp.sum(state.weights)), figure or 0.0]
    if skipped >= _ENOUGH_SKIPPED or not all(map(math.isfinite, numbers)):
        return True
    if figure is None or record.best is None:
        return False
    return has_collapsed(str(record.figure_kind), figure, record.best, method.kernel.dim)


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


def _shown(figures: dict[str, float], kind: str | None, figure: float | None) -> dict[str, float]:
    losses = ("kernel_loss", "critic_loss", "acceptance", "jump")
    shown = {name: figures[name] for name in losses if name in figures}
    if kind in ("likelihood", "mmd") and figure is not None:
        shown[str(kind)] = figure
    return shown
