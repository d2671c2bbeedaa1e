"""Calibration by the density: where each component of a trained generator belongs.

Adversarial steps have noise of their own, and n particles err by 1/√n: on two modes a network had
moved both by 0.02 of their width, which 64,000 draws show. The law of a pass is not known, but that
of all that it is made of is. Given the point x, the component k and the other noise, a pass maps as
many normal numbers u as there are coordinates onto them, so that

    W = p(x') r_k(x') det(∂x'/∂u) / (w_k N(u)),   Σ_k r_k = 1,   has   E[W 1_k f(x')] = E_p[r_k f]

whatever x is and however x' depends on it. Where the map folds back, its determinant has the other
sign and takes off what would count twice. r_k is the share of component k among the Gaussians; any
other would do, with more noise. Draws with W, and the same ones without, tell how components are to
be moved and stretched: W is near 1, and what both have in common cancels.

    m_k ← m_p + B (m_k − m_q),   L_k ← B L_k,   B C_q Bᵀ = C_p

Components that overlap are moved as one: which of them has which part of p is the network's choice.

Pareto's k̂ of W tells whether it can be believed (Vehtari et al. 2024). What was corrected is kept
if it is nearer to p by draws of their own, E_q[(W − 1)² / (W + 1)] = ∫ (p − q)² / (p + q): what is
a thousandth of five rings may be much of the width of each.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from salmc.learning.places import Cloud, Places, shares_and_values
from salmc.learning.validation import passes
from salmc.metropolis import normal
from salmc.programs import compiled, one_thread
from salmc.sampling.importance import smoothed
from salmc.target import Points

Values = Float[np.ndarray, " n"]

_ROUNDS, _DRAWS, _FEWEST_EACH, _CHUNK = 2, 65_536, 1024, 2048
"""Corrections, and draws for each of them: in all, of each component at least, and at once."""

_APART = 1e-3
"""Of the draws of a component, the most that may be another's, of one that is moved by itself."""

_SURE, _LEAST_GAIN = 2.0, 1e-7
"""Standard errors that a correction must gain; and how much: less is half a thousandth of a width
where all else is right, and rounding could decide."""

_STEPS = 10
"""Of chains from N(0, I), which are then where passes set out from."""

_LEAST_SHARE, _HEAVY = 0.1, 0.7
"""Effective share of the draws, by their weights, below which these are not believed, and Pareto's
k̂ above which they are not."""


@one_thread
def asked(method: Any, kernel: Any, key: PRNGKeyArray) -> Any:
    """The kernel with its components where the density says.

    Args:
        method: `SelfAdversarial`, with a target.
        kernel: with `places`, trained.
        key: of the draws.

    Returns:
        The kernel itself if the density does not say, as the weights are too uneven.
    """
    better = kernel
    for i in range(_ROUNDS):
        weighted = _weighted(method, better, jax.random.fold_in(key, i))
        places = None if weighted is None else _corrected(weighted)
        if places is None:
            break
        better = better.placed_at(*places)
    if better is kernel:
        return kernel
    # The same numbers for both.
    before, after = (
        _weighted(method, k, jax.random.fold_in(key, _ROUNDS)) for k in (kernel, better)
    )
    if before is None or after is None or not _nearer(before, after):
        return kernel
    return better


class Weighted(NamedTuple):
    """Draws of all components in turn, and what they are worth.

    Attributes:
        places: of the components.
        which: of them each draw is of.
        points: x'.
        strata: what each stands for, in sum 1.
        weights: strata · W, in sum 1.
        shares: of each component at each draw.
    """

    places: Places
    which: Int[np.ndarray, " n"]
    points: Cloud
    strata: Values
    weights: Values
    shares: Float[np.ndarray, "k n"]


def _weighted(method: Any, kernel: Any, key: PRNGKeyArray) -> Weighted | None:
    """Draws of the kernel; None if their weights are not to be believed."""
    places = Places(*kernel.placement)
    count = len(places.weights)
    # As many of each component, in turn, in whole chunks.
    least = count * max(_DRAWS // count, _FEWEST_EACH)
    which = np.resize(np.arange(count), -(-least // _CHUNK) * _CHUNK)
    drawn = _drawn(method, kernel, jnp.asarray(which.reshape(-1, _CHUNK)), key)
    points, sign, log_weights = (np.asarray(part, dtype=np.float64) for part in drawn)
    if not np.all(np.isfinite(points)):
        return None
    # The shares are of the Gaussians, whatever the network has made of them.
    shares, _ = shares_and_values(places, points)
    own = shares[which, np.arange(len(which))]
    log_weights += np.log(np.maximum(own, np.finfo(float).tiny)) - np.log(places.weights[which])
    strata = (places.weights / np.bincount(which))[which]
    if not _believed(log_weights, strata):
        return None
    weights = sign * strata * np.exp(log_weights - np.max(log_weights))
    return Weighted(places, which, points, strata, weights / np.sum(weights), shares)


def _corrected(weighted: Weighted) -> Places | None:
    """What the components should be; None if a shape is lost."""
    places, which, points, strata, weights, shares = weighted
    found = Places(places.weights.copy(), places.means.copy(), places.factors.copy())
    for members in _groups(shares, which):
        ours = np.isin(which, members)
        total = np.sum(weights[ours])
        if total <= 0.0:
            return None
        try:
            mean, stretch, to = _moved(points[ours], strata[ours], weights[ours])
        except np.linalg.LinAlgError:
            return None
        found.weights[members] *= total / np.sum(places.weights[members])
        found.means[members] = to + (places.means[members] - mean) @ stretch.T
        found.factors[members] = stretch @ places.factors[members]
    return found


def _nearer(before: Weighted, after: Weighted) -> bool:
    """Whether the one is nearer to p than the other, by more than chance explains."""
    apart = []
    for strata, weights in ((w.strata, w.weights) for w in (before, after)):
        ratio = weights / strata
        apart.append(len(strata) * strata * (ratio - 1.0) ** 2 / (np.abs(ratio) + 1.0))
    gain = apart[0] - apart[1]
    error = float(np.std(gain)) / math.sqrt(len(gain))
    return float(np.mean(gain)) > max(_SURE * error, _LEAST_GAIN)


def _groups(shares: Float[np.ndarray, "k n"], which: Int[np.ndarray, " n"]) -> list[np.ndarray]:
    """The components, those together that overlap."""
    count = len(shares)
    overlap = np.stack([np.mean(shares[:, which == k], axis=1) for k in range(count)])
    labels = connected_components(csr_array(overlap > _APART), directed=False)[1]
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]


def _believed(log_weights: Values, strata: Values) -> bool:
    """Whether means by these weights, of draws that stand for so much each, are to be trusted."""
    if not np.all(log_weights < np.inf) or np.max(log_weights) == -np.inf:
        return False
    weights = np.exp(log_weights - np.max(log_weights))
    if np.sum(strata * weights) ** 2 < _LEAST_SHARE * np.sum(strata * weights**2):
        return False
    return smoothed(log_weights)[1] <= _HEAVY


def _moved(points: Cloud, before: Values, after: Values) -> tuple[Any, Any, Any]:
    """m_q, B and m_p, of draws with weights before and after.

    Raises:
        LinAlgError: if a shape is lost.
    """
    (mean, factor), (to, wanted) = (_shape(points, weights) for weights in (before, after))
    return mean, wanted @ np.linalg.inv(factor), to


def _shape(points: Cloud, weights: Values) -> tuple[Any, Any]:
    """Mean, and triangular factor of the covariance."""
    weights = weights / np.sum(weights)
    mean = weights @ points
    return mean, np.linalg.cholesky(((points - mean).T * weights) @ (points - mean))


@compiled
def _drawn(
    method: Any, kernel: Any, which: Int[Array, "chunks size"], key: PRNGKeyArray
) -> tuple[Points, Float[Array, " n"], Float[Array, " n"]]:
    """x' of given components, and sign and log of p(x') det ∂x'/∂u / N(u), up to a constant."""
    dim = kernel.dim
    chain_key, start_key, noise_key = (jax.random.fold_in(key, i) for i in range(3))
    start = normal(start_key, (which.shape[1], dim))
    points = passes(kernel, start, jax.random.split(chain_key, _STEPS))[-1]

    def chunk(given: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        components, key = given
        numbers = normal(key, (len(components), kernel.free_dim))

        def one(point: Array, number: Array, component: Array) -> tuple[Array, Array, Array]:
            def of(u: Array) -> Array:
                return kernel.pass_of(point, jnp.concatenate([u, number[dim:]]), component)

            return of(number[:dim]), *jnp.linalg.slogdet(jax.jacfwd(of)(number[:dim]))

        new, sign, log_volume = jax.vmap(one)(points, numbers, components)
        squares = 0.5 * jnp.sum(numbers[:, :dim] ** 2, axis=1)
        return new, sign, method.log_density(new) + log_volume + squares

    keys = jax.random.split(noise_key, len(which))
    new, sign, log_weights = jax.lax.map(chunk, (which, keys))
    return new.reshape(-1, dim), sign.reshape(-1), log_weights.reshape(-1)
