"""How much wider a sum scatters because its terms, in the order of the run, follow each other.

Draws are thinned until their coordinates are all but independent. Which mode they are in may last
longer: a chain that came to a light mode stays there for many draws. With ρ_k the correlation of
terms that are k apart,

    Var Σ r_i ≈ (1 + 2 Σ_k ρ_k) Σ Var r_i,

where the sum ends at the first ρ_k that chance would give.
"""

import numpy as np

from salmc.diagnostics.point_sets import Numbers

_BY_CHANCE = 2.0
"""Standard errors of a correlation."""

_MOST_LAGS = 100


def inflation(terms: Numbers, order: np.ndarray) -> float:
    """1 + 2 Σ ρ_k, at least 1.

    Args:
        terms: (n,), with their mean.
        order: (n,), when each was drawn.
    """
    count = len(terms)
    away = terms[np.argsort(order)] - np.mean(terms)
    variance = float(np.mean(away**2))
    found = 1.0
    if variance <= 0.0:
        return found
    for lag in range(1, min(_MOST_LAGS, count // 4) + 1):
        correlation = float(np.mean(away[lag:] * away[:-lag])) / variance
        if correlation < _BY_CHANCE / np.sqrt(count):
            break
        found += 2.0 * correlation
    return found
