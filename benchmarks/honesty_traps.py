"""Further pairs: a truth, exact draws from it, and draws with a fault that nobody had named.

Made to fool the verdict after it was built, so that nothing was chosen on them before it had judged
them once: `docs/trust.md` tells what it made of them then.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import honesty_truths as t

Maker = Callable[[t.Generator], t.Made]


def _chains(points: np.ndarray) -> np.ndarray:
    """(chain, draw, dim)."""
    return points.reshape(t.CHAINS, t.DRAWS, -1)


def _flipped(g: t.Generator, chains: int) -> t.Made:
    """Correlation 0.9 in the plane of two coordinates; some chains have the sign of one changed."""
    points = _chains(t.standard(g, 5) @ t.FIVE[1].T)
    points[:chains, :, 0] *= -1.0
    return t.FIVE[0], points


def _governed(g: t.Generator, kept: bool = True) -> t.Made:
    """x₁ ~ N(0, e^{x₀}): uncorrelated, so that losing what binds them leaves all moments right."""
    first = 0.8 * t.standard(g, 1)
    second = np.exp(0.5 * first) * t.standard(g, 1)
    target = t.of(
        lambda x: -0.5 * (x[0] ** 2 / 0.64 + x[1] ** 2 * jnp.exp(-x[0]) + x[0] + x[2] ** 2), 3
    )
    second = second if kept else g.permutation(second)
    return target, np.c_[first, second, t.standard(g, 1)]


_TOOTH, _COMB = 0.05, 3.0


def _comb(g: t.Generator, width: float = _COMB, box: bool = False) -> t.Made:
    """Teeth of width 0.05 at the integers, under a wide normal: all but discrete."""
    numbers = np.arange(-25, 26)
    shares = np.exp(-0.5 * numbers**2 / (_TOOTH**2 + width**2))
    at = g.choice(numbers, t.COUNT, p=shares / np.sum(shares))
    precision = _TOOTH**-2 + width**-2
    points = at * _TOOTH**-2 / precision + g.normal(size=t.COUNT) / np.sqrt(precision)

    def values(xp: Any, x: Any) -> Any:
        return -0.5 * ((x - xp.round(x)) / _TOOTH) ** 2 - 0.5 * (x / _COMB) ** 2

    if box:
        return t.black_box(lambda x: values(np, x[:, 0]), 1), points[:, None]
    return t.of(lambda x: values(jnp, x[0]), 1), points[:, None]


def _ridge(g: t.Generator, length: float = 1.0, box: bool = False) -> t.Made:
    """A sum of four coordinates that is held to 0.01, where their differences go to 10."""
    axes = np.linalg.qr(np.c_[np.ones(4), np.random.default_rng(1).normal(size=(4, 3))])[0]
    scales = np.array([0.01, 10.0, 3.0, 1.0])
    z = t.standard(g, 4) * scales * [1.0, length, 1.0, 1.0]
    inverse = axes / scales
    if box:
        return t.black_box(lambda x: -0.5 * np.sum((x @ inverse) ** 2, axis=1), 4), z @ axes.T
    return t.of(lambda x: -0.5 * jnp.sum((x @ jnp.asarray(inverse)) ** 2), 4), z @ axes.T


def _mild(g: t.Generator, cut: float = -np.inf) -> t.Made:
    """Effects of a log scale of N(0, 1): a neck of a twentieth below −1.645."""
    scale = g.normal(size=(2 * t.COUNT, 1))
    points = np.c_[scale, np.exp(scale) * g.normal(size=(2 * t.COUNT, 3))]
    target = t.of(
        lambda x: -0.5 * (x[0] ** 2 + jnp.sum(x[1:] ** 2) * jnp.exp(-2.0 * x[0])) - 3.0 * x[0], 4
    )
    return target, t.keep(points, points[:, 0] > cut)


_PLACES = np.random.default_rng(11).normal(size=(7, 4))
_SEVEN = t.mixture(6.0 * _PLACES, [1.0] * 7, [1.0] * 7)


def _cusp(g: t.Generator, size: float = 1.0) -> t.Made:
    """exp(−2 Σ √|x|): a slope without bound at 0, and tails that hardly end."""
    points = size * g.gamma(2.0, 0.5, size=(t.COUNT, 3)) ** 2
    points *= np.where(g.random(points.shape) < 0.5, -1.0, 1.0)
    return t.of(lambda x: -2.0 * jnp.sum(jnp.sqrt(jnp.abs(x))), 3), points


def _angle(g: t.Generator, seam: float = 0.5) -> t.Made:
    """An angle in (−π, π) whose mode is where the circle was cut: half of the mass at each end."""
    angle = np.abs(g.vonmises(0.0, 2.0, size=t.COUNT))
    points = np.where(g.random(t.COUNT) < seam, np.pi - angle, angle - np.pi)

    def log_density(x: jax.Array) -> jax.Array:
        inside = jnp.abs(x[0]) < jnp.pi
        return jnp.where(inside, -2.0 * jnp.cos(x[0]) - 0.5 * x[1] ** 2, -jnp.inf)

    return t.of(log_density, 2), np.c_[np.clip(points, -3.14159, 3.14159), t.standard(g, 1)]


def _nested(g: t.Generator, share: float = 0.5) -> t.Made:
    """N(0, I) and N(0, 20² I) in six dimensions, of equal weights."""
    wide = g.random((t.COUNT, 1)) < share

    def log_density(x: jax.Array) -> jax.Array:
        squares = jnp.sum(x**2)
        return jnp.logaddexp(-0.5 * squares, -squares / 800.0 - 6.0 * jnp.log(20.0))

    return t.of(log_density, 6), t.standard(g, 6) * np.where(wide, 20.0, 1.0)


def _cornered(g: t.Generator, arm: float = 1.0 / 3.0) -> t.Made:
    """A square without its upper right quarter: three quarters, of which one is an arm."""
    quarter = g.choice(3, t.COUNT, p=[1.0 / 3.0, 2.0 / 3.0 - arm, arm])
    corner = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])[quarter]
    points = corner + 0.5 * g.random((t.COUNT, 2))

    def log_density(x: jax.Array) -> jax.Array:
        square = jnp.all((x[:2] > 0.0) & (x[:2] < 1.0))
        inside = square & ~jnp.all(x[:2] > 0.5)
        return jnp.where(inside, -0.5 * x[2] ** 2, -jnp.inf)

    return t.of(log_density, 3), np.c_[points, t.standard(g, 1)]


_SIXTY = np.linalg.qr(np.random.default_rng(2).normal(size=(60, 60)))[0] * np.geomspace(
    0.1, 10.0, 60
)
_SIXTY_INVERSE = np.linalg.inv(_SIXTY)


def _sixty(g: t.Generator, shift: float = 0.0) -> t.Made:
    """A Gaussian in sixty dimensions whose covariance has the condition 10⁴."""
    z = t.standard(g, 60)
    z[:, 0] += shift
    inverse = jnp.asarray(_SIXTY_INVERSE)
    return t.of(lambda x: -0.5 * jnp.sum((inverse @ x) ** 2), 60), z @ _SIXTY.T


def _far_funnels(g: t.Generator, share: float = 0.3) -> t.Made:
    """Two modes at distance 12 √7, each a mild funnel, in eight dimensions."""

    def part(x: jax.Array, centre: float) -> jax.Array:
        squares = jnp.sum((x[1:] - centre) ** 2) * jnp.exp(-x[0])
        return -0.5 * (x[0] ** 2 + squares + 7.0 * x[0])

    first = t.standard(g, 1)
    centre = np.where(g.random((t.COUNT, 1)) < share, -6.0, 6.0)
    target = t.of(
        lambda x: jnp.logaddexp(jnp.log(0.3) + part(x, -6.0), jnp.log(0.7) + part(x, 6.0)), 8
    )
    return target, np.c_[first, centre + np.exp(0.5 * first) * t.standard(g, 7)]


def _half_cauchy(g: t.Generator, most: float = np.inf) -> t.Made:
    """A scale with a half-Cauchy prior that no datum tells of."""
    scale = np.abs(g.standard_cauchy((2 * t.COUNT, 1)))
    target = t.of(
        lambda x: -jnp.log1p(x[0] ** 2) - 0.5 * x[1] ** 2, 2, bounds=[(0, None), (None, None)]
    )
    points = np.c_[scale, g.normal(size=(2 * t.COUNT, 1))]
    return target, t.keep(points, scale[:, 0] < most)


def _seen_again(g: t.Generator) -> t.Made:
    """600 draws, each ten times with a little noise: a resampling that nothing moved afterwards."""
    few = np.repeat(g.normal(size=(600, 3)), 10, axis=0)
    return t.of(t.normal, 3), g.permutation(few) + 0.003 * t.standard(g, 3)


def _one_of_twenty(g: t.Generator, size: float = 1.0) -> t.Made:
    return t.black_box(t.numpy_normal, 20), t.standard(g, 20) * np.r_[size, np.ones(19)]


def _wider(g: t.Generator, chains: int) -> t.Made:
    """Two of eight chains are 40 % too wide: their means agree."""
    points = _chains(t.standard(g, 3))
    points[:chains] *= 1.4
    return t.of(t.normal, 3), points


def _student_two(x: jax.Array) -> jax.Array:
    """Student's t of two degrees of freedom, in ten dimensions."""
    return -6.0 * jnp.log1p(0.5 * jnp.sum(x**2))


_FAR = t.mixture(np.array([[0.0, 0.0], [600.0, 800.0]]), [1.0, 1.0], [1.0, 1.0])


TRAP_RIGHT: dict[str, Maker] = {
    "spread governed, no correlation": _governed,
    "comb": _comb,
    "comb, black box": lambda g: _comb(g, box=True),
    "ridge": _ridge,
    "ridge, black box": lambda g: _ridge(g, box=True),
    "mild funnel": _mild,
    "seven modes": lambda g: (_SEVEN[0], _SEVEN[1](g, np.ones(7))),
    "cusp": _cusp,
    "angle cut at its mode": _angle,
    "narrow in wide": _nested,
    "a square without a quarter": _cornered,
    "condition 1e4, 60-d": _sixty,
    "two far funnels": _far_funnels,
    "half Cauchy with bounds": _half_cauchy,
    "normal 20-d, black box": _one_of_twenty,
    "t2 10-d": lambda g: (t.of(_student_two, 10), t.student_draws(g, 2.0, 10)),
    "sd 1 at 1e5": lambda g: (t.of(lambda x: t.normal(x - 1e5), 2), 1e5 + t.standard(g, 2)),
    "four decimals, 1-d": lambda g: (t.of(t.normal, 1), np.round(t.standard(g, 1), 4)),
    "small ESS": lambda g: (t.of(t.normal, 2), t.autoregressive(g, 0.97, 5000, 2)),
    "modes 1000 sd apart": lambda g: (_FAR[0], _FAR[1](g, np.ones(2))),
}

TRAP_WRONG: dict[str, Maker] = {
    "sign of one coordinate changed in two chains": lambda g: _flipped(g, 2),
    "spread no longer governed": lambda g: _governed(g, False),
    "comb 10 % too narrow": lambda g: _comb(g, 0.9 * _COMB),
    "comb 10 % too narrow, black box": lambda g: _comb(g, 0.9 * _COMB, box=True),
    "ridge 10 % too short": lambda g: _ridge(g, 0.9),
    "ridge 10 % too short, black box": lambda g: _ridge(g, 0.9, box=True),
    "mild funnel without its neck": lambda g: _mild(g, -1.645),
    "one of seven modes 20 % overweight": lambda g: (
        _SEVEN[0],
        _SEVEN[1](g, np.array([1.2, 1, 1, 1, 1, 1, 1])),
    ),
    "cusp 10 % too narrow": lambda g: _cusp(g, 0.9),
    "angle 0.55 : 0.45 across its seam": lambda g: _angle(g, 0.55),
    "narrow in wide, 0.55 : 0.45": lambda g: _nested(g, 0.55),
    "a square without a quarter, an arm too thin": lambda g: _cornered(g, 0.29),
    "one direction of 60 shifted by 0.2 sd": lambda g: _sixty(g, 0.2),
    "two far funnels, 0.35 : 0.65 for 0.3 : 0.7": lambda g: _far_funnels(g, 0.35),
    "half Cauchy cut at its 98 %": lambda g: _half_cauchy(g, 31.8),
    "one of twenty 15 % too narrow, black box": lambda g: _one_of_twenty(g, 0.85),
    "600 draws ten times, with a little noise": _seen_again,
    "two of eight chains 40 % too wide": lambda g: _wider(g, 2),
    "t3 for t2, 10-d": lambda g: (t.of(_student_two, 10), 1.1 * t.student_draws(g, 3.0, 10)),
    "one coordinate in inches": lambda g: (t.of(t.normal, 4), t.standard(g, 4) / [1, 1, 1, 2.54]),
    "modes 1000 sd apart, 0.6 : 0.4 for 0.5 : 0.5": lambda g: (
        _FAR[0],
        _FAR[1](g, np.array([0.6, 0.4])),
    ),
}
