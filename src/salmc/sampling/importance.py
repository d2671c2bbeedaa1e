"""Weights and evidence from a kernel that knows its density q: importance and bridge sampling.

For proposals x ~ q the weights w = p(x)/q(x) have the mean Z = ∫ p, the evidence. They are worth
something if their tail is light: Pareto smoothing (PSIS) fits it, and its shape k̂ tells. Above
min{0.7, 1 − 1/log₁₀ n} no number of proposals that anyone draws will do.

Draws of exact chains add to this. The bridge of Meng and Wong, with s₁, s₂ the shares of draws of p
and of q, is the fixed point of

    Z = E_q[ w / (s₁ w + s₂ Z) ] / E_p[ 1 / (s₁ w + s₂ Z) ]

in which no weight, however large or small, can outweigh the others. Its error is that of
Frühwirth-Schnatter, with the effective number of the chains' draws.

References: Vehtari et al., "Pareto smoothed importance sampling", JMLR 2024; Meng and Wong,
"Simulating ratios of normalizing constants via a simple identity", Statistica Sinica 1996;
Frühwirth-Schnatter, "Estimating marginal likelihoods for mixture and Markov switching models using
bridge sampling techniques", Econometrics Journal 2004.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import logsumexp

from salmc import checks
from salmc.diagnostics.chain_statistics import ess_bulk
from salmc.errors import ArgumentError, TargetError
from salmc.programs import RUNTIME_ERRORS, compiled, failure
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler

_BATCH = 4096
_ROUNDS = 1000
_CONVERGED = 1e-10
_CHAIN_DRAWS = 10_000
"""Draws of the chains that a bridge uses, at most."""


class Proposals(NamedTuple):
    """Independent draws of q."""

    positions: np.ndarray
    """(n, dim), the user's."""
    log_density: np.ndarray
    """log p there, as the user has it."""
    log_ratio: np.ndarray
    """log p − log q; −inf where p is zero or anything is not finite."""


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


@dataclasses.dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Independent draws with weights, for those who prefer weights to a chain.

    Attributes:
        positions: (n, dim), the user's coordinates.
        log_weights: (n,), Pareto-smoothed; their exponentials sum to 1.
        pareto_k: the shape of the weights' tail.
        effective: 1/Σ w², what the draws are worth.
        warnings: what is wrong with the weights, in words; empty where nothing is.
        proposals: the same as `Draws` without weights.
    """

    positions: np.ndarray
    log_weights: np.ndarray
    pareto_k: float
    effective: float
    warnings: tuple[str, ...]
    proposals: Draws

    @property
    def weights(self) -> np.ndarray:
        """(n,), with the sum 1."""
        return np.exp(self.log_weights)

    def mean(self) -> np.ndarray:
        """(dim,): Σ w x."""
        return self.weights @ self.positions

    def sd(self) -> np.ndarray:
        """(dim,): √(Σ w (x − mean)²)."""
        return np.sqrt(self.weights @ (self.positions - self.mean()) ** 2)

    def resample(self, n: int | None = None, seed: int = 0) -> Draws:
        """Draws without weights: one chain of n of the points, drawn by their weights."""
        count = len(self.positions) if n is None else checks.integer("n", n, 1)
        generator = np.random.default_rng(checks.integer("seed", seed, 0))
        # Systematic: every point is taken ⌊n w⌋ or ⌈n w⌉ times, in a random order.
        ticks = (generator.uniform() + np.arange(count)) / count
        chosen = np.searchsorted(np.cumsum(self.weights), ticks * (1 - 1e-12))
        chosen = generator.permutation(np.minimum(chosen, len(self.positions) - 1))
        values = self.proposals.log_density
        return dataclasses.replace(
            self.proposals,
            positions=self.positions[chosen][None],
            log_density=None if values is None else values[0, chosen][None],
            steps=None,
            warnings=(*self.proposals.warnings, *self.warnings),
        )


def importance_sample(sampler: Sampler, n: int, seed: int) -> WeightedDraws:
    """n proposals of a sampler's kernel, with Pareto-smoothed weights."""
    found = propose(sampler, n, seed)
    log_weights, shape = smoothed(found.log_ratio)
    limit = limit_of(n)
    warnings = () if shape <= limit else (_heavy(shape, limit),)
    target = None if sampler.target is None else sampler.target.outer
    proposals = Draws(
        found.positions[None],
        found.log_density[None],
        0.0,
        method=f"{sampler.method}, weighted",
        target=target,
        settings={"n": n, "seed": seed, "exact": False, "training": sampler.settings},
        warnings=sampler.warnings,
    )
    effective = float(np.exp(-logsumexp(2 * log_weights)))
    return WeightedDraws(found.positions, log_weights, shape, effective, warnings, proposals)


def log_evidence(draws: Draws, sampler: Sampler, n: int, seed: int) -> LogEvidence:
    """log Z by a bridge between exact draws and proposals, or by proposals alone."""
    found = propose(sampler, n, seed)
    shape, limit = smoothed(found.log_ratio)[1], limit_of(n)
    exact = bool(draws.settings.get("exact")) and draws.kind == "chains"
    method = "bridge" if exact else "importance"
    if not shape <= limit:
        sentence = f"No evidence: {_heavy(shape, limit)}"
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


def propose(sampler: Sampler, n: int, seed: int) -> Proposals:
    """n independent draws of the kernel's q, and log p/q of each.

    Raises:
        ArgumentError: if the kernel's proposals have no density, or look at the state.
        TargetError: if there is no target, it fails, or its density is zero at all proposals.
    """
    checks.integer("n", n, 10)
    checks.integer("seed", seed, 0)
    kernel, target = sampler.kernel, sampler.target
    if not (kernel.tractable and kernel.independent):
        raise ArgumentError(
            f"Weights need a kernel of known density whose proposals do not depend on the current "
            f"point, such as flow. Got the kernel `{kernel.name}`."
        )
    if target is None:
        raise TargetError(
            "Weights need the log density, and this kernel was loaded without its target: pass "
            "target=… when loading it."
        )
    keys = jax.random.split(jax.random.key(seed), -(-n // _BATCH))
    try:
        parts = [_proposed(sampler.kernel, sampler.whitening, target, key) for key in keys]
        points, log_p, log_q = (np.concatenate(values)[:n] for values in zip(*parts, strict=True))
    except RUNTIME_ERRORS as error:
        raise TargetError(f"The target failed at the proposals: {failure(error)}") from error
    with np.errstate(invalid="ignore"):
        ratio = log_p.astype(np.float64) - log_q.astype(np.float64)
    usable = np.isfinite(log_q) & np.all(np.isfinite(points), axis=1) & ~np.isnan(ratio)
    ratio = np.where(usable, ratio, -np.inf)
    if not np.any(ratio > -np.inf):
        raise TargetError(
            f"The density of `{target.name}` is zero or NaN at all {n} proposals: the kernel has "
            "not learned where it is."
        )
    positions, values = target.outward(jnp.asarray(points), jnp.asarray(log_p))
    return Proposals(np.asarray(positions), np.asarray(values), ratio)


def smoothed(log_ratio: np.ndarray) -> tuple[np.ndarray, float]:
    """Pareto-smoothed log weights that sum to 1, and k̂; −inf where the largest are all the same."""
    from arviz_stats.base import array_stats

    usable = log_ratio > -np.inf
    known = log_ratio[usable]
    if np.ptp(known) < 1e-5:
        shape, found = -math.inf, known
    else:
        # It takes log likelihoods, of which log weights are the negative. Weights that are bounded
        # may be equal in the tail, where the fit divides by zero and gives no k̂.
        with np.errstate(all="ignore"):
            found, shape = array_stats.psislw(np.max(known) - known)
    if math.isnan(shape):
        even = math.exp(2 * logsumexp(known) - logsumexp(2 * known)) > 0.1 * len(log_ratio)
        shape, found = -math.inf if even else math.inf, known
    weights = np.full(len(log_ratio), -np.inf)
    weights[usable] = found - logsumexp(found)
    return weights, float(shape)


def limit_of(n: int) -> float:
    """Up to which k̂ a mean over n weights can be used (Vehtari et al. 2024)."""
    return min(0.7, 1.0 - 1.0 / math.log10(n))


@compiled
def _proposed(
    kernel: Any, whitening: Any, target: Any, key: PRNGKeyArray
) -> tuple[Float[Array, "n dim"], Float[Array, " n"], Float[Array, " n"]]:
    noise = jax.random.normal(key, (1, _BATCH, kernel.noise_dim))
    new, log_q = kernel.propose_ahead(noise)
    points = whitening.colour(new[0])
    return points, target.log_densities(points), log_q[0] + whitening.log_determinant


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
    points = jnp.asarray(sampler.inward(chosen.reshape(-1, draws.dim)), dtype=float)
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


def _heavy(shape: float, limit: float) -> str:
    return (
        f"Pareto k̂ of the weights is {shape:.2f}, above {limit:.2f}: their tail is so heavy that "
        "means over them, and errors of these, mean nothing. Train the kernel longer, or use more "
        "layers."
    )
