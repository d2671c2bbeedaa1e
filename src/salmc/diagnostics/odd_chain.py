"""Is one chain of several unlike the others? R-hat asks all of them at once, and so hides it.

One chain of 32 that sits a standard deviation away, or spreads twice as widely, moves R-hat by
0.02. So each chain is held against all others by itself: the mean m of its draws, and of their
distances from the median, both rank-normalised (Vehtari et al. 2021), so that a mean is nearly
normal however heavy tails are. For exact, stationary chains that are independent of each other

    t = (m_c − mean m_others) / (s_others √(1 + 1/(C − 1)))

is Student's t of C − 2 degrees of freedom, whatever the chains' autocorrelation is. A chain that
came late to where the others have been shows it within itself: the error is at least what the
parts of that chain tell, so that only a chain that stays unlike the others is told of.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

_FEWEST_CHAINS, _FEWEST_DRAWS = 4, 50
_MOST_DRAWS, _OF_EACH = 16_000, 200
"""Looked at in all, and of each chain at least: a difference that matters shows in far fewer."""

_PARTS = 5
"""Of a chain, whose means tell how far it moves."""

LEVEL = 1e-4
LEAST_SHIFT = 0.3
"""In standard deviations: less moves the mean of all chains by less than a tenth of one."""


class OddChain(NamedTuple):
    """The chain that is the least like the others."""

    chain: int
    coordinate: int
    spreads: bool
    """Whether its spread is unlike theirs, and not its place."""
    shift: float
    """In standard deviations of the normal scores."""
    p_value: float
    """For all chains and coordinates together."""

    def sentences(self) -> list[str]:
        """What to tell of it; nothing where chance explains it, or it hardly matters."""
        if not (self.p_value < LEVEL and abs(self.shift) > LEAST_SHIFT):
            return []
        how = "lies elsewhere"
        if self.spreads:
            how = f"spreads {'more widely' if self.shift > 0.0 else 'less'}"
        return [
            f"Chains disagree: chain {self.chain} {how} than the others "
            f"(p = {self.p_value:.0e}), which R-hat of all of them hides. It did not mix, or sits "
            "in a mode of its own. Run longer, or use a method that moves between modes."
        ]


def odd_chain(
    chains: Float[np.ndarray, "chain draw dim"], height: Float[np.ndarray, "chain draw"]
) -> OddChain | None:
    """None for chains too few or too short.

    Args:
        chains: the draws.
        height: log p there, one coordinate more where it is known.
    """
    count, draws = chains.shape[:2]
    if count < _FEWEST_CHAINS or draws < _FEWEST_DRAWS or not np.all(np.isfinite(chains)):
        return None
    if np.all(np.isfinite(height)):
        chains = np.concatenate([chains, height[:, :, None]], axis=2)
    dim = chains.shape[2]
    chains = chains[:, :: -(-draws // max(_MOST_DRAWS // count, _OF_EACH))]
    away = np.abs(chains - np.median(chains, axis=(0, 1)))
    worst = None
    for spreads, values in ((False, chains), (True, away)):
        scores = _normal_scores(values)
        sizes, shifts = _against_others(scores)
        at = int(np.argmax(np.abs(sizes)))
        chain, coordinate = divmod(at, dim)
        p_value = 2.0 * float(stats.t.sf(abs(sizes[chain, coordinate]), count - 2))
        p_value = min(1.0, 2.0 * count * dim * p_value)
        if worst is None or p_value < worst.p_value:
            shift = float(shifts[chain, coordinate])
            worst = OddChain(chain, coordinate, spreads, shift, p_value)
    return worst


def _against_others(
    scores: Float[np.ndarray, "chain draw dim"],
) -> tuple[Float[np.ndarray, "chain dim"], Float[np.ndarray, "chain dim"]]:
    """t of each chain and coordinate, and how far it is from the mean of the others."""
    count, draws, dim = scores.shape
    means = np.mean(scores, axis=1)
    shift = (means - np.mean(means, axis=0)) * count / (count - 1)
    # Of the others: all squares less its own.
    squares = np.sum((means - np.mean(means, axis=0)) ** 2, axis=0)
    others = np.maximum(squares - shift**2 * (count - 1) / count, 0.0) / (count - 2)
    length = draws // _PARTS
    parts = scores[:, : _PARTS * length].reshape(count, _PARTS, length, dim).mean(axis=2)
    within = np.var(parts, axis=1, ddof=1) / _PARTS
    error = np.sqrt(np.maximum(others, within) + others / (count - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(shift / error, posinf=0.0, neginf=0.0), shift


def _normal_scores(values: Float[np.ndarray, "chain draw dim"]) -> np.ndarray:
    ranks = stats.rankdata(values.reshape(-1, values.shape[2]), axis=0)
    return stats.norm.ppf((ranks - 0.375) / (len(ranks) + 0.25)).reshape(values.shape)
