"""Draws that come again: copied chains, tiled draws, few points drawn with replacement.

A continuous density gives no point twice. A Metropolis chain stays where it is when it rejects, so
runs of equal draws count once; whatever comes back after that is a copy, and ESS and R-hat, which
take copies for new draws, mean nothing. Where the numbers themselves are so coarse that points meet
by chance, this cannot be told.
"""

import numpy as np
from jaxtyping import Float

_CHANCE_MEETINGS = 1e-3
"""Expected share of points that meet by chance from which on nothing is said."""


def repeated_share(chains: Float[np.ndarray, "chain draw dim"]) -> float:
    """Share of the draws, each stay counted once, whose point also occurs elsewhere."""
    values = np.asarray(chains)
    if values.shape[0] * values.shape[1] < 2:
        return 0.0
    changed = np.ones(values.shape[:2], bool)
    changed[:, 1:] = np.any(values[:, 1:] != values[:, :-1], axis=2)
    visits = values[changed]
    visits = visits[np.all(np.isfinite(visits), axis=1)]
    if len(visits) < 2 or _meetings(visits) > _CHANCE_MEETINGS:
        return 0.0
    _, where, counts = np.unique(visits, axis=0, return_inverse=True, return_counts=True)
    return float(np.mean(counts[where.reshape(-1)] > 1))


def _meetings(visits: np.ndarray) -> float:
    """Expected number of others in the place of a draw, by the spacing of its numbers."""
    typical = np.max(np.abs(visits), axis=0).astype(visits.dtype)
    spread = np.std(visits.astype(np.float64), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Cloud per unit of the spread; a coordinate that never changes tells nothing.
        places = np.where(spread > 0.0, spread / np.spacing(typical), 1.0)
    return len(visits) / float(np.exp(np.minimum(np.sum(np.log(np.maximum(places, 1.0))), 300.0)))
