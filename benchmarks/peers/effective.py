"""Effective sample size and R-hat of chains in plain NumPy, which every peer's environment has.

After Vehtari et al., "Rank-normalization, folding, and localization", 2021: chains are split in
two; bulk ESS is of normalised ranks, tail ESS of the indicators of the 5 % and 95 % quantiles;
Geyer's initial monotone sequence ends the sum of autocorrelations. Weighted draws have Kish's
size, (Σw)²/Σw², which sees no autocorrelation.
"""

import numpy as np


def smallest_ess(chains: np.ndarray) -> float:
    """The smallest of bulk and tail ESS over coordinates, of chains (chain, draw, dim)."""
    chains = np.asarray(chains, np.float64)
    if chains.shape[1] < 8 or not np.all(np.isfinite(chains)):
        return 0.0
    found = []
    for coordinate in np.moveaxis(_split(chains), 2, 0):
        low, high = np.quantile(coordinate, [0.05, 0.95])
        found += [
            ess(_normal_ranks(coordinate)),
            ess((coordinate <= low).astype(float)),
            ess((coordinate <= high).astype(float)),
        ]
    return float(min(found))


def largest_rhat(chains: np.ndarray) -> float:
    """The largest R-hat over coordinates, of ranks of split chains; infinite for stuck ones."""
    chains = np.asarray(chains, np.float64)
    if chains.shape[1] < 8 or not np.all(np.isfinite(chains)):
        return float("inf")
    found = []
    for coordinate in np.moveaxis(_split(chains), 2, 0):
        z = _normal_ranks(coordinate)
        within = float(np.mean(np.var(z, axis=1, ddof=1)))
        between = float(np.var(z.mean(axis=1), ddof=1))
        length = z.shape[1]
        spread = (length - 1) / length * within + between
        found.append(np.sqrt(spread / within) if within > 0 else np.inf)
    return float(max(found))


def kish(weights: np.ndarray) -> float:
    """(Σw)²/Σw²."""
    total = float(np.sum(weights))
    return total**2 / float(np.sum(np.square(weights))) if total > 0 else 0.0


def ess(chains: np.ndarray) -> float:
    """ESS of the mean of one quantity, of split chains (chain, draw)."""
    count, length = chains.shape
    deviations = chains - chains.mean(axis=1, keepdims=True)
    size = 1 << (2 * length - 1).bit_length()
    spectrum = np.fft.rfft(deviations, n=size, axis=1)
    covariance = np.fft.irfft(np.mean(np.abs(spectrum) ** 2, axis=0), n=size)[:length] / length
    within = covariance[0] * length / (length - 1)
    between = float(np.var(chains.mean(axis=1), ddof=1)) if count > 1 else 0.0
    spread = covariance[0] + between
    if not spread > 0:
        return 0.0
    correlation = 1.0 - (within - covariance) / spread
    correlation[0] = 1.0
    pairs = correlation[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0]] if len(ends) else pairs)
    time = max(-1.0 + 2.0 * float(np.sum(pairs)), 1.0 / np.log10(count * length))
    return count * length / time


def _split(chains: np.ndarray) -> np.ndarray:
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]], axis=0)


def _normal_ranks(values: np.ndarray) -> np.ndarray:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=None).reshape(values.shape)
    return ndtri((ranks - 0.375) / (values.size + 0.25))
