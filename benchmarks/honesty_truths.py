"""Truths for results made by hand: densities, and exact draws from them.

Nothing is trained. Right draws (`honesty_right`) come from the truth itself; wrong ones
(`honesty_wrong`) are right ones with one thing done to them that some part of a sampler does when
it fails: the start (one mode), the pool (ends too early), the flow (light tails), the MLP (narrow,
shifted), movers (collapse, stuck chains), learning from biased samples (another target, a lost
correlation), black boxes (noise), the density (improper, wrong sign, single precision).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import gammaln

import salmc
from salmc.targets.eight_schools import EightSchools

CHAINS, DRAWS = 8, 750
COUNT = CHAINS * DRAWS

Generator = np.random.Generator
Made = tuple[salmc.Target | salmc.AbstractTarget, np.ndarray]


def normal(x: jax.Array) -> jax.Array:
    """N(0, I)."""
    return -0.5 * jnp.sum(x**2)


def step(x: jax.Array) -> jax.Array:
    """N(0, I), four times as high where x₀ < 0."""
    return normal(x) - jnp.where(x[0] > 0.0, np.log(4.0), 0.0)


def cancelling(x: jax.Array) -> jax.Array:
    """N(0, I) times Γ(ν + ½) / Γ(ν) √ν, as in Student's t; log ν = 4 x₀. Single precision has
    nothing left of it at large ν."""
    degrees = jnp.exp(4.0 * x[0])
    ratio = jax.scipy.special.gammaln(degrees + 0.5) - jax.scipy.special.gammaln(degrees)
    return normal(x) + ratio - 2.0 * x[0]


def cancelling_draws(generator: Generator) -> np.ndarray:
    """By rejection: the factor is at most 1."""
    points = generator.normal(size=(3 * COUNT, 3))
    degrees = np.exp(4.0 * points[:, 0])
    factor = np.exp(gammaln(degrees + 0.5) - gammaln(degrees) - 2.0 * points[:, 0])
    return points[generator.random(len(points)) < factor][:COUNT]


def standard(generator: Generator, dim: int) -> np.ndarray:
    """Draws from N(0, I)."""
    return generator.normal(size=(COUNT, dim))


def of(log_density: Callable[[jax.Array], jax.Array], dim: int, **options: Any) -> salmc.Target:
    """A target."""
    return salmc.Target(log_density, dim, **options)


def black_box(log_densities: Callable[[np.ndarray], np.ndarray], dim: int) -> salmc.Target:
    """A target of which only values are known."""
    return salmc.Target.from_numpy(log_densities, dim)


def mixture(
    centres: Any, sds: Any, weights: Any
) -> tuple[salmc.Target, Callable[[Generator, np.ndarray], np.ndarray]]:
    """A mixture of round Gaussians, and draws from it with any weights."""
    centres, sds, weights = (np.asarray(a, float) for a in (centres, sds, weights))
    dim = centres.shape[1]

    def log_density(x: jax.Array) -> jax.Array:
        squares = jnp.sum((x - jnp.asarray(centres)) ** 2, axis=1)
        heights = jnp.log(jnp.asarray(weights)) - dim * jnp.log(jnp.asarray(sds))
        return jax.nn.logsumexp(heights - 0.5 * squares / jnp.asarray(sds) ** 2)

    def draw(generator: Generator, shares: np.ndarray) -> np.ndarray:
        which = generator.choice(len(centres), COUNT, p=np.asarray(shares) / np.sum(shares))
        return centres[which] + sds[which, None] * generator.normal(size=(COUNT, dim))

    return of(log_density, dim), draw


TWO = mixture(np.array([[4.0, 4.0], [-9.0, -2.0]]), [1.0, 1.0], [0.9, 0.1])
_ANGLES = np.arange(6) * np.pi / 3
SIX = mixture(5.0 * np.c_[np.cos(_ANGLES), np.sin(_ANGLES)], [0.5] * 6, [1.0] * 6)
MIRRORED = mixture(np.array([[3.0] * 8, [-3.0] * 8]), [0.7, 0.7], [0.5, 0.5])
_LABELS = np.array([-2.0, 2.5, -0.5, 0.0])
LABELS = mixture(np.array([_LABELS, _LABELS[[1, 0, 3, 2]]]), [0.1, 0.1], [0.5, 0.5])


def correlated(correlation: float, dim: int) -> tuple[salmc.Target, np.ndarray]:
    """A Gaussian of equal correlations, and its Cholesky factor."""
    covariance = correlation * np.ones((dim, dim)) + (1.0 - correlation) * np.eye(dim)
    precision = jnp.asarray(np.linalg.inv(covariance))
    return of(lambda x: -0.5 * x @ precision @ x, dim), np.linalg.cholesky(covariance)


def valley(x: jax.Array) -> jax.Array:
    """Rosenbrock's, in three dimensions: x₀ ~ N(1, 2.5), then each N(square of the last, ½²)."""
    return -0.2 * ((1.0 - x[0]) ** 2 + 10.0 * jnp.sum((x[1:] - x[:-1] ** 2) ** 2))


def valley_draws(g: Generator, count: int = COUNT) -> np.ndarray:
    """Exact draws of the valley."""
    points = 1.0 + np.sqrt(2.5) * g.normal(size=(count, 1))
    for _ in range(2):
        points = np.c_[points, points[:, -1] ** 2 + 0.5 * g.normal(size=count)]
    return points


def funnel_draws(generator: Generator, dim: int, count: int = COUNT) -> np.ndarray:
    """Exact draws of the funnel."""
    first = 3.0 * generator.normal(size=(count, 1))
    return np.concatenate(
        [first, np.exp(0.5 * first) * generator.normal(size=(count, dim - 1))], axis=1
    )


def schools_draws(generator: Generator, count: int = COUNT) -> np.ndarray:
    """Exact draws of the centred eight schools: μ, log τ, θ."""
    key = jax.random.key(int(generator.integers(2**31)))
    x = np.asarray(EightSchools().sample(key, count), np.float64)
    x[:, 2:] = x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:]
    return x


def ring(x: jax.Array) -> jax.Array:
    """A ring of radius 2."""
    return -((jnp.sqrt(jnp.sum(x**2)) - 2.0) ** 2) / 0.16


def ring_draws(generator: Generator, turn: float = 1.0) -> np.ndarray:
    """Draws on a ring, or on the first part of a turn."""
    radius = 2.0 + 0.4 / np.sqrt(2.0) * generator.normal(size=3 * COUNT)
    kept = generator.random(3 * COUNT) < radius / 4.0
    radius = radius[kept & (radius > 0)][:COUNT]
    angle = 2.0 * np.pi * turn * generator.random(COUNT)
    return radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def autoregressive(generator: Generator, correlation: float, draws: int, dim: int) -> np.ndarray:
    """Stationary AR(1) chains, (chain, draw, dim)."""
    noise = generator.normal(size=(CHAINS, draws, dim))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for t in range(1, draws):
        chains[:, t] = correlation * chains[:, t - 1] + np.sqrt(1 - correlation**2) * noise[:, t]
    return chains


def metropolis(generator: Generator, draws: int, dim: int, start: float = 0.0) -> np.ndarray:
    """Random-walk Metropolis on N(0, I): rejected draws stay."""
    x = start + generator.normal(size=(CHAINS, dim))
    chains = np.empty((CHAINS, draws, dim))
    for t in range(draws):
        new = x + 2.4 / np.sqrt(dim) * generator.normal(size=x.shape)
        gain = 0.5 * np.sum(x**2 - new**2, axis=1)
        x = np.where((np.log(generator.random(CHAINS)) < gain)[:, None], new, x)
        chains[:, t] = x
    return chains


def student_draws(generator: Generator, degrees: float, dim: int, count: int = COUNT) -> np.ndarray:
    """Multivariate Student-t."""
    scale = np.sqrt(generator.chisquare(degrees, size=(count, 1)) / degrees)
    return generator.normal(size=(count, dim)) / scale


def numpy_normal(x: np.ndarray) -> np.ndarray:
    """N(0, I), as a black box has it."""
    return -0.5 * np.sum(x**2, axis=1)


def numpy_two(x: np.ndarray) -> np.ndarray:
    """Two equal modes, as a black box has it."""
    first, second = (np.sum((x - c) ** 2, axis=1) for c in (3.0, -5.0))
    return np.logaddexp(-0.5 * first, -0.5 * second)


def keep(points: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Some of the points, as many as a result has."""
    chosen = points[kept]
    return chosen[: min(len(chosen), COUNT)]


SCALES = np.array([1e-3, 1.0, 1e3, 1e5])
NEARLY = correlated(0.999, 2)
FIVE = correlated(0.9, 5)


def noisy() -> salmc.Target:
    """A black box that gives another value each time."""
    generator = np.random.default_rng(5)
    return black_box(lambda x: numpy_normal(x) + 0.5 * generator.normal(size=len(x)), 2)


def single_only(x: jax.Array) -> jax.Array:
    """N(0, I) nearly, with a matrix that is singular in single precision where |x₀| > 0.5."""
    jitter = jnp.where(jnp.abs(x[0]) > 0.5, 1e-9, 1e-3)
    factor = jnp.linalg.cholesky(jnp.ones((2, 2)) + jnp.diag(jnp.array([0.0, 1.0])) * jitter)
    return normal(x) + 1e-6 * jnp.log(factor[1, 1])


def split(generator: Generator) -> np.ndarray:
    """Chains that each stay in one of two modes."""
    side = np.where(np.arange(CHAINS) % 2, 4.0, -4.0)[:, None, None]
    return side + generator.normal(size=(CHAINS, DRAWS, 2))
