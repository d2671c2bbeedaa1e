"""Copies of draws along funnels: one coordinate moves, and the spread of others goes with it.

In a hierarchical model a log scale s and the effects θ that it spreads are bound to each other:
with θ held, s can hardly move, so that copies along s alone see nothing of a neck that draws come
to too rarely. The maps

    T_δ(s, θ, r) = (s + δ, c(r) + e^{aδ} (θ − c(r)), r)

lead through the whole funnel. They are a group, T_δ T_ε = T_{δ+ε}, as the centres c depend on the
other coordinates r alone, and their volume is e^{aδ} for each effect: ranks among such copies are
as exact as any (`orbits`), whatever a and c are. Which coordinates are scales, and of which others,
is seen in the draws: where log |θ_j − c_j| goes up with s.

Where data hold each effect in a place of its own, that hardly shows; but in the neck all of them,
and the mean that they have in common, come together, and so are correlated there and not elsewhere.
Such members close up on their own mean, which the map leaves as it is: the volume is e^{aδ} for
each of them but one.

With a random δ the same maps are exact moves of particles (`follow`), accepted with probability

    min{1, p(T_δ x) |det ∂T_δ/∂x| / p(x)},

which carry a pool through a neck that no step in straight lines comes through.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Num

from salmc.diagnostics.point_sets import Cloud, Numbers, with_one

_POINTS, _FEWEST = 4000, 400
_LEAST_CORRELATION, _BESIDE_LARGEST = 0.12, 0.5
"""Of a coordinate with the log spread of another; and beside the largest of that coordinate."""

_MOST_FUNNELS, _MOST_DIM = 2, 100
_POWERS = (1.0, 0.5)
"""Of the logarithm of a standard deviation, and of a variance; a third is seen in the draws."""


_STEP = 0.5
"""Between two copies, in standard deviations of the coordinate."""

_NECK, _BOUND, _MORE_BOUND = 0.05, 0.3, 0.15
"""Share of the draws that are the neck; correlations there, and how far above those elsewhere."""

_FOLLOWED, _SHORTEST, _LONGEST = 12, 0.1, 4.0
"""How often each funnel is followed at a time; and by how many steps, normal with such scales."""

_TAILS, _MOST_ERRORS = (0.01, 0.05, 0.25), 3.0
"""Shares of the particles in a tail, and by how many standard errors they may differ."""


class Funnel(NamedTuple):
    """A coordinate, and those whose spread goes with it."""

    scale: int
    members: Int[np.ndarray, " m"]
    power: float
    step: float
    """Of the coordinate, between two copies."""
    rest: Int[np.ndarray, " r"] = np.zeros(0, int)
    weights: Float[np.ndarray, "r_and_one m"] | None = None
    """Of the other coordinates, and of 1, in the centres of the members; None for their mean."""

    def copies(self, points: Cloud, times: Num[np.ndarray, "n copies"]) -> tuple[np.ndarray, float]:
        """Points moved by so many steps each, (n, copies, dim); and log volume of one step."""
        moved = np.repeat(points[:, None], times.shape[1], axis=1)
        shift = self.step * times
        moved[:, :, self.scale] += shift
        if self.weights is None:
            centres = np.mean(points[:, self.members], axis=1, keepdims=True)
        else:
            centres = with_one(points[:, self.rest]) @ self.weights
        away = points[:, self.members] - centres
        # What overflows is so far out that the density is zero there.
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.exp(self.power * shift)[..., None]
            moved[:, :, self.members] = centres[:, None] + growth * away[:, None]
        free = len(self.members) - (self.weights is None)
        return moved, self.power * self.step * free


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
            step = _STEP * variance**0.5
            yield Funnel(scale, members, float(power), step, rest, weights)
    yield from _closing_up(points)


def follow(
    found: Sequence[Funnel],
    points: Cloud,
    values: Numbers,
    log_densities: Callable[[Cloud], Numbers],
    generator: np.random.Generator,
) -> tuple[Cloud, Numbers]:
    """Move particles along funnels by exact Metropolis steps.

    Args:
        found: funnels, seen in any draws: whatever they are, the steps are exact.
        points, values: particles, and log p there.
        log_densities: log p of n points, −inf where it is not defined.
        generator: of all random choices.
    """
    for _ in range(_FOLLOWED):
        for funnel in found:
            size = _SHORTEST * (_LONGEST / _SHORTEST) ** generator.random()
            times = size * generator.normal(size=len(points))
            moved, log_volume = funnel.copies(points, times[:, None])
            proposals = moved[:, 0]
            there = log_densities(proposals)
            with np.errstate(invalid="ignore"):
                gain = there - values + log_volume * times
            threshold = np.log1p(-generator.random(len(points)))
            accepted = (there > -np.inf) & (threshold <= gain)
            points = np.where(accepted[:, None], proposals, points)
            values = np.where(accepted, there, values)
    return points, values


def as_wide(columns: Iterable[int], before: Cloud, after: Cloud) -> bool:
    """Whether about as many particles as before are in the tails of some coordinates."""
    for column in columns:
        for share in _TAILS:
            low, high = np.quantile(before[:, column], (share, 1.0 - share))
            beyond = np.array([np.mean(after[:, column] < low), np.mean(after[:, column] > high)])
            error = np.sqrt(share * (1.0 - share) / len(after))
            if np.any(np.abs(beyond - share) > _MOST_ERRORS * error):
                return False
    return True


def _closing_up(points: Cloud) -> Iterator[Funnel]:
    """The coordinate at one end of which most others come together, where there is one."""
    best, found = 0, None
    for scale, column in enumerate(points.T):
        for sign in (1.0, -1.0):
            signed = sign * column
            neck, bulk = (signed < np.quantile(signed, _NECK)), (signed > np.median(signed))
            if min(np.sum(neck), np.sum(bulk)) < 20:
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                there, elsewhere = (
                    np.nan_to_num(np.corrcoef(points[rows], rowvar=False)) for rows in (neck, bulk)
                )
            bound = (there > _BOUND) & (there - elsewhere > _MORE_BOUND)
            bound[scale] = bound[:, scale] = False
            np.fill_diagonal(bound, False)
            partners = np.sum(bound, axis=1)
            members = np.flatnonzero(partners >= max(2, _BESIDE_LARGEST * np.max(partners)))
            count = int(np.sum(bound[np.ix_(members, members)]))
            if len(members) >= 3 and count > max(best, len(members)):
                best, found = count, (scale, members, sign)
    if found is not None:
        scale, members, sign = found
        for power in _POWERS:
            yield Funnel(scale, members, sign * power, _STEP * float(np.std(points[:, scale])))


def _centres(rest: Cloud, members: Cloud, scale: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of other coordinates in the centres of members; and the power of their spread.

    By least squares, each draw by the inverse of its variance: centres must be right in the neck,
    where members are nearly there, and draws of the mouth would put them anywhere.
    """
    known, power = with_one(rest), 0.0
    held = np.maximum(scale, np.quantile(scale, 0.005))
    for _ in range(3):
        root = np.exp(-power * (held - np.min(held)))[:, None]
        weights = np.linalg.lstsq(root * known, root * members, rcond=None)[0]
        away = np.log(np.abs(members - known @ weights) + np.finfo(float).tiny)
        power = float(np.median(scale @ away) / np.sum(scale**2))
    return weights, power
