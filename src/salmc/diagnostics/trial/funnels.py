"""Copies of draws along funnels: one coordinate moves, and the spread of others goes with it.

In a hierarchical model a log scale s and the effects θ that it spreads are bound to each other:
with θ held, s can hardly move, so that copies along s alone see nothing of a neck that draws come
to too rarely. The maps

    T_δ(s, θ, r) = (s + δ, c(r) + e^{aδ} (θ − c(r)), r)

lead through the whole funnel. They are a group, T_δ T_ε = T_{δ+ε}, as the centres c depend on the
other coordinates r alone, and their volume is e^{aδ} for each effect: ranks among such copies are
as exact as any (`orbits`), whatever a and c are. Which coordinates are scales, and of which others,
is seen in the draws: where log |θ_j − c_j| goes up with s.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from salmc.diagnostics.point_sets import Cloud

_POINTS, _FEWEST = 4000, 400
_LEAST_CORRELATION, _BESIDE_LARGEST = 0.12, 0.5
"""Of a coordinate with the log spread of another; and beside the largest of that coordinate."""

_MOST_FUNNELS, _MOST_DIM = 2, 100
_POWERS = (1.0, 0.5)
"""Of the logarithm of a standard deviation, and of a variance; a third is seen in the draws."""


class Funnel(NamedTuple):
    """A coordinate, and those whose spread goes with it."""

    scale: int
    members: Int[np.ndarray, " m"]
    rest: Int[np.ndarray, " r"]
    weights: Float[np.ndarray, "r_and_one m"]
    """Of the other coordinates, and of 1, in the centres of the members."""
    power: float
    step: float
    """Of the coordinate, between two copies."""

    def copies(self, points: Cloud, times: Int[np.ndarray, "n copies"]) -> tuple[np.ndarray, float]:
        """Points moved by so many steps each, (n, copies, dim); and log volume of one step."""
        moved = np.repeat(points[:, None], times.shape[1], axis=1)
        shift = self.step * times
        moved[:, :, self.scale] += shift
        centres = _with_one(points[:, self.rest]) @ self.weights
        spread = (points[:, self.members] - centres)[:, None] * np.exp(self.power * shift)[
            ..., None
        ]
        moved[:, :, self.members] = centres[:, None] + spread
        return moved, self.power * self.step * len(self.members)


def funnels(points: Cloud) -> Iterator[Funnel]:
    """The funnels that draws show, the clearest first."""
    points = points[:_POINTS]
    n, dim = points.shape
    if n < _FEWEST or not 2 <= dim <= _MOST_DIM:
        return
    spread = np.log(np.abs(points - np.median(points, axis=0)) + np.finfo(float).tiny)
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.nan_to_num(np.corrcoef(points, spread, rowvar=False)[:dim, dim:])
    np.fill_diagonal(both, 0.0)
    clear = np.where(np.abs(both) > _LEAST_CORRELATION, both**2, 0.0)
    for scale in np.argsort(-np.sum(clear, axis=1))[:_MOST_FUNNELS].tolist():
        largest = both[scale, np.argmax(np.abs(both[scale]))]
        if abs(largest) < _LEAST_CORRELATION:
            return
        # A scale that shrinks what others do is the same with its sign turned.
        alike = both[scale] * np.sign(largest)
        members = np.flatnonzero(alike > max(_LEAST_CORRELATION, _BESIDE_LARGEST * abs(largest)))
        rest = np.setdiff1d(np.arange(dim), [scale, *members.tolist()])
        centred = points[:, scale] - np.mean(points[:, scale])
        variance = float(np.mean(centred**2))
        if not variance > 0.0:
            continue
        weights, seen = _centres(points[:, rest], points[:, members], centred)
        for power in (seen, *(np.sign(largest) * power for power in _POWERS)):
            yield Funnel(scale, members, rest, weights, float(power), 0.5 * variance**0.5)


def _centres(rest: Cloud, members: Cloud, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of other coordinates in the centres of members; and the power of their spread.

    By least squares, each draw by the inverse of its variance: centres must be right in the neck,
    where members are nearly there, and draws of the mouth would put them anywhere.
    """
    known, power = _with_one(rest), 0.0
    held = np.maximum(scale, np.quantile(scale, 0.005))
    for _ in range(3):
        root = np.exp(-power * (held - np.min(held)))[:, None]
        weights = np.linalg.lstsq(root * known, root * members, rcond=None)[0]
        away = np.log(np.abs(members - known @ weights) + np.finfo(float).tiny)
        power = float(np.median(scale @ away) / np.sum(scale**2))
    return weights, power


def _with_one(points: Cloud) -> Cloud:
    return np.concatenate([points, np.ones((len(points), 1))], axis=1)
