"""Is a result right? Draws beside exact ones, of which the verdict knows nothing.

Every percentile of every coordinate, of log p, of main axes and of the distance from the middle,
and the weight of every mode, within what the draws are worth by their chains' own differences.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import salmc
from benchmarks.honesty_parts_curved import Truth

_TRUE_DRAWS = 100_000
_LEVEL = 1e-4
"""Of all percentiles together; a right result is held for wrong once in 10,000."""

MATTERS = 0.02
"""In probability: below it an error is one, but a slight one."""


class Right(NamedTuple):
    """Draws beside the truth."""

    degree: str
    """"right"; "slightly off": surely, but by less than 0.02 in probability; or "wrong"."""
    error: float
    """The largest error of a probability."""
    p_value: float
    """For all percentiles and modes together."""


def beside_truth(draws: salmc.Draws, truth: Truth, seed: int) -> Right:
    """Errors of all percentiles and weights of modes, over what chains say of their own errors."""
    generator = np.random.default_rng([seed, 12345])
    exact = truth.draw(generator, _TRUE_DRAWS)
    points = np.asarray(draws.sample(), np.float64)
    chains = 1 if draws.kind == "particles" else draws.positions.shape[0]
    shares = np.arange(1, 100) / 100.0
    asked = _told_by(exact, truth)
    levels, told = np.quantile(asked(exact), shares, axis=0), asked(points)
    found = [told[:, i, None] < levels[None, :, i] for i in range(told.shape[1])]
    probabilities = [shares] * told.shape[1]
    if truth.modes is not None:
        known, where = truth.modes(exact), truth.modes(points)
        modes = np.arange(known.max() + 1)
        found.append(where[:, None] == modes)
        probabilities.append(np.mean(known[:, None] == modes, axis=0))
    inside, probability = np.concatenate(found, axis=1), np.concatenate(probabilities)
    error = np.abs(np.mean(inside, axis=0) - probability)
    sizes = _errors(inside, probability, chains)
    freedom = chains - 1 if chains > 2 else np.inf
    looks = 10 * told.shape[1]
    p_value = min(1.0, 2.0 * looks * float(stats.t.sf(np.max(error / sizes), freedom)))
    if p_value > _LEVEL:
        return Right("right", float(np.max(error)), p_value)
    degree = "wrong" if np.max(error) >= MATTERS else "slightly off"
    return Right(degree, float(np.max(error)), p_value)


def _told_by(exact: np.ndarray, truth: Truth) -> Callable[[np.ndarray], np.ndarray]:
    """Coordinates and log p; and of ranks made normal, up to three main axes and the distance."""
    dim = exact.shape[1]
    grid = np.quantile(exact, np.linspace(0.0005, 0.9995, 2000), axis=0)
    normal = stats.norm.ppf(np.linspace(0.0005, 0.9995, 2000))
    log_density = jax.jit(jax.vmap(truth.log_density))

    def ranked(x: np.ndarray) -> np.ndarray:
        return np.stack([np.interp(x[:, i], grid[:, i], normal) for i in range(dim)], axis=1)

    values, axes = np.linalg.eigh(np.atleast_2d(np.cov(ranked(exact), rowvar=False)))
    inverse = axes / np.sqrt(values)
    ends = sorted({0, dim // 2, dim - 1}) if dim > 1 else []

    def told(x: np.ndarray) -> np.ndarray:
        y, height = ranked(x), np.asarray(log_density(jnp.asarray(x)), np.float64)
        return np.c_[x, height, y @ axes[:, ends], np.linalg.norm(y @ inverse, axis=1)]

    return told


def _errors(inside: np.ndarray, probability: np.ndarray, chains: int) -> np.ndarray:
    """Standard errors: of independent draws, or what the means of chains differ by, if more."""
    variance = probability * (1.0 - probability)
    error = np.sqrt(variance * (1.0 / len(inside) + 1.0 / _TRUE_DRAWS))
    if chains > 2:
        means = inside.reshape(chains, -1, inside.shape[1]).mean(axis=1)
        error = np.maximum(error, np.std(means, axis=0, ddof=1) / np.sqrt(chains))
    return np.maximum(error, 1e-9)
