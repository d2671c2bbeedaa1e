"""Variances of many linear combinations of a cloud's coordinates, under several weightings at once.

For weights r_i of the points, var(r (θ − k·c)) is a quadratic form of c in the second moments of
r (x, 1), and a square of its first ones. The moments cost one matrix product for each weighting;
after that no question about any θ, k and c looks at a point again.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud, with_one

_ROUNDING = 1e-13
"""Of the terms that a variance is the difference of: less than that is nothing but rounding."""


class WeightedMoments(NamedTuple):
    """First and second moments of r (x, 1), for each weighting r."""

    first: Float[np.ndarray, "weightings dim+1"]
    second: Float[np.ndarray, "weightings dim+1 dim+1"]

    @classmethod
    def of(cls, points: Cloud, weightings: Float[np.ndarray, "weightings n"]) -> "WeightedMoments":
        """One row of weights for each weighting."""
        full = with_one(points)
        weighted = [row[:, None] * full for row in weightings]
        return cls(
            np.stack([np.mean(part, axis=0) for part in weighted]),
            np.stack([part.T @ part / len(points) for part in weighted]),
        )

    def of_power(self, number: int, known: np.ndarray, effects: np.ndarray) -> "Regression":
        """Of effects on some known coordinates and a constant, by one of the weightings."""
        columns = np.append(known, self.first.shape[1] - 1)
        first, second = self.first[number], self.second[number]
        return Regression(
            first[columns],
            first[effects],
            second[np.ix_(columns, columns)],
            second[np.ix_(columns, effects)],
            second[effects, effects],
        )


class Regression(NamedTuple):
    """Moments of known columns k and effects θ."""

    known_first: Float[np.ndarray, " known"]
    effects_first: Float[np.ndarray, " effects"]
    known: Float[np.ndarray, "known known"]
    cross: Float[np.ndarray, "known effects"]
    effects: Float[np.ndarray, " effects"]

    def least_squares(self) -> Float[np.ndarray, "known effects"]:
        """The weights c of least E (θ − k·c)², by normal equations: many times quicker than by
        singular values; columns as long as each other first, which their accuracy depends on."""
        length = np.sqrt(np.diag(self.known)) + 1e-300
        gram = self.known / length / length[:, None] + 1e-12 * np.eye(len(length))
        return np.linalg.solve(gram, self.cross / length[:, None]) / length[:, None]

    def variances(
        self, centres: Float[np.ndarray, "centres known effects"]
    ) -> Float[np.ndarray, "centres effects"]:
        """Of θ − k·c for each effect, for several weights c."""
        mean = self.effects_first - np.einsum("k,cke->ce", self.known_first, centres)
        crossed = np.sum(centres * self.cross, axis=1)
        squared = np.sum(centres * (self.known @ centres), axis=1)
        least = _ROUNDING * (self.effects + 2.0 * np.abs(crossed) + np.abs(squared))
        return np.maximum(self.effects - 2.0 * crossed + squared - mean**2, least + 1e-300)
