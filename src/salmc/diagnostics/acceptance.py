"""Acceptance: how many Metropolis proposals were taken, or would be.

A sampler without a Metropolis step has no flags. For those the paper reports the mean of
min{1, p(x')/p(x)} over consecutive draws, which needs log densities only. It is not a Hastings
ratio: the proposal's density is left out, so a sampler can score high and still be biased.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.arrays import AnyArray, FlagsLike


def acceptance_rate(accepted: FlagsLike) -> float:
    """Share of accepted proposals, from flags (chain, draw)."""
    return float(np.mean(np.asarray(accepted)))


def density_ratio_acceptance(log_density: Float[AnyArray, "chain draw"]) -> float:
    """Mean of min{1, p(x')/p(x)} over consecutive draws of each chain.

    A draw of zero density counts as 0 wherever it came from; NaN with fewer than two draws.
    """
    values = np.asarray(log_density, dtype=np.float64)
    if values.shape[1] < 2:
        return float("nan")
    values = np.where(np.isnan(values), -np.inf, values)
    before, after = values[:, :-1], values[:, 1:]
    with np.errstate(invalid="ignore"):
        ratio = np.exp(np.minimum(after - before, 0.0))
    return float(np.mean(np.where(after > -np.inf, ratio, 0.0)))
