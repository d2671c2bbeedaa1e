"""What a trial finds, in the user's variables: names, places and units that they know.

A trial works in coordinates without bounds and without a model's transforms. A coordinate y is
called by the name of the number of the user's that follows it alone, as τ follows log τ: the draws,
ordered by y, are then ordered by that number, too. One that no number follows, as those behind a
simplex, keeps its own name and says that it is unconstrained.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from salmc.diagnostics.point_sets import Cloud
from salmc.diagnostics.trial.brinks import Brink
from salmc.target import AbstractTarget

NAMED = 4
"""Numbers that a place is told by."""

_ROWS, _LEAST_ROWS = 200, 12
"""Draws that are ordered: of so few, one order in 12! is another's by chance."""

_ROUNDING = 1e-5
"""By how much a number may fall where it should rise, relative to its size: single precision."""


@dataclasses.dataclass(frozen=True, eq=False)
class Spoken:
    """Names of the user's numbers, and which of them each coordinate is.

    Attributes:
        names: of the user's numbers.
        coordinates: what each coordinate is called.
        numbers: which number each coordinate is; −1 where there is none.
        falling: whether that number falls as the coordinate rises.
        numbers_at: a point of the trial ↦ the user's numbers there.
        centre: a point of the trial among the draws.
        mean, sd: of the user's numbers, over the draws.
    """

    names: tuple[str, ...]
    coordinates: tuple[str, ...]
    numbers: np.ndarray
    falling: np.ndarray
    numbers_at: Callable[[np.ndarray], np.ndarray]
    centre: np.ndarray
    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(
        cls,
        target: AbstractTarget,
        sample: Cloud,
        coordinates: Sequence[str],
        shown: Any,
        values: Cloud,
        numbers_at: Callable[[Cloud], Cloud],
    ) -> "Spoken":
        """How to speak of draws.

        Args:
            target: in the coordinates of the trial.
            sample: (n, dim), the draws in the target's own coordinates.
            coordinates: their names.
            shown: `names` of the user's numbers, and whether they are the coordinates' `own`.
            values: (n, number), the user's numbers at the draws.
            numbers_at: (n, dim) of the target's own coordinates ↦ the user's numbers.
        """
        rows = np.linspace(0, len(sample) - 1, min(_ROWS, len(sample))).astype(int)
        inside = np.asarray(target.inward(jnp.asarray(sample[rows], dtype=float)), np.float64)
        numbers, falling = _followed(inside, values[rows], coordinates, shown)
        called = tuple(
            f"unconstrained {name}"
            if number < 0
            else f"{'−' if falls else ''}{shown.names[number]}"
            for name, number, falls in zip(coordinates, numbers, falling, strict=True)
        )

        def at(position: np.ndarray) -> np.ndarray:
            point = jnp.asarray(position, dtype=float)
            own = np.asarray(target.outward(point, jnp.zeros(()))[0])
            return np.asarray(numbers_at(own[None])[0], np.float64)

        moments = np.mean(values, axis=0), np.std(values, axis=0)
        centre = np.median(inside, axis=0)
        return cls(tuple(shown.names), called, numbers, falling, at, centre, *moments)

    def place(self, position: np.ndarray) -> str:
        """A point of the trial in words; of many numbers, those that are least like the draws'."""
        values = self.numbers_at(position)
        chosen = np.arange(len(values))
        if len(values) > NAMED:
            with np.errstate(divide="ignore", invalid="ignore"):
                far = np.nan_to_num(np.abs(values - self.mean) / self.sd, posinf=0.0)
            chosen = np.sort(np.argsort(-far, kind="stable")[:NAMED])
        told = ", ".join(f"{self.names[i]} = {values[i]:.3g}" for i in chosen)
        return f"({told}{', …' if len(values) > NAMED else ''})"

    def named(self, position: np.ndarray) -> dict[str, float]:
        """The same with all numbers, for files."""
        return dict(zip(self.names, self.numbers_at(position).tolist(), strict=True))

    def end(self, brink: Brink) -> Brink:
        """One end of the draws, in the user's units."""
        coordinate = self.coordinates.index(brink.name)
        number = int(self.numbers[coordinate])
        if number < 0:
            return brink
        point = self.centre.copy()
        point[coordinate] = brink.at
        low = brink.low != bool(self.falling[coordinate])
        at = float(self.numbers_at(point)[number])
        return brink._replace(name=self.names[number], low=low, at=at)


def _followed(
    inside: Cloud, values: Cloud, coordinates: Sequence[str], shown: Any
) -> tuple[np.ndarray, np.ndarray]:
    """For each coordinate the number that follows it alone, or −1; and whether that falls."""
    count = inside.shape[1]
    numbers, falling = np.full(count, -1), np.zeros(count, bool)
    if shown.own:
        numbers = np.arange(count)
    if len(inside) < _LEAST_ROWS:
        return numbers, falling
    allowed = _ROUNDING * np.max(np.abs(values), axis=0, initial=1e-30)
    moving = np.ptp(values, axis=0) > 10 * allowed
    stems = np.array([name.partition("[")[0] for name in shown.names])
    for i in range(count):
        steps = np.diff(values[np.argsort(inside[:, i], kind="stable")], axis=0)
        rises = np.all(steps >= -allowed, axis=0) & moving
        falls = np.all(steps <= allowed, axis=0) & moving
        found = np.flatnonzero(rises | falls)
        if shown.own:
            falling[i] = falls[i] and not rises[i]
        elif len(found):
            # Of several, as τ and τ², the one that the model has by the coordinate's own name.
            same = stems[found] == coordinates[i].partition("[")[0]
            numbers[i] = found[np.argmax(same)]
            falling[i] = bool(falls[numbers[i]])
    return numbers, falling
