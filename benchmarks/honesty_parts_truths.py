"""Truths for results that parts of the library make: densities with exact draws, none elsewhere.

Each has what the verdict never sees: draws, and where there are modes, which mode a point is in.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from benchmarks import honesty_parts_curved as curved
from benchmarks.honesty_parts_curved import Generator, Truth, half_squares, student


def _mixed(centres: Any, factors: Any, shares: Any, degrees: float = np.inf) -> Truth:
    """A mixture of Gaussians, or of Student's t."""
    centres, factors, shares = (np.asarray(a, float) for a in (centres, factors, shares))
    count, dim = centres.shape
    inverses = np.linalg.inv(factors)
    heights = np.log(shares) - np.linalg.slogdet(factors)[1]

    def log_density(x: jax.Array) -> jax.Array:
        away = jnp.einsum("kij,kj->ki", jnp.asarray(inverses), x - jnp.asarray(centres))
        squares = jnp.sum(away**2, axis=1)
        if np.isfinite(degrees):
            each = -0.5 * (degrees + dim) * jnp.log1p(squares / degrees)
        else:
            each = -0.5 * squares
        return logsumexp(jnp.asarray(heights) + each)

    def draw(g: Generator, n: int) -> np.ndarray:
        which = g.choice(count, n, p=shares / shares.sum())
        z = g.normal(size=(n, dim))
        if np.isfinite(degrees):
            z /= np.sqrt(g.chisquare(degrees, size=(n, 1)) / degrees)
        return centres[which] + np.einsum("nij,nj->ni", factors[which], z)

    def modes(x: np.ndarray) -> np.ndarray:
        away = np.einsum("kij,nkj->nki", inverses, x[:, None] - centres)
        return np.argmax(heights - 0.5 * np.sum(away**2, axis=2), axis=1)

    return Truth(log_density, dim, draw, modes)


def _skewed(dim: int = 4, skew: float = 0.5, tail: float = 0.8) -> Truth:
    """Sinh–arcsinh of a correlated normal: skewed, with tails."""
    covariance = 0.5 * np.ones((dim, dim)) + 0.5 * np.eye(dim)
    precision, factor = np.linalg.inv(covariance), np.linalg.cholesky(covariance)

    def log_density(x: jax.Array) -> jax.Array:
        inner = tail * jnp.arcsinh(x) - skew
        z = jnp.sinh(inner)
        jacobian = jnp.log(jnp.cosh(inner)) - 0.5 * jnp.log1p(x**2)
        return -0.5 * z @ jnp.asarray(precision) @ z + jnp.sum(jacobian)

    def draw(g: Generator, n: int) -> np.ndarray:
        z = g.normal(size=(n, dim)) @ factor.T
        return np.sinh((np.arcsinh(z) + skew) / tail)

    return Truth(log_density, dim, draw)


def _star(dim: int = 5) -> Truth:
    """Independent t₃, turned: heavy tails along arms that are no coordinates."""
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(dim, dim)))[0]

    def log_density(x: jax.Array) -> jax.Array:
        return jnp.sum(student(jnp.asarray(turn).T @ x, 3.0))

    return Truth(log_density, dim, lambda g, n: g.standard_t(3.0, size=(n, dim)) @ turn.T)


def _groups(count: int = 6) -> Truth:
    """Six groups around a mean, log scale N(−½, 0.7²): a funnel with a moderate neck."""

    def log_density(x: jax.Array) -> jax.Array:
        scale = x[1]
        own = half_squares(jnp.stack([x[0], (scale + 0.5) / 0.7]))
        return own + half_squares((x[2:] - x[0]) * jnp.exp(-scale)) - count * scale

    def draw(g: Generator, n: int) -> np.ndarray:
        mean, scale = g.normal(size=(n, 1)), -0.5 + 0.7 * g.normal(size=(n, 1))
        return np.c_[mean, scale, mean + np.exp(scale) * g.normal(size=(n, count))]

    return Truth(log_density, count + 2, draw)


def _edgy() -> Truth:
    """Beta(½, ½) twice and a gamma of shape 0.7, with bounds: infinite at the edges."""

    def log_density(x: jax.Array) -> jax.Array:
        halves = -0.5 * jnp.sum(jnp.log(x[:2]) + jnp.log1p(-x[:2]))
        return halves - 0.3 * jnp.log(x[2]) - x[2]

    def draw(g: Generator, n: int) -> np.ndarray:
        tiny = 1e-6
        beta = np.clip(g.beta(0.5, 0.5, size=(n, 2)), tiny, 1.0 - tiny)
        return np.c_[beta, np.maximum(g.gamma(0.7, size=n), tiny)]

    return Truth(log_density, 3, draw, options={"bounds": [(0, 1), (0, 1), (0, None)]})


def _walk(dim: int = 40, correlation: float = 0.95) -> Truth:
    """A stationary autoregression as one Gaussian."""
    away = np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))
    factor = np.linalg.cholesky(correlation**away)
    noise = np.sqrt(1.0 - correlation**2)

    def log_density(x: jax.Array) -> jax.Array:
        return -0.5 * x[0] ** 2 + half_squares((x[1:] - correlation * x[:-1]) / noise)

    return Truth(log_density, dim, lambda g, n: g.normal(size=(n, dim)) @ factor.T)


def _horseshoe() -> Truth:
    """log λ of a half Cauchy, y ~ N(0, λ²), twice: funnels whose scales have exponential tails."""

    def log_density(x: jax.Array) -> jax.Array:
        scale, y = x[:2], x[2:]
        return jnp.sum(scale - jnp.logaddexp(0.0, 2.0 * scale)) + (
            half_squares(y * jnp.exp(-scale)) - jnp.sum(scale)
        )

    def draw(g: Generator, n: int) -> np.ndarray:
        scale = np.abs(g.standard_cauchy(size=(n, 2)))
        return np.c_[np.log(scale), scale * g.normal(size=(n, 2))]

    return Truth(log_density, 4, draw)


def _stiff(dim: int = 20, condition: float = 300.0) -> Truth:
    """A turned Gaussian whose axes differ by a factor of 300."""
    turn = np.linalg.qr(np.random.default_rng(4).normal(size=(dim, dim)))[0]
    axes = np.geomspace(1.0, condition, dim)

    def log_density(x: jax.Array) -> jax.Array:
        return half_squares((jnp.asarray(turn).T @ x) / jnp.asarray(axes))

    return Truth(log_density, dim, lambda g, n: (g.normal(size=(n, dim)) * axes) @ turn.T)


def _lognormals(dim: int = 10) -> Truth:
    """Correlated lognormals, with bounds."""
    covariance = 0.6 * np.ones((dim, dim)) + 0.4 * np.eye(dim)
    precision, factor = np.linalg.inv(covariance), np.linalg.cholesky(covariance)

    def log_density(x: jax.Array) -> jax.Array:
        z = jnp.log(x)
        return -0.5 * z @ jnp.asarray(precision) @ z - jnp.sum(z)

    return Truth(
        log_density,
        dim,
        lambda g, n: np.exp(g.normal(size=(n, dim)) @ factor.T),
        options={"bounds": [(0, None)] * dim},
    )


def _spiral(count: int = 60) -> Truth:
    """Sixty round Gaussians on a spiral, the outer ones heavier."""
    angle = np.linspace(2.0, 10.0, count)
    centres = 0.6 * angle[:, None] * np.c_[np.cos(angle), np.sin(angle)]
    found = _mixed(centres, np.broadcast_to(0.25 * np.eye(2), (count, 2, 2)), angle)
    return found._replace(modes=None)


def _tilted(dim: int = 3) -> Truth:
    """Asymmetric Laplace: slopes of 1 and 3 on either side."""

    def log_density(x: jax.Array) -> jax.Array:
        return -jnp.sum(jnp.where(x > 0.0, x, -3.0 * x))

    def draw(g: Generator, n: int) -> np.ndarray:
        size = g.exponential(size=(n, dim))
        return np.where(g.random((n, dim)) < 0.75, size, -size / 3.0)

    return Truth(log_density, dim, draw)


def _factors(dim: int, count: int, seed: int, size: float = 1.0) -> np.ndarray:
    g = np.random.default_rng(seed)
    made = [
        size * (np.eye(dim) + 0.4 * np.tril(g.normal(size=(dim, dim)), -1)) for _ in range(count)
    ]
    return np.stack(made)


_PLACES = 5.0 * np.random.default_rng(6).normal(size=(4, 5))
_FAR = np.array([[12.0, 0.0, 0.0], [-12.0, 3.0, 0.0]])
_UP = 2.0 * np.ones((1, 20))

TRUTHS: dict[str, Truth] = {
    "twisted t": curved.twisted_t(),
    "two bananas": curved.two_bananas(),
    "skewed": _skewed(),
    "star": _star(),
    "groups": _groups(),
    "edgy": _edgy(),
    "walk 40-d": _walk(),
    "walk 10-d": _walk(10, 0.9),
    "eggs": curved.eggs(),
    "moon": curved.moon(),
    "horseshoe": _horseshoe(),
    "shell": curved.shell(),
    "stairs": curved.stairs(),
    "stiff 20-d": _stiff(),
    "lognormals": _lognormals(),
    "spiral": _spiral(),
    "tilted": _tilted(),
    "holed": curved.holed(),
    "four modes": _mixed(_PLACES, _factors(5, 4, 7), [0.55, 0.25, 0.15, 0.05]),
    "far t": _mixed(_FAR, np.stack([np.eye(3), 3.0 * np.eye(3)]), [0.8, 0.2], 5.0),
    "two in 20-d": _mixed(np.r_[_UP, -_UP], np.stack([np.eye(20)] * 2), [0.7, 0.3]),
    "three in 1-d": _mixed(
        [[-6.0], [0.0], [9.0]], np.array([1.0, 0.5, 2.0])[:, None, None], [0.6, 0.3, 0.1]
    ),
}
