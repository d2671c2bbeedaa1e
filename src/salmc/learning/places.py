"""Where the noise of a generator is placed: Gaussians fitted to the pool before training.

    q(x) = Σ_k w_k N(x; m_k, L_k L_kᵀ),   by expectation-maximisation on the host

Exact moves give the pool several times over, as one of it errs by 1/√n. How many Gaussians there
are is decided by the likelihood of points that were left out. Expectation-maximisation ends in what
its beginning leads to, such as one Gaussian over two modes, with draws between them: of several
beginnings the likeliest end is kept. In the end the density itself corrects them (`refined`).
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.kernels.layers import numpy_generator
from salmc.learning.engine import traced
from salmc.learning.method import TrainingState, flat_weights
from salmc.learning.particles import LogDensity
from salmc.programs import compiled, on_device

_CLOUDS, _SWEEPS = 4, 12
"""How often the pool is looked at, and how often each particle is moved in between."""

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
_TRIES, _ROUNDS = 4, 40
_SETTLED, _WORTH = 2e-4, 5e-3
"""Gains in log likelihood for each point: a fit that gains less is at its end, and more components
must bring more on points that were left out."""

_FEWEST_EACH = 3
"""Points for each coordinate of a component, in the mean, at least."""

_LEAST_VARIANCE = 1e-5
"""Of a component in any direction; the points have variance 1."""

_REFINEMENTS, _REFINING, _FEWEST_REFINING = 3, 32_768, 256
"""Steps on the density, and draws in each of them: in all, and of each component at least."""

_NEAR_CONSTANT = 0.7
"""Effective share of those draws, by the weights p/q, below which they are not believed."""

Cloud = Float[np.ndarray, "n dim"]


class Places(NamedTuple):
    """Weights, means, and triangular factors L of C = L Lᵀ."""

    weights: Float[np.ndarray, " k"]
    means: Float[np.ndarray, "k dim"]
    factors: Float[np.ndarray, "k dim dim"]


def placed(method: Any, state: TrainingState, key: PRNGKeyArray) -> TrainingState:
    """The state before the first step, with the components of the kernel's noise at the pool.

    Args:
        method: `SelfAdversarial`, of a kernel that has `places`.
        state: without them.
        key: of moves and fit.
    """
    clouds = [np.asarray(state.memory.points, dtype=np.float64)]
    if not np.all(np.std(clouds[0], axis=0) > 0.0):
        # As where a program is compiled ahead of the first particle.
        return state
    # Where the kernel's own outputs refresh the pool, moves would bring in its first ones.
    moves = method.target is not None and method.mover is None and not method.settings.refresh
    if moves:
        for i in range(1, _CLOUDS):
            state = _moved(traced(method), state, jax.random.fold_in(key, i))
            clouds.append(np.asarray(state.memory.points, dtype=np.float64))
    generator = numpy_generator(key)
    places = fit_places(clouds, method.kernel.places, generator)
    if moves and len(places.weights) > 1:
        places = refined(places, method.log_density, generator)
    weights = flat_weights(method.kernel.placed_at(*places))
    return dataclasses.replace(state, weights=weights, average=weights, best=weights)


@compiled
def _moved(method: Any, state: TrainingState, key: PRNGKeyArray) -> TrainingState:
    """The state with every particle moved some times, each time by an exact step."""
    slices = len(state.memory.points) // method.settings.batch

    def move(i: Array, pool: Any) -> Any:
        there = dataclasses.replace(state, memory=pool, step=i)
        return method.adjust(there, jax.random.fold_in(key, i))[0].memory

    pool = jax.lax.fori_loop(0, _SWEEPS * slices, move, state.memory)
    state = dataclasses.replace(state, memory=pool)
    return method.move_pool(state, key)[0] if method.pool_move_every else state


def fit_places(clouds: list[Cloud], most: int, generator: np.random.Generator) -> Places:
    """As many Gaussians, of at most so many, as points that were left out call for.

    Args:
        clouds: whitened; the last is left out first, or half of one that is alone.
        most: components that there may be.
        generator: of the beginnings.
    """
    points = np.concatenate(clouds)
    if len(clouds) == 1:
        # Given samples may have any order.
        clouds = np.array_split(points[generator.permutation(len(points))], 2)
    known, held = clouds[0], clouds[-1]
    best, found, worse = 1, -np.inf, 0
    for count in _COUNTS:
        if count > most or (count > 1 and len(known) < _FEWEST_EACH * count * (held.shape[1] + 1)):
            break
        places, _ = _expect_maximise(known, _begin(known, count, generator))
        likelihood = float(np.mean(shares_and_values(places, held)[1]))
        if likelihood > found + _WORTH:
            best, found, worse = count, likelihood, 0
        else:
            worse += 1
            if worse == 2:
                break
    tries = _TRIES if best > 1 else 1
    ends = [_expect_maximise(known, _begin(known, best, generator)) for _ in range(tries)]
    return _expect_maximise(points, max(ends, key=lambda end: end[1])[0])[0]


def refined(places: Places, log_density: LogDensity, generator: np.random.Generator) -> Places:
    """The places after steps of expectation-maximisation on the density instead of particles.

        E_p[r_k f] = E_q[r_k f] + E_q[(p/q − 1) r_k f],   f = 1, x, x xᵀ,   r_k = w_k N_k / q

    The first part is known: w_k, w_k m_k and w_k (C_k + m_k m_kᵀ). Only the second is a mean over
    draws, of which p/q − 1 is near 0: it errs far less than n particles, by 1/√n, which tests of
    more draws find. Where p/q is far from constant, or a shape is lost, the places stay.
    """
    for _ in range(_REFINEMENTS):
        better = _refined(places, log_density, generator)
        if better is None:
            break
        places = better
    return places


def _refined(
    places: Places, log_density: LogDensity, generator: np.random.Generator
) -> Places | None:
    weights, means, factors = places
    count, dim = means.shape
    each = max(_REFINING // count, _FEWEST_REFINING)
    noise = generator.standard_normal((count, each, dim))
    points = (means[:, None] + np.einsum("kij,knj->kni", factors, noise)).reshape(-1, dim)
    shares, log_q = shares_and_values(places, points)
    log_ratio = np.asarray(log_density(on_device(points)), dtype=np.float64) - log_q
    if np.any(np.isnan(log_ratio)) or np.max(log_ratio) == -np.inf:
        return None
    # As many draws of each component, which count by its weight.
    strata = np.repeat(weights, each) / each
    ratio = np.exp(log_ratio - np.max(log_ratio))
    if np.sum(strata * ratio) ** 2 < _NEAR_CONSTANT * np.sum(strata * ratio**2):
        return None
    excess = shares * (strata * (ratio / np.sum(strata * ratio) - 1.0))
    totals = weights + np.sum(excess, axis=1)
    if np.min(totals) <= 0.0:
        return None
    new = (weights[:, None] * means + excess @ points) / totals[:, None]
    squares = factors @ factors.transpose(0, 2, 1) + means[:, :, None] * means[:, None]
    squares = weights[:, None, None] * squares + np.stack([(points.T * e) @ points for e in excess])
    covariances = squares / totals[:, None, None] - new[:, :, None] * new[:, None]
    try:
        return Places(totals / np.sum(totals), new, np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        return None


def _expect_maximise(points: Cloud, places: Places) -> tuple[Places, float]:
    """The fit that a beginning leads to, and its mean log likelihood."""
    last = -np.inf
    for _ in range(_ROUNDS):
        shares, values = shares_and_values(places, points)
        likelihood = float(np.mean(values))
        if likelihood < last + _SETTLED:
            break
        last = likelihood
        totals = np.sum(shares, axis=1) + 1e-9
        means = shares @ points / totals[:, None]
        covariances = np.empty_like(places.factors)
        for k, share in enumerate(shares):
            centred = points - means[k]
            covariances[k] = (centred * share[:, None]).T @ centred / totals[k]
        covariances += _LEAST_VARIANCE * np.eye(points.shape[1])
        places = Places(totals / np.sum(totals), means, np.linalg.cholesky(covariances))
    return places, last


def shares_and_values(places: Places, points: Cloud) -> tuple[np.ndarray, np.ndarray]:
    """Each point's share in each component, (k, n), and log q of each, without (2π)^{−d/2}."""
    logs = np.empty((len(places.weights), len(points)))
    for k, inverse in enumerate(np.linalg.inv(places.factors)):
        z = (points - places.means[k]) @ inverse.T
        logs[k] = -0.5 * np.einsum("ni,ni->n", z, z)
    diagonals = np.diagonal(places.factors, axis1=1, axis2=2)
    logs += (np.log(places.weights) - np.sum(np.log(diagonals), axis=1))[:, None]
    top = np.max(logs, axis=0)
    parts = np.exp(logs - top)
    total = np.sum(parts, axis=0)
    return parts / total, top + np.log(total)


def _begin(points: Cloud, count: int, generator: np.random.Generator) -> Places:
    """Means far apart (k-means++), one common shape."""
    size, dim = points.shape
    chosen = [int(generator.integers(size))]
    nearest = np.full(size, np.inf)
    for _ in range(count - 1):
        nearest = np.minimum(nearest, np.sum((points - points[chosen[-1]]) ** 2, axis=1))
        chosen.append(int(generator.choice(size, p=nearest / np.sum(nearest))))
    factor = np.eye(dim) * count ** (-1.0 / dim)
    return Places(
        np.full(count, 1.0 / count), points[chosen], np.repeat(factor[None], count, axis=0)
    )
