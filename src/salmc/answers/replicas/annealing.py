"""Particles that are annealed from a kernel to the target, and what moved them on the way.

From draws of the kernel's density q they go to p_β ∝ q^{1−β} p^β, with β from 0 to 1 in steps at
which enough of them count (sequential Monte Carlo). At each β trajectories along the gradient take
them apart again, and tell what suits replicas there (`sampling.replicas`):

    A Aᵀ = E[g gᵀ]⁻¹, g = ∇log p_β      the shape of p_β within its modes, however far these lie
                                        apart: a covariance of the particles would not know it
    ε                                   so that a share `_WANTED` of the moves is accepted

Reference: Del Moral, Doucet and Jasra, "Sequential Monte Carlo samplers", JRSS B 2006.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.answers.mixture.weighted_draws import effective_count
from salmc.kernels.base import AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.programs import compiled
from salmc.sampling.replicas import Ladder, Randomness, Replicas, trajectories
from salmc.target import AbstractTarget, Points

PARTICLES = 512
_SWEEPS = 6
_COUNTING = 0.6
"""Share of the particles that count after a step of β."""

_MOST_RUNGS = 100
_WANTED = 0.8
_FIRST_SIZE = 0.6
_ORBIT, _LONGEST = 1.5, 8
"""Of a trajectory: a quarter of an orbit, in units of A; and its gradients."""

_STEEP, _RIDGE = 0.98, 1e-3


class Rung(NamedTuple):
    """What is known of one temperature.

    Attributes:
        beta: β.
        at: particles there.
        step_size, factor: of trajectories.
    """

    beta: float
    at: Replicas
    step_size: float
    factor: np.ndarray

    @property
    def heights(self) -> Float[np.ndarray, " n"]:
        """log p − log q of each particle."""
        return np.asarray(self.at.heights[0], np.float64)

    @property
    def points(self) -> np.ndarray:
        """White coordinates of the particles."""
        return np.asarray(self.at.places[0])


def anneal(
    target: AbstractTarget, whitening: Whitening, kernel: AbstractKernel, key: PRNGKeyArray
) -> tuple[list[Rung], float]:
    """Particles at each β from 0 to 1, in this order; and an estimate of log ∫ p, in the units of
    white coordinates. A list that ends before 1 came to nothing.

    Args:
        target: differentiable, without bounds.
        whitening: coordinates of the kernel.
        kernel: independent, of a known density.
        key: the same key gives the same particles.
    """
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    noise = generator.standard_normal((PARTICLES, kernel.noise_dim))
    places = Replicas.at(_drawn(kernel, jnp.asarray(noise, dtype=float))[None])
    shape, size = np.eye(kernel.dim), _FIRST_SIZE

    def swept(number: int, beta: float, at: Replicas) -> tuple[Replicas, float]:
        ladder, one = _one_rung(beta, size, shape), jax.random.fold_in(key, number)
        at, accepted = _swept(target, whitening, kernel, ladder, one, at, np.array(number == 0))
        return at, float(accepted)

    rungs = [Rung(0.0, swept(0, 0.0, places)[0], size, shape)]
    number, evidence = 0, 0.0
    while rungs[-1].beta < 1.0 and len(rungs) <= _MOST_RUNGS:
        last = rungs[-1]
        if not np.any(last.heights > -np.inf):
            break
        beta, weights, gain = _next(last.beta, last.heights)
        evidence += gain
        even = (np.arange(PARTICLES) + generator.uniform()) / PARTICLES
        rows = np.minimum(np.searchsorted(np.cumsum(weights), even), PARTICLES - 1)
        rows = generator.permutation(rows)
        at = jax.tree.map(lambda one, rows=rows: jnp.asarray(np.asarray(one)[:, rows]), last.at)
        shape = local_shape(beta, at.slope_p[0], at.slope_q[0])
        for _ in range(_SWEEPS):
            number += 1
            at, accepted = swept(number, beta, at)
            size = adapted(size, accepted)
        rungs.append(Rung(beta, at, size, shape))
    return rungs, evidence


def adapted(size: float, accepted: float) -> float:
    """A step size, nearer to the one with which enough moves are accepted."""
    return float(np.clip(size * np.exp(np.nan_to_num(accepted) - _WANTED), 1e-4, 3.0))


def length_for(size: float) -> int:
    """Gradients of a trajectory."""
    return int(np.clip(round(_ORBIT / (0.75 * size)), 1, _LONGEST))


def local_shape(
    beta: float, slope_p: Array | np.ndarray, slope_q: Array | np.ndarray
) -> np.ndarray:
    """A of A Aᵀ = E[g gᵀ]⁻¹, from gradients of log p and log q at n points."""
    slopes = beta * np.asarray(slope_p, np.float64) + (1.0 - beta) * np.asarray(slope_q, np.float64)
    slopes = slopes[np.all(np.isfinite(slopes), axis=1)]
    dim = slope_p.shape[1]
    if len(slopes) <= 2:
        return np.eye(dim)
    # A few particles far out, where slopes are steep, do not speak for the others.
    steep = np.quantile(np.abs(slopes), _STEEP, axis=0)
    slopes = np.clip(slopes, -steep, steep)
    found = slopes.T @ slopes / len(slopes)
    unit = np.sqrt(np.maximum(np.diag(found), np.finfo(np.float32).tiny))
    # In many dimensions some hundred gradients tell little of how they go together.
    share = dim / (dim + len(slopes))
    together = (1.0 - share) * found / np.outer(unit, unit) + (share + _RIDGE) * np.eye(dim)
    return np.linalg.cholesky(np.linalg.inv(together)) / unit[:, None]


def _next(beta: float, heights: np.ndarray) -> tuple[float, Float[np.ndarray, " n"], float]:
    """The largest β at which enough particles count, their weights on the way there, and the log of
    the mean of these."""
    enough = _COUNTING * np.sum(heights > -np.inf)

    def counts(further: float) -> bool:
        return bool(effective_count((further - beta) * heights) >= enough)

    low, high = beta, 1.0
    if not counts(1.0):
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if counts(middle) else (low, middle)
        # Where numbers differ by so much that no step is small enough, the least one is taken.
        high = low if low > beta else high
    largest = np.max(heights)
    log_weights = (high - beta) * (heights - largest)
    weights = np.exp(np.where(np.isnan(log_weights), -np.inf, log_weights))
    gain = (high - beta) * largest + np.log(np.mean(weights))
    return high, weights / np.sum(weights), float(gain)


def _one_rung(beta: float, size: float, shape: np.ndarray) -> Ladder:
    """A ladder of one temperature."""
    return Ladder(
        jnp.asarray([beta], dtype=float),
        jnp.asarray([size], dtype=float),
        jnp.asarray(shape[None], dtype=float),
        jnp.asarray(length_for(size)),
        jnp.zeros((1, 0, len(shape))),
    )


@compiled
def _drawn(kernel: AbstractKernel, noise: Float[Array, "n noise_dim"]) -> Points:
    return kernel.propose_ahead(noise[None])[0][0]


@compiled
def _swept(
    target: AbstractTarget,
    whitening: Whitening,
    kernel: AbstractKernel,
    ladder: Ladder,
    key: PRNGKeyArray,
    at: Replicas,
    first: Bool[Array | np.ndarray, ""],
) -> tuple[Replicas, Float[Array, ""]]:
    """One trajectory of each particle, and the share accepted."""

    def log_p(points: Points) -> Array:
        return target.log_densities(whitening.colour(points))

    normal_key, uniform_key = jax.random.split(key)
    uniform = jax.random.uniform(uniform_key, (2, *at.log_p.shape))
    momenta = jax.random.normal(normal_key, at.places.shape)
    random = Randomness(momenta, uniform[0], jnp.log1p(-uniform[1]))
    ends, accepted = trajectories(kernel.prepared(), log_p, ladder, at, random, jnp.asarray(first))
    return ends, jnp.mean(accepted)
