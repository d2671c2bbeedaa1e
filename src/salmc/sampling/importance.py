"""Weighted draws from a kernel that knows its density q: importance sampling.

For proposals x ~ q the weights w = p(x)/q(x) have the mean Z = ∫ p, and means over them are means
over p. They are worth something if their tail is light: Pareto smoothing (PSIS) fits it, and its
shape k̂ tells. Above min{0.7, 1 − 1/log₁₀ n} no number of proposals that anyone draws will do.

Reference: Vehtari et al., "Pareto smoothed importance sampling", JMLR 2024.
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
from salmc.errors import ArgumentError, TargetError
from salmc.programs import RUNTIME_ERRORS, compiled, failure
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler

_BATCH = 4096


class Proposals(NamedTuple):
    """Independent draws of q."""

    positions: np.ndarray
    """(n, dim), the user's."""
    log_density: np.ndarray
    """log p there, as the user has it."""
    log_ratio: np.ndarray
    """log p − log q; −inf where p is zero or anything is not finite."""


@dataclasses.dataclass(frozen=True, eq=False)
class WeightedDraws:
    """Independent draws with weights, for those who prefer weights to a chain.

    Attributes:
        positions: (n, dim), in the target's coordinates.
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

    @property
    def names(self) -> tuple[str, ...]:
        """Of the user's numbers, such as `tau` and `theta[Choate]`."""
        return self.proposals.shown.names

    def mean(self) -> np.ndarray:
        """(number,): Σ w x of each of the user's numbers, in the order of `names`."""
        return self.weights @ self._numbers

    def sd(self) -> np.ndarray:
        """(number,): √(Σ w (x − mean)²)."""
        return np.sqrt(self.weights @ (self._numbers - self.mean()) ** 2)

    @property
    def _numbers(self) -> np.ndarray:
        return np.asarray(self.proposals.shown.values[0], np.float64)

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
    remedy = "sampler.improve().importance_sample()"
    warnings = () if shape <= limit else (too_heavy(shape, limit, remedy),)
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
        # may be equal in the tail, where the fit gives up, or divides by zero and has no k̂.
        with np.errstate(all="ignore"):
            try:
                found, shape = array_stats.psislw(np.max(known) - known)
            except ValueError:
                found, shape = known, math.nan
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


def too_heavy(shape: float, limit: float, remedy: str) -> str:
    """Why weights cannot be used, in words, and what to call for a kernel that is trained."""
    return (
        f"Pareto k̂ of the weights is {shape:.2f}, above {limit:.2f}: their tail is so heavy that "
        f"means over them, and errors of these, mean nothing. Train a kernel for them: {remedy}."
    )
