"""Right and wrong results in 30 to 100 dimensions: skew, heavy tails, correlation, modes, funnels.

Where modes are weighed by draws of a Gaussian around them, many dimensions leave few that count:
so right results may come out as "untested", and must not as wrong.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import honesty_truths as t

Maker = Callable[[t.Generator], t.Made]


def _rotation(dim: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(0).normal(size=(dim, dim)))[0]


def _log_gamma(g: t.Generator, narrower: float = 1.0) -> t.Made:
    """Logarithms of Gamma(2), turned so that no axis shows how skew they are."""
    dim, axes = 48, _rotation(48)
    inner = np.log(g.gamma(2.0, size=(t.COUNT, dim)))
    middle = np.mean(inner[:, 0])
    inner[:, 0] = middle + narrower * (inner[:, 0] - middle)
    turned = jnp.asarray(axes.T, dtype=float)
    return t.of(lambda x: jnp.sum(2.0 * turned @ x - jnp.exp(turned @ x)), dim), inner @ axes.T


def _student(g: t.Generator, degrees: float = 5.0) -> t.Made:
    """t₅ in 80 dimensions; draws of as many degrees of freedom."""
    spread = np.sqrt(g.chisquare(degrees, (t.COUNT, 1)) / degrees)
    target = t.of(lambda x: -42.5 * jnp.log1p(jnp.sum(x**2) / 5.0), 80)
    return target, t.standard(g, 80) / spread


def _series(g: t.Generator, shift: float = 0.0) -> t.Made:
    """A hundred values, each 0.97 of the last and noise."""
    noise, ratio = t.standard(g, 100), 0.97
    points = noise.copy()
    for i in range(1, 100):
        points[:, i] = ratio * points[:, i - 1] + np.sqrt(1.0 - ratio**2) * noise[:, i]

    def log_density(x: jax.Array) -> jax.Array:
        steps = jnp.sum((x[1:] - ratio * x[:-1]) ** 2) / (1.0 - ratio**2)
        return -0.5 * (x[0] ** 2 + steps)

    return t.of(log_density, 100), points + shift


def _simplex(g: t.Generator, gaussian: bool = False) -> t.Made:
    """Log ratios of a Dirichlet law with 41 parts; or a Gaussian of its moments."""
    parts = np.log(g.gamma(1.5, size=(t.COUNT, 41)))
    points = parts[:, 1:] - parts[:, :1]
    if gaussian:
        points = g.multivariate_normal(np.mean(points, axis=0), np.cov(points.T), t.COUNT)

    def log_density(x: jax.Array) -> jax.Array:
        total = jax.nn.logsumexp(jnp.concatenate([jnp.zeros(1), x]))
        return 1.5 * jnp.sum(x) - 1.5 * 41 * total

    return t.of(log_density, 40), points


def _two(g: t.Generator, share: float = 0.5) -> t.Made:
    """Modes of sd 1 and 0.8 in 50 dimensions; a share of the draws from the first."""
    first = g.random((t.COUNT, 1)) < share
    points = np.where(first, -1.5 + t.standard(g, 50), 1.5 + 0.8 * t.standard(g, 50))

    def log_density(x: jax.Array) -> jax.Array:
        narrow = -0.5 * jnp.sum((x - 1.5) ** 2) / 0.64 - 50.0 * jnp.log(0.8)
        return jnp.logaddexp(-0.5 * jnp.sum((x + 1.5) ** 2), narrow)

    return t.of(log_density, 50), points


_SEEN = 1.5 * np.random.default_rng(3).normal(size=60)


def _groups(g: t.Generator, without: float = 0.0) -> t.Made:
    """Sixty effects and the log of their scale, centred; without the lowest scales."""
    grid = np.linspace(-6.0, 4.0, 4001)
    misfit = np.sum(_SEEN[:, None] ** 2 / (1.0 + np.exp(2.0 * grid)), axis=0)
    logs = -0.5 * (grid**2 + misfit) - 30.0 * np.log1p(np.exp(2.0 * grid))
    cumulative = np.cumsum(np.exp(logs - np.max(logs))) / np.sum(np.exp(logs - np.max(logs)))
    scale = np.interp(without + (1.0 - without) * g.random(t.COUNT), cumulative, grid)
    variance = (np.exp(2.0 * scale) / (1.0 + np.exp(2.0 * scale)))[:, None]
    effects = variance * _SEEN + np.sqrt(variance) * t.standard(g, 60)
    data = jnp.asarray(_SEEN, dtype=float)

    def log_density(x: jax.Array) -> jax.Array:
        prior = jnp.sum(x[1:] ** 2) * jnp.exp(-2.0 * x[0]) + x[0] ** 2
        return -0.5 * (prior + jnp.sum((data - x[1:]) ** 2)) - 60.0 * x[0]

    return t.of(log_density, 61), np.c_[scale, effects]


def _laplace(g: t.Generator) -> t.Made:
    """Double exponentials in 64 dimensions."""
    return t.of(lambda x: -jnp.sum(jnp.abs(x)), 64), g.laplace(size=(t.COUNT, 64))


def _lifetimes(g: t.Generator) -> t.Made:
    """Weibull's law in 35 dimensions, given its bounds."""
    bounds: Any = [(0, None)] * 35
    target = t.of(lambda x: jnp.sum(0.5 * jnp.log(x) - x**1.5), 35, bounds=bounds)
    return target, g.weibull(1.5, (t.COUNT, 35))


WIDE_RIGHT: dict[str, Maker] = {
    "log gamma, turned, 48-d": _log_gamma,
    "t5 80-d": _student,
    "series 100-d": _series,
    "simplex 40-d": _simplex,
    "two widths 50-d": _two,
    "groups 61-d": _groups,
    "Laplace 64-d": _laplace,
    "lifetimes 35-d": _lifetimes,
}

WIDE_WRONG: dict[str, Maker] = {
    "log gamma, turned, 15 % too narrow along one axis": lambda g: _log_gamma(g, 0.85),
    "t10 for t5, 80-d": lambda g: _student(g, 10.0),
    "series shifted by 0.15": lambda g: _series(g, 0.15),
    "Gaussian of the moments of a simplex": lambda g: _simplex(g, gaussian=True),
    "two widths 50-d, 0.6 : 0.4 for 0.5 : 0.5": lambda g: _two(g, 0.6),
    "one of two widths 50-d": lambda g: _two(g, 1.0),
    "groups without their lowest tenth": lambda g: _groups(g, 0.1),
}
