"""What chains tell of themselves: autocorrelation, effective sample size, R-hat, acceptance.

    ρ_s = 1/((T − s) σ²) Σ_t (x_t − μ)(x_{t+s} − μ),   averaged over chains.

With the true μ and σ autocorrelation also sees a chain that never leaves one mode; with estimated
moments (of all chains together) it sees disagreement between chains, but no mode that all of them
miss. There are three estimators of the effective sample size:

* `ess_known_moments`: that of the paper's tables (from A-NICE-MC, Song, Zhao & Ermon 2017), with
  the true mean and variance: ESS = T / (1 + 2 Σ_s (1 − s/T) ρ_s), summed while ρ_s > 0.05;
* `ess_bulk`, `ess_tail`: those of Vehtari et al. (2021), through ArviZ, which need no truth.

None of these sees bias: a sampler of the wrong distribution can score T. Show a discrepancy beside
them. R-hat is near 1 when the spread between chains is what the spread within them explains; chains
that all stay in the same wrong place agree.
"""

import numpy as np
from jaxtyping import Float

from salmc import checks
from salmc.diagnostics.point_sets import AnyArray, ChainsLike, FlagsLike, as_chains

CORRELATION_CUTOFF = 0.05
"""Lags are summed until ρ_s falls to this, as in the paper's tables: beyond it is mostly noise."""


def autocorrelation(
    chains: ChainsLike,
    mean: Float[AnyArray, " k"] | None = None,
    std: Float[AnyArray, " k"] | None = None,
) -> Float[np.ndarray, "draw k"]:
    """Autocorrelation at lags 0 … T − 1 of each quantity, averaged over chains, by FFT.

    Args:
        chains: (chain, draw, k).
        mean, std: the true moments of each quantity; estimated from all chains where not given.

    Returns:
        (lag, k). Quantities that never change and have no known sd give NaN.
    """
    values = as_chains("chains", chains)
    draws = values.shape[1]
    centre = np.mean(values, axis=(0, 1)) if mean is None else np.asarray(mean, dtype=np.float64)
    deviations = values - centre
    if std is None:
        variance = np.mean(deviations**2, axis=(0, 1))
    else:
        variance = np.asarray(std, dtype=np.float64) ** 2
    size = 1 << (2 * draws - 1).bit_length()
    spectrum = np.fft.rfft(deviations, n=size, axis=1)
    sums = np.fft.irfft(np.mean(np.abs(spectrum) ** 2, axis=0), n=size, axis=0)[:draws]
    covariance = sums / np.arange(draws, 0, -1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return covariance / variance


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
    """Rank-normalised ESS of the bulk of each quantity, all chains together."""
    return _arviz("ess", chains, method="bulk")


def ess_tail(chains: ChainsLike) -> Float[np.ndarray, " k"]:
    """ESS of the 5 % and 95 % quantiles of each quantity, the smaller of the two."""
    return _arviz("ess", chains, method="tail", prob=(0.05, 0.95))


def ess_per_second(ess: float, seconds: float) -> float:
    """Effective draws per second of sampling; NaN where the time is not known."""
    return float(ess) / seconds if seconds > 0 else float("nan")


def rhat(chains: ChainsLike) -> Float[np.ndarray, " k"]:
    """R-hat of each quantity of (chain, draw, k), rank-normalised and split.

    Each chain is split in two, so one chain alone can be judged. Chains that never move give
    infinity if they stand apart, and NaN if all stand at one value.
    """
    return _arviz("rhat", chains, method="rank")


def acceptance_rate(accepted: FlagsLike) -> float:
    """Share of accepted proposals, from flags (chain, draw)."""
    return float(np.mean(np.asarray(accepted)))


def density_ratio_acceptance(log_density: Float[AnyArray, "chain draw"]) -> float:
    """Mean of min{1, p(x')/p(x)} over consecutive draws: what the paper reports without flags.

    It is not a Hastings ratio: the proposal's density is left out, so a sampler can score high and
    still be biased. A draw of zero density counts as 0 wherever it came from; NaN with fewer than
    two draws.
    """
    values = np.asarray(log_density, dtype=np.float64)
    if values.shape[1] < 2:
        return float("nan")
    values = np.where(np.isnan(values), -np.inf, values)
    before, after = values[:, :-1], values[:, 1:]
    with np.errstate(invalid="ignore"):
        ratio = np.exp(np.minimum(after - before, 0.0))
    return float(np.mean(np.where(after > -np.inf, ratio, 0.0)))


def _arviz(statistic: str, chains: ChainsLike, **options: object) -> Float[np.ndarray, " k"]:
    values = as_chains("chains", chains, at_least=4)
    # ArviZ takes a second or more to import, which `import salmc` should not pay.
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        result = getattr(array_stats, statistic)(values, chain_axis=0, draw_axis=1, **options)
    return np.asarray(result, dtype=np.float64)
