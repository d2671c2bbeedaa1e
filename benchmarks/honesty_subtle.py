"""Subtler results, in pairs: a truth, exact draws from it, and draws with a fault that hides.

Each wrong law differs from the truth by at least 0.02 in the probability of some event that is easy
to name (a half line of a coordinate, of a sum, of a main axis, of the distance from the centre),
which 6,000 draws tell to 0.0065 at worst.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import honesty_truths as t

_DIM = 30
_AXES = np.linalg.qr(np.random.default_rng(7).normal(size=(_DIM, _DIM)))[0]
_AXES = _AXES * np.geomspace(0.1, 10.0, _DIM)
_PRECISION = np.linalg.inv(_AXES @ _AXES.T)


def _thirty(g: t.Generator, spread: float = 1.0) -> t.Made:
    z = t.standard(g, _DIM)
    z[:, 15] *= spread
    precision = jnp.asarray(_PRECISION)
    return t.of(lambda x: -0.5 * x @ precision @ x, _DIM), z @ _AXES.T


_NEAR = t.mixture(np.array([[0.0] * 6, [5.0, 0, 0, 0, 0, 0]]), [1.0, 1.0], [0.7, 0.3])
_CORNERS = 4.0 * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), float).reshape(3, 8).T
_EIGHT = t.mixture(_CORNERS, [0.6] * 8, [1.0] * 8)
_FAR = np.random.default_rng(3).normal(size=10)
_TWENTIETH = t.mixture(
    np.array([np.zeros(10), 10.0 * _FAR / np.linalg.norm(_FAR)]), [1.0, 1.0], [0.95, 0.05]
)


def _mixed(pair: Any, weights: list[float]) -> Callable[[t.Generator], t.Made]:
    target, draw = pair
    return lambda g: (target, draw(g, np.array(weights)))


def _flattened(x: jax.Array) -> jax.Array:
    return -jnp.sum(jnp.abs(x) ** 1.5)


def _tempered(g: t.Generator, beta: float = 1.0) -> t.Made:
    """exp(−β Σ|x|^1.5)."""
    size = (g.gamma(1.0 / 1.5, size=(t.COUNT, 6)) / beta) ** (1.0 / 1.5)
    return t.of(_flattened, 6), np.where(g.random(size.shape) < 0.5, -1.0, 1.0) * size


def _log_gamma(x: jax.Array) -> jax.Array:
    return jnp.sum(2.0 * x - jnp.exp(x))


_TABLE = np.array([[1.0, 4.0, 2.0], [3.0, 0.5, 1.0], [2.0, 1.0, 5.0]]) / 19.5
_MOVED = _TABLE + 0.05 * (np.eye(9)[6] - np.eye(9)[1]).reshape(3, 3)


def _tabled(g: t.Generator, table: np.ndarray = _TABLE) -> t.Made:
    """A density that is constant on nine squares."""

    def log_density(x: jax.Array) -> jax.Array:
        row, column = (jnp.clip(x[i].astype(int), 0, 2) for i in (0, 1))
        inside = jnp.all((x > 0.0) & (x < 3.0))
        return jnp.where(inside, jnp.log(jnp.asarray(_TABLE))[row, column], -jnp.inf)

    cell = g.choice(9, t.COUNT, p=table.ravel())
    return t.of(log_density, 2), np.c_[cell // 3, cell % 3] + g.random((t.COUNT, 2))


_DATA = np.array([0.3, -0.5, 1.1, 0.2, -0.9, 0.6, 3.4, 0.1])


def _of_data(g: t.Generator, data: np.ndarray = _DATA) -> t.Made:
    """The mean of eight data, and a parameter that no datum tells of."""
    precision = 0.25 + len(data)

    def log_density(x: jax.Array) -> jax.Array:
        errors = jnp.asarray(_DATA) - x[0]
        return -0.5 * jnp.sum(errors**2) - x[0] ** 2 / 8.0 - 0.5 * x[1] ** 2

    mean = np.sum(data) / precision + t.standard(g, 1) / np.sqrt(precision)
    return t.of(log_density, 2), np.c_[mean, t.standard(g, 1)]


def _gamma(g: t.Generator, shape: float = 3.0) -> t.Made:
    """Two positive parameters; without the Jacobian of the logarithm their shape is one less."""
    target = t.of(lambda x: jnp.sum(2.0 * jnp.log(x) - x), 2, bounds=[(0, None)] * 2)
    return target, g.gamma(shape, size=(t.COUNT, 2))


SUBTLE_RIGHT: dict[str, Callable[[t.Generator], t.Made]] = {
    "correlated 30-d": _thirty,
    "near modes 6-d": _mixed(_NEAR, [0.7, 0.3]),
    "eight modes": _mixed(_EIGHT, [1.0] * 8),
    "a mode of a twentieth, 10-d": _mixed(_TWENTIETH, [0.95, 0.05]),
    "exp(-|x|^1.5), 6-d": _tempered,
    "a table": _tabled,
    "mean of eight data": _of_data,
    "gamma with bounds": _gamma,
    "500 draws of eight modes": lambda g: (
        _EIGHT[0],
        _EIGHT[1](g, np.ones(8))[:512],
    ),
    "500 draws of a box": lambda g: (
        t.of(lambda x: jnp.where(jnp.all((x > 0) & (x < 1)), 0.0, -jnp.inf), 3),
        g.random((512, 3)),
    ),
}

SUBTLE_WRONG: dict[str, Callable[[t.Generator], t.Made]] = {
    "10 % too narrow in one direction of 30": lambda g: _thirty(g, 0.9),
    "near modes 0.8 : 0.2 for 0.7 : 0.3": _mixed(_NEAR, [0.8, 0.2]),
    "two of eight modes exchange a third": _mixed(_EIGHT, [1.4, 0.6, 1, 1, 1, 1, 1, 1]),
    "a mode of a twentieth missing, 10-d": _mixed(_TWENTIETH, [1.0, 0.0]),
    "temperature 1/0.9": lambda g: _tempered(g, 0.9),
    "temperature 1/1.1": lambda g: _tempered(g, 1.1),
    "5 % of a table moved": lambda g: _tabled(g, _MOVED),
    "a datum left out": lambda g: _of_data(g, np.delete(_DATA, 0)),
    "without the Jacobian": lambda g: _gamma(g, 2.0),
    "Gaussian at the mode of a skew density": lambda g: (
        t.of(_log_gamma, 4),
        np.log(2.0) + t.standard(g, 4) / np.sqrt(2.0),
    ),
    "Gaussian of the moments of a skew density": lambda g: (
        t.of(_log_gamma, 4),
        0.42278 + np.sqrt(0.644934) * t.standard(g, 4),
    ),
    "mean field for correlation 0.9, 5-d": lambda g: (
        t.FIVE[0],
        t.standard(g, 5) / np.sqrt(np.diag(np.linalg.inv(t.FIVE[1] @ t.FIVE[1].T))),
    ),
    "a bound off by 0.05": lambda g: (
        t.of(lambda x: jnp.where(x[0] > 0, t.normal(x), -jnp.inf), 3),
        t.keep(
            *(lambda x: (x, x[:, 0] > 0.05))(
                (lambda z: np.c_[np.abs(z[:, :1]), z[:, 1:]])(g.normal(size=(2 * t.COUNT, 3)))
            )
        ),
    ),
    "one of six 10 % too narrow, black box": lambda g: (
        t.black_box(t.numpy_normal, 6),
        t.standard(g, 6) * [0.9, 1, 1, 1, 1, 1],
    ),
}
