"""Autocorrelation of chains, by FFT.

    ρ_s = 1/((T − s) σ²) Σ_t (x_t − μ)(x_{t+s} − μ),   averaged over chains.

With the true μ and σ it also sees a chain that never leaves one mode; with estimated moments
(of all chains together) it sees disagreement between chains, but no mode that all of them miss.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.arrays import AnyArray, ChainsLike, as_chains


def autocorrelation(
    chains: ChainsLike,
    mean: Float[AnyArray, " k"] | None = None,
    std: Float[AnyArray, " k"] | None = None,
) -> Float[np.ndarray, "draw k"]:
    """Autocorrelation at lags 0 … T − 1 of each quantity, averaged over chains.

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
