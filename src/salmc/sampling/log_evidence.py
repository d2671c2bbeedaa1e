"""The evidence log Z = log ∫ p, from proposals of a kernel that knows its density q.

The mean of the weights w = p/q over proposals is Z (`importance`). Draws of exact chains add to
this. The bridge of Meng and Wong, with s₁, s₂ the shares of draws of p and of q, is the fixed point

    Z = E_q[ w / (s₁ w + s₂ Z) ] / E_p[ 1 / (s₁ w + s₂ Z) ]

in which no weight, however large or small, can outweigh the others. Its error is that of
Frühwirth-Schnatter, with the effective number of the chains' draws.

References: Meng and Wong, "Simulating ratios of normalizing constants via a simple identity",
Statistica Sinica 1996; Frühwirth-Schnatter, "Estimating marginal likelihoods for mixture and Markov
switching models using bridge sampling techniques", Econometrics Journal 2004.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp

from salmc.diagnostics.chain_statistics import ess_bulk
from salmc.programs import compiled, on_device
from salmc.sampling.draws import Draws
from salmc.sampling.importance import limit_of, propose, smoothed, too_heavy
from salmc.sampling.sampler import Sampler

_ROUNDS = 1000
_CONVERGED = 1e-10
_CHAIN_DRAWS = 10_000
"""Draws of the chains that a bridge uses, at most."""


@dataclasses.dataclass(frozen=True)
class LogEvidence:
    """An estimate of log Z = log ∫ p, or why there is none.

    Attributes:
        value: log Z; NaN where it is refused.
        standard_error: of the value.
        pareto_k: the shape of the tail of the weights; above about 0.7 they mean nothing.
        method: "bridge" with draws of exact chains, else "importance".
        trustworthy: whether there is a value.
        sentence: all of it in words.
    """

    value: float
    standard_error: float
    pareto_k: float
    method: str
    trustworthy: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def log_evidence(draws: Draws, sampler: Sampler, n: int, seed: int) -> LogEvidence:
    """log Z by a bridge between exact draws and proposals, or by proposals alone."""
    found = propose(sampler, n, seed)
    shape, limit = smoothed(found.log_ratio)[1], limit_of(n)
    exact = bool(draws.settings.get("exact")) and draws.kind == "chains"
    method = "bridge" if exact else "importance"
    if not shape <= limit:
        remedy = "draws.log_evidence(sampler=draws.sampler.improve())"
        sentence = f"No evidence: {too_heavy(shape, limit, remedy)}"
        return LogEvidence(math.nan, math.nan, shape, method, False, sentence)
    if exact:
        value, error = _bridge(_ratios_of_chains(draws, sampler), found.log_ratio)
    else:
        value, error = _mean(found.log_ratio)
    sentence = (
        f"log Z = {value:.3f} ± {error:.3f} by {method} sampling with {n} proposals; "
        f"Pareto k̂ {shape:.2f}, below {limit:.2f}."
    )
    return LogEvidence(value, error, shape, method, True, sentence)


@compiled
def _ratios(kernel: Any, whitening: Any, target: Any, points: Any) -> Float[Array, " n"]:
    new = whitening.whiten(points)
    log_q = kernel.log_densities(new, new) + whitening.log_determinant
    return target.log_densities(points) - log_q


def _ratios_of_chains(draws: Draws, sampler: Sampler) -> np.ndarray:
    """log p − log q at draws of the chains, (chain, draw)."""
    chains = draws.chains()
    every = max(1, -(-chains.shape[0] * chains.shape[1] // _CHAIN_DRAWS))
    chosen = chains[:, ::every]
    points = on_device(sampler.inward(chosen.reshape(-1, draws.dim)))
    found = _ratios(sampler.kernel, sampler.whitening, sampler.target, points)
    return np.asarray(found, np.float64).reshape(chosen.shape[:2])


def _mean(log_ratio: np.ndarray) -> tuple[float, float]:
    """log of the mean weight, and its standard error."""
    value = float(logsumexp(log_ratio) - math.log(len(log_ratio)))
    spread = float(np.std(np.exp(log_ratio - value)))
    return value, spread / math.sqrt(len(log_ratio))


def _bridge(of_chains: np.ndarray, of_proposals: np.ndarray) -> tuple[float, float]:
    """Meng and Wong's fixed point, and Frühwirth-Schnatter's error of it."""
    centre = float(np.median(of_chains))
    chains, proposals = of_chains - centre, of_proposals - centre
    effective = _effective(chains)
    share = effective / (effective + proposals.size)
    log_s1, log_s2 = math.log(share), math.log1p(-share)
    value = float(logsumexp(proposals) - math.log(proposals.size))
    for _ in range(_ROUNDS):
        upper = proposals - np.logaddexp(log_s1 + proposals, log_s2 + value)
        lower = -np.logaddexp(log_s1 + chains, log_s2 + value)
        new = logsumexp(upper) - math.log(upper.size) - (logsumexp(lower) - math.log(lower.size))
        done = abs(new - value) < _CONVERGED
        value = float(new)
        if done:
            break
    f1, f2 = np.exp(upper - np.max(upper)), np.exp(lower - np.max(lower))
    variance = np.var(f1) / np.mean(f1) ** 2 / f1.size
    variance += np.var(f2) / np.mean(f2) ** 2 / _effective(f2)
    return value + centre, math.sqrt(variance)


def _effective(chains: np.ndarray) -> float:
    """ESS of one quantity (chain, draw); all of the draws where it never changes."""
    if chains.shape[1] < 4 or np.ptp(chains) == 0:
        return float(chains.size)
    found = float(ess_bulk(chains[..., None])[0])
    return min(found, float(chains.size)) if math.isfinite(found) else 1.0
