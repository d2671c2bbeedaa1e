"""Curved truths for `honesty_parts_truths`: ridges that bend, rings, stairs, holes, egg boxes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import salmc

Generator = np.random.Generator
Density = Callable[[jax.Array], jax.Array]


class Truth(NamedTuple):
    """A density and its draws."""

    log_density: Density
    dim: int
    draw: Callable[[Generator, int], np.ndarray]
    modes: Callable[[np.ndarray], np.ndarray] | None = None
    """(n, dim) to (n,), the number of the mode."""
    options: dict[str, Any] = {}  # noqa: RUF012

    def target(self, **options: Any) -> salmc.Target:
        """As a user would write it."""
        return salmc.Target(self.log_density, self.dim, **{**self.options, **options})

    def black_box(self) -> salmc.Target:
        """Of which only values are known."""
        many = jax.jit(jax.vmap(self.log_density))
        return salmc.Target.from_numpy(lambda x: np.asarray(many(x)), self.dim, **self.options)


def half_squares(x: jax.Array) -> jax.Array:
    """log N(0, I)."""
    return -0.5 * jnp.sum(x**2)


def student(x: jax.Array, degrees: float) -> jax.Array:
    """log of Student's t, of each coordinate."""
    return -0.5 * (degrees + 1.0) * jnp.log1p(x**2 / degrees)


def twisted_t() -> Truth:
    """x₀ of a t₄, x₁ on a parabola, x₂ on a wave of it."""

    def log_density(x: jax.Array) -> jax.Array:
        bent = ((x[1] - 0.3 * x[0] ** 2) / 0.5, (x[2] - 2.0 * jnp.sin(x[0])) / 0.5)
        return student(x[0] / 2.0, 4.0) + half_squares(jnp.stack(bent))

    def draw(g: Generator, n: int) -> np.ndarray:
        first = 2.0 * g.standard_t(4.0, size=n)
        z = 0.5 * g.normal(size=(2, n))
        return np.stack([first, 0.3 * first**2 + z[0], 2.0 * np.sin(first) + z[1]], axis=1)

    return Truth(log_density, 3, draw)


def two_bananas() -> Truth:
    """One bent up, of weight 0.7, one bent down; their ends cross."""

    def log_density(x: jax.Array) -> jax.Array:
        up = half_squares(jnp.stack([x[0] / 1.5, (x[1] + 6.0 - 0.5 * x[0] ** 2) / 0.4]))
        down = half_squares(jnp.stack([x[0] / 1.5, (x[1] - 6.0 + 0.5 * x[0] ** 2) / 0.4]))
        return jnp.logaddexp(np.log(0.7) + up, np.log(0.3) + down)

    def draw(g: Generator, n: int) -> np.ndarray:
        sign = np.where(g.random(n) < 0.7, 1.0, -1.0)
        first = 1.5 * g.normal(size=n)
        return np.c_[first, sign * (0.5 * first**2 - 6.0) + 0.4 * g.normal(size=n)]

    def modes(x: np.ndarray) -> np.ndarray:
        bend = 0.5 * x[:, 0] ** 2 - 6.0
        return (np.abs(x[:, 1] - bend) > np.abs(x[:, 1] + bend)).astype(int)

    return Truth(log_density, 2, draw, modes)


def moon() -> Truth:
    """A ring of radius 3 whose angle is von Mises (κ = 1.5)."""

    def log_density(x: jax.Array) -> jax.Array:
        radius = jnp.sqrt(jnp.sum(x**2) + 1e-12)
        return -0.5 * ((radius - 3.0) / 0.3) ** 2 + 1.5 * x[0] / radius - jnp.log(radius)

    def draw(g: Generator, n: int) -> np.ndarray:
        radius, angle = 3.0 + 0.3 * g.normal(size=n), g.vonmises(0.0, 1.5, size=n)
        return radius[:, None] * np.c_[np.cos(angle), np.sin(angle)]

    return Truth(log_density, 2, draw)


def shell(dim: int = 4) -> Truth:
    """The surface of a ball of radius 5."""

    def log_density(x: jax.Array) -> jax.Array:
        radius = jnp.sqrt(jnp.sum(x**2) + 1e-12)
        return -0.5 * ((radius - 5.0) / 0.2) ** 2 - (dim - 1) * jnp.log(radius)

    def draw(g: Generator, n: int) -> np.ndarray:
        z = g.normal(size=(n, dim))
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        return z * (5.0 + 0.2 * g.normal(size=(n, 1)))

    return Truth(log_density, dim, draw)


def stairs() -> Truth:
    """x₀ uniform on (0, 5), x₁ ~ N(⌊x₀⌋, 0.15²): five ridges that meet only in what is rare."""

    def log_density(x: jax.Array) -> jax.Array:
        inside = (x[0] > 0.0) & (x[0] < 5.0)
        return jnp.where(inside, -0.5 * ((x[1] - jnp.floor(x[0])) / 0.15) ** 2, -jnp.inf)

    def draw(g: Generator, n: int) -> np.ndarray:
        first = g.uniform(1e-5, 5.0 - 1e-5, size=n)
        return np.c_[first, np.floor(first) + 0.15 * g.normal(size=n)]

    return Truth(log_density, 2, draw, lambda x: np.clip(np.floor(x[:, 0]), 0, 4).astype(int))


def holed() -> Truth:
    """A triangle of slowly falling density without a disc in it."""

    def log_density(x: jax.Array) -> jax.Array:
        inside = (x[0] > 0.0) & (x[1] > 0.0) & (x[0] + x[1] < 4.0)
        hole = (x[0] - 1.2) ** 2 + (x[1] - 1.2) ** 2 < 0.49
        return jnp.where(inside & ~hole, -0.5 * x[0], -jnp.inf)

    def draw(g: Generator, n: int) -> np.ndarray:
        x = 4.0 * g.random((20 * n, 2))
        keep = (x.sum(axis=1) < 4.0) & (np.sum((x - 1.2) ** 2, axis=1) > 0.49)
        keep &= g.random(len(x)) < np.exp(-0.5 * x[:, 0])
        return x[keep][:n]

    return Truth(log_density, 2, draw)


def eggs() -> Truth:
    """exp(−x²/8 + 2.5 cos 3x) in both coordinates: some thirty modes of unequal weights."""

    def wave(x: Any) -> Any:
        return 2.5 * (jnp.cos(3.0 * x) - 1.0)

    def draw(g: Generator, n: int) -> np.ndarray:
        columns = []
        for _ in range(2):
            x = 2.0 * g.normal(size=8 * n)
            keep = g.random(len(x)) < np.exp(2.5 * (np.cos(3.0 * x) - 1.0))
            columns.append(x[keep][:n])
        return np.stack(columns, axis=1)

    def modes(x: np.ndarray) -> np.ndarray:
        cell = np.clip(np.round(x / (2.0 * np.pi / 3.0)), -1, 1).astype(int)
        return (cell[:, 0] + 1) * 3 + cell[:, 1] + 1

    return Truth(lambda x: -jnp.sum(x**2) / 8.0 + jnp.sum(wave(x)), 2, draw, modes)
