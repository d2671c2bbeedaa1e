"""Effective sample size: how many independent draws the chains are worth.

Three estimators, each for its use:

* `ess_known_moments`: that of the paper's tables (from A-NICE-MC, Song, Zhao & Ermon 2017), with
  the true mean and variance: ESS = T / (1 + 2 Σ_s (1 − s/T) ρ_s), summed while ρ_s > 0.05;
* `ess_bulk`, `ess_tail`: those of Vehtari et al. (2021), through ArviZ, which need no truth.

All see autocorrelation, none sees bias: a sampler of the wrong distribution can score T. Show a
discrepancy beside them.
"""

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.arrays import AnyArray, ChainsLike, as_chains
from salmc.diagnostics.autocorrelation import autocorrelation

CORRELATION_CUTOFF = 0.05
"""Lags are summed until ρ_s falls to this, as in the paper's tables: beyond it is mostly noise."""


def ess_known_moments(
    chains: ChainsLike, mean: Float[AnyArray, " k"], std: Float[AnyArray, " k"]
) -> Float[np.ndarray, " k"]:
    """ESS of one chain for each quantity; the smallest is the number of the paper's tables.

    Args:
        chains: (chain, draw, k), the judged quantities along each chain.
        mean, std: their true mean and standard deviation.

    Returns:
        ESS per chain of each quantity, at most the number of draws.

    Example:
        >>> import numpy as np
        >>> chains = np.random.default_rng(0).normal(size=(32, 500, 1))
        >>> float(ess_known_moments(chains, np.zeros(1), np.ones(1)).min())
        500.0
    """
    checks.real("std", std, above=0.0)
    values = as_chains("chains", chains)
    draws = values.shape[1]
    correlation = autocorrelation(values, mean, std)[1:]
    # Only lags before the first one at or below the cutoff count; NaN ends nothing and shows.
    counted = np.logical_and.accumulate(~(correlation <= CORRELATION_CUTOFF), axis=0)
    taper = 1.0 - np.arange(1, draws)[:, None] / draws
    total = np.sum(np.where(counted, taper * correlation, 0.0), axis=0)
    return draws / (1.0 + 2.0 * total)


def ess_bulk(chains: ChainsLike) -> Float[np.ndarray, " k"]:
    """Rank-normalised ESS of the bulk of each quantity, all chains together (ArviZ)."""
    return _arviz_ess(chains, "bulk")


def ess_tail(chains: ChainsLike) -> Float[np.ndarray, " k"]:
    """ESS of the 5 % and 95 % quantiles of each quantity, the smaller of the two (ArviZ)."""
    return _arviz_ess(chains, "tail")


def ess_per_second(ess: float, seconds: float) -> float:
    """Effective draws per second of sampling; NaN where the time is not known."""
    return float(ess) / seconds if seconds > 0 else float("nan")


def _arviz_ess(chains: ChainsLike, method: str) -> Float[np.ndarray, " k"]:
    values = as_chains("chains", chains, at_least=4)
    # ArviZ takes a second or more to import, which `import salmc` should not pay.
    from arviz_stats.base import array_stats

    probabilities = (0.05, 0.95) if method == "tail" else None
    ess = array_stats.ess(values, chain_axis=0, draw_axis=1, method=method, prob=probabilities)
    return np.asarray(ess, dtype=np.float64)
