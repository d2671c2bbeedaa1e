"""Had the chains arrived when they began? The first tenth of each against its last half.

Chains that all begin in one wrong place agree with each other at all times, so that R-hat is
content, and their ESS falls but a little. Yet for stationary chains the mean of the first tenth
less that of the last half is zero in expectation, whatever their autocorrelation is, and chains are
independent of each other: so Student's t of that difference over the chains (Geweke's idea, 1992,
with an error from the chains instead of a spectrum). Draws are rank-normalised, for heavy tails.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

_FIRST, _LAST = 0.1, 0.5
_FEWEST_CHAINS, _FEWEST_DRAWS = 4, 50
_MOST_DRAWS, _OF_EACH = 16_000, 200
"""Looked at in all, and of each chain at least: a shift that matters shows in far fewer."""

LEVEL = 1e-4
LEAST_SHIFT = 0.3
"""In standard deviations: less moves the mean of all draws by less than 0.03 of them."""


class Arrival(NamedTuple):
    """The coordinate in which the first draws are furthest from the last."""

    coordinate: int
    shift: float
    """In standard deviations."""
    p_value: float
    """For all coordinates together."""

    def sentences(self) -> list[str]:
        """What to tell of it; nothing where chance explains it, or it hardly matters."""
        if not (self.p_value < LEVEL and abs(self.shift) > LEAST_SHIFT):
            return []
        return [
            f"Chains were not there yet when they began: in all of them alike the first tenth lies "
            f"{abs(self.shift):.1f} standard deviations from the last half "
            f"(p = {self.p_value:.0e}). Leave the first draws out, and draw as many again."
        ]


def arrival(chains: Float[np.ndarray, "chain draw dim"]) -> Arrival | None:
    """None for chains too few or too short."""
    count, draws, dim = chains.shape
    if count < _FEWEST_CHAINS or draws < _FEWEST_DRAWS or not np.all(np.isfinite(chains)):
        return None
    chains = chains[:, :: -(-draws // max(_MOST_DRAWS // count, _OF_EACH))]
    draws = chains.shape[1]
    ranks = stats.rankdata(chains.reshape(-1, dim), axis=0)
    normal = stats.norm.ppf((ranks - 0.375) / (len(ranks) + 0.25)).reshape(chains.shape)
    first, last = normal[:, : int(_FIRST * draws)], normal[:, int((1.0 - _LAST) * draws) :]
    differences = np.mean(first, axis=1) - np.mean(last, axis=1)
    shift, error = np.mean(differences, axis=0), np.std(differences, axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.nan_to_num(np.abs(shift) / error * np.sqrt(count), posinf=0.0)
    at = int(np.argmax(sizes))
    p_value = min(1.0, 2.0 * dim * float(stats.t.sf(sizes[at], count - 1)))
    return Arrival(at, float(shift[at]), p_value)
