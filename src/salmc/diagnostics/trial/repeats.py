"""Draws that come again: copied chains, tiled draws, few points drawn with replacement.

A continuous density gives no point twice. A Metropolis chain stays where it is when it rejects, so
runs of equal draws count once; so do a few returns within a few draws, as replicas that exchange
their places make them. Whatever comes back after that is a copy, and ESS and R-hat, which take
copies for new draws, mean nothing. Numbers may be so coarse that points meet by chance, as in
single precision, or in draws that a file has kept with a few decimals: as many as that are let go.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_SOON, _FEW = 20, 4
"""Draws of a chain within which it may come back to a place, and how often."""

_DECIMALS = 10.0 ** np.arange(2.0, -8.0, -1.0)
_FINE = 0.01
"""Of the spread, up to which rounding to decimals changes no answer."""


def repeated_share(chains: Float[np.ndarray, "chain draw dim"]) -> float:
    """Share of the draws, each stay counted once, whose point occurs elsewhere beyond chance."""
    values = np.asarray(chains)
    if values.shape[0] * values.shape[1] < 2:
        return 0.0
    changed = np.ones(values.shape[:2], bool)
    changed[:, 1:] = np.any(values[:, 1:] != values[:, :-1], axis=2)
    changed &= np.all(np.isfinite(values), axis=2)
    visits, (chain, time) = values[changed], np.nonzero(changed)
    if len(visits) < 2:
        return 0.0
    _, where, counts = np.unique(visits, axis=0, return_inverse=True, return_counts=True)
    where = where.reshape(-1)
    again = (counts > 1) & (_stays(where, chain, time) > 1)
    return max(0.0, float(np.mean(again[where])) - _meetings(visits))


def _stays(where: np.ndarray, chain: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Of each place, how often chains came there; a few returns of one chain soon after are none.

    Args:
        where, chain, time: the number of the place of each visit, whose it is, and when.
    """
    order = np.lexsort((time, chain, where))
    place, whose, when = where[order], chain[order], time[order]
    soon = (place[1:] == place[:-1]) & (whose[1:] == whose[:-1]) & (np.diff(when) <= _SOON)
    visits, returns = np.bincount(place), np.bincount(place[1:][soon], minlength=np.max(place) + 1)
    return np.where(returns <= _FEW, visits - returns, visits)


def _meetings(visits: np.ndarray) -> float:
    """Expected number of others in the place of a draw, by the spacing of its numbers."""
    typical = np.max(np.abs(visits), axis=0).astype(visits.dtype)
    spread = np.std(visits.astype(np.float64), axis=0)
    steps = [_decimal(*pair) for pair in zip(visits.T, spread.tolist(), strict=True)]
    apart = np.maximum(np.spacing(typical), steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Places per unit of the spread; a coordinate that never changes tells nothing.
        places = np.where(spread > 0.0, spread / apart, 1.0)
    return len(visits) / float(np.exp(np.minimum(np.sum(np.log(np.maximum(places, 1.0))), 300.0)))


def _decimal(column: np.ndarray, spread: float) -> float:
    """The largest power of ten that all numbers are multiples of, as far as rounding tells; 0 for
    none, and where it is so large that rounding to it is a fault of its own."""
    for step in _DECIMALS.tolist():
        # Most often the first few tell.
        if _are_multiples(column[:20], step) and _are_multiples(column, step):
            return float(step) if step <= _FINE * spread else 0.0
    return 0.0


def _are_multiples(column: np.ndarray, step: float) -> bool:
    exact = np.round(column.astype(np.float64) / step) * step
    return bool(np.all(np.abs(exact - column) <= np.spacing(np.abs(column))))


_ATOM, _FEWEST = 0.002, 10
"""Share of the draws in one value, and number of them, that no density leaves there."""

_ALIKE = 0.2
"""Of the draws in the commonest value: numbers that are rounded have many values with so many."""


class Atom(NamedTuple):
    """One number that is the coordinate of many draws that otherwise differ."""

    coordinate: int
    value: float
    share: float
    """Of the draws."""

    def sentences(self) -> list[str]:
        """What to tell of it."""
        return [
            f"{self.share:.1%} of the draws have exactly {self.value:.6g} in one coordinate "
            f"(number {self.coordinate}): they were cut off there, or rounded to a bound. No "
            "density has such a place. Reject what is outside, or give `bounds`, and do not clip."
        ]


def atom(chains: Float[np.ndarray, "chain draw dim"]) -> Atom | None:
    """The coordinate with the largest; None where there is none.

    Moves of some coordinates leave others where they are: stays count once, and whole draws that
    are copies are told elsewhere.
    """
    values, worst = np.asarray(chains), None
    if values.shape[0] * values.shape[1] < 2:
        return None
    for i in range(values.shape[2]):
        column = values[:, :, i]
        changed = np.ones(column.shape, bool)
        changed[:, 1:] = column[:, 1:] != column[:, :-1]
        visits = values[changed]
        found, counts = np.unique(visits[:, i], return_counts=True)
        most = int(np.max(counts))
        if most < max(_FEWEST, _ATOM * len(visits)) or np.sum(counts > _ALIKE * most) > 2:
            continue
        value = found[np.argmax(counts)]
        if len(np.unique(visits[visits[:, i] == value], axis=0)) < 0.5 * most:
            continue
        share = float(np.mean(column == value))
        if worst is None or share > worst.share:
            worst = Atom(i, float(value), share)
    return worst
