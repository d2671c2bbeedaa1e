"""More pairs, each as a density with a gradient and as a black box, of which only values are known.

What is wrong is small, and in one place: one direction of twenty, one mode of three, one chain of
sixteen, the tail of one coordinate, a dependence of three of which no two show it. None was made to
fit a test: `docs/trust.md` tells which of them the verdict as it was before had trusted.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from benchmarks import honesty_truths as t

Maker = Callable[[t.Generator], t.Made]
Density = Callable[[Any, Any], Any]
"""Of NumPy or jax.numpy, and points (…, dim)."""

Draw = Callable[[t.Generator], np.ndarray]


def _both(log_density: Density, dim: int, **draws: Draw) -> tuple[dict[str, Maker], ...]:
    """Makers of results with a gradient, and of black boxes, by name."""

    def made(draw: Draw, box: bool) -> Maker:
        if box:
            return lambda g: (t.black_box(lambda x: log_density(np, x), dim), draw(g))
        return lambda g: (t.of(lambda x: log_density(jnp, x), dim), draw(g))

    names = {name.replace("_", " "): draw for name, draw in draws.items()}
    return (
        {name: made(draw, False) for name, draw in names.items()},
        {f"{name}, black box": made(draw, True) for name, draw in names.items()},
    )


def _normal(xp: Any, x: Any) -> Any:
    return -0.5 * xp.sum(x**2, axis=-1)


_TWENTY = 0.6 ** np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
_ROOT, _PRECISION = np.linalg.cholesky(_TWENTY), np.linalg.inv(_TWENTY)
_WAY = np.random.default_rng(5).normal(size=20)
_WAY /= np.linalg.norm(_WAY)


def _series(xp: Any, x: Any) -> Any:
    return -0.5 * xp.sum((x @ xp.asarray(_PRECISION)) * x, axis=-1)


def _series_draws(g: t.Generator, narrower: float = 0.0, shift: float = 0.0) -> np.ndarray:
    z = t.standard(g, 20)
    return (z - narrower * (z @ _WAY)[:, None] * _WAY + shift * _WAY) @ _ROOT.T


def _scales(xp: Any, x: Any) -> Any:
    """Each coordinate is N(0, 1), and N(0, 5²) for one draw in ten."""
    return xp.sum(xp.logaddexp(np.log(0.9) - 0.5 * x**2, np.log(0.02) - 0.02 * x**2), axis=-1)


def _scales_draws(g: t.Generator, first: float = 0.1) -> np.ndarray:
    wide = g.random((t.COUNT, 6)) < np.array([first, 0.1, 0.1, 0.1, 0.1, 0.1])
    return t.standard(g, 6) * np.where(wide, 5.0, 1.0)


_PLACES = np.array([[0, 0, 0, 0, 0], [5, 0, 0, 3, 0], [0, -6, 2, 0, 0]], float)
_WIDTHS, _SHARES = np.array([1.0, 0.7, 1.3]), np.array([0.6, 0.3, 0.1])


def _three(xp: Any, x: Any) -> Any:
    heights = [
        np.log(share / width**5) - 0.5 * xp.sum((x - xp.asarray(place)) ** 2, axis=-1) / width**2
        for place, width, share in zip(_PLACES, _WIDTHS, _SHARES, strict=True)
    ]
    return xp.logaddexp(xp.logaddexp(heights[0], heights[1]), heights[2])


def _three_draws(g: t.Generator, last: float = 1.0, shares: Any = _SHARES) -> np.ndarray:
    mode = g.choice(3, t.COUNT, p=shares)
    widths = (_WIDTHS * [1.0, 1.0, last])[mode]
    return _PLACES[mode] + widths[:, None] * t.standard(g, 5)


def _stairs(xp: Any, x: Any) -> Any:
    """All but discrete: constant on steps of a half."""
    return -0.35 * xp.sum(xp.floor(2.0 * xp.abs(x)), axis=-1)


def _stairs_draws(g: t.Generator, first: float = 0.35) -> np.ndarray:
    rates = np.array([first, 0.35, 0.35, 0.35])
    step = g.geometric(1.0 - np.exp(-rates), size=(t.COUNT, 4)) - 1
    return 0.5 * (step + g.random(step.shape)) * g.choice([-1, 1], size=step.shape)


def _gumbel(xp: Any, x: Any) -> Any:
    return xp.sum(-x - xp.exp(-xp.maximum(x, -80.0)), axis=-1)


def _gumbel_draws(g: t.Generator, most: float = np.inf) -> np.ndarray:
    points = g.gumbel(size=(2 * t.COUNT, 5))
    return t.keep(points, points[:, 0] < most)


def _bound(xp: Any, x: Any) -> Any:
    """Three coordinates that go together, of which any two are independent; and one more."""
    together = xp.tanh(2.0 * x[..., 0]) * xp.tanh(2.0 * x[..., 1]) * xp.tanh(2.0 * x[..., 2])
    return _normal(xp, x) + xp.log1p(0.9 * together)


def _bound_draws(g: t.Generator, strength: float = 0.9) -> np.ndarray:
    points = g.normal(size=(4 * t.COUNT, 4))
    together = np.prod(np.tanh(2.0 * points[:, :3]), axis=1)
    return t.keep(points, g.random(len(points)) < 0.5 + 0.5 * strength * together)


def _rugged(xp: Any, x: Any) -> Any:
    """Bumps on a normal."""
    return _normal(xp, x) + 0.8 * xp.sum(xp.cos(8.0 * x), axis=-1)


def _rugged_draws(g: t.Generator, bumps: float = 0.8) -> np.ndarray:
    points = g.normal(size=(30 * t.COUNT, 3))
    chance = np.exp(bumps * np.sum(np.cos(8.0 * points) - 1.0, axis=1))
    return t.keep(points, g.random(len(points)) < chance)


def _angles(xp: Any, x: Any) -> Any:
    """Two angles in (−π, π) that go together, zero outside."""
    inside = xp.all(xp.abs(x) <= np.pi, axis=-1)
    height = 2.0 * xp.cos(x[..., 0]) + 3.0 * xp.cos(x[..., 1] - x[..., 0])
    return xp.where(inside, height, -np.inf)


def _angles_draws(g: t.Generator, wrapped: bool = True) -> np.ndarray:
    first = g.vonmises(0.0, 2.0, t.COUNT)
    second = first + g.vonmises(0.0, 3.0, t.COUNT)
    second = (second + np.pi) % (2.0 * np.pi) - np.pi if wrapped else second
    return np.clip(np.c_[first, second], -3.14159, 3.14159)


def _simplex(xp: Any, x: Any) -> Any:
    """Dirichlet's law (1, 1, 1, 2) with its edges in place."""
    left = 1.0 - xp.sum(x, axis=-1)
    inside = xp.all(x > 0.0, axis=-1) & (left > 0.0)
    return xp.where(inside, xp.log(xp.maximum(left, 1e-30)), -np.inf)


def _chains(g: t.Generator, shift: float = 0.0, width: float = 1.0) -> np.ndarray:
    """Sixteen, of which one is shifted, or narrow."""
    points = g.normal(size=(16, 400, 3))
    points[3] = width * points[3] + [shift, 0.0, 0.0]
    return points


def _mirrored(g: t.Generator) -> np.ndarray:
    """Chains each of whose draws is followed by its mirror image: worth more than their number."""
    points = g.normal(size=(8, 400, 3))
    return np.stack([points, -points], axis=2).reshape(8, 800, 3)


def _even(g: t.Generator) -> np.ndarray:
    """Quasi-random numbers in random order."""
    numbers = stats.qmc.Sobol(3, seed=g).random(4096)
    return g.permutation(stats.norm.ppf(np.clip(numbers, 1e-6, 1.0 - 1e-6)))


def _outliers(g: t.Generator) -> np.ndarray:
    points = g.normal(size=(32, 2000, 3))
    return np.where(g.random((32, 2000, 1)) < 0.005, 5.0 * points, points)


_RIGHT = (
    _both(_series, 20, series_20_d=_series_draws),
    _both(_scales, 6, two_scales_in_each_of_six=_scales_draws),
    _both(_three, 5, three_modes_of_three_widths=_three_draws),
    _both(_stairs, 4, stairs=_stairs_draws),
    _both(_gumbel, 5, gumbel_5_d=_gumbel_draws),
    _both(_bound, 4, three_that_go_together=_bound_draws),
    _both(_rugged, 3, rugged=_rugged_draws),
    _both(_angles, 2, two_angles=_angles_draws),
    _both(_simplex, 3, simplex_with_edges=lambda g: g.dirichlet((1, 1, 1, 2), t.COUNT)[:, :3]),
    _both(
        _normal,
        3,
        sixteen_chains=_chains,
        mirrored_chains=_mirrored,
        even_draws=_even,
        draws_of_64000=lambda g: g.normal(size=(32, 2000, 3)),
        draws_of_600=lambda g: g.normal(size=(4, 150, 3)),
        half_precision=lambda g: t.standard(g, 3).astype(np.float16).astype(float),
    ),
)

_WRONG = (
    _both(
        _series,
        20,
        one_direction_of_20_narrow=lambda g: _series_draws(g, 0.12),
        one_direction_of_20_shifted=lambda g: _series_draws(g, shift=0.15),
    ),
    _both(_scales, 6, outer_scale_too_seldom_in_one=lambda g: _scales_draws(g, 0.055)),
    _both(
        _three,
        5,
        last_of_three_modes_narrow=lambda g: _three_draws(g, 0.86),
        weights_of_three_modes=lambda g: _three_draws(g, shares=[0.6, 0.32, 0.08]),
    ),
    _both(_stairs, 4, one_of_four_stairs_too_steep=lambda g: _stairs_draws(g, 0.4)),
    _both(_gumbel, 5, gumbel_without_its_last_hundredth=lambda g: _gumbel_draws(g, 4.6)),
    _both(_bound, 4, half_of_what_binds_three=lambda g: _bound_draws(g, 0.6)),
    _both(_rugged, 3, bumps_too_smooth=lambda g: _rugged_draws(g, 0.6)),
    _both(_angles, 2, clipped_angle=lambda g: _angles_draws(g, False)),
    _both(
        _simplex,
        3,
        simplex_of_another_prior=lambda g: g.dirichlet((1.12, 1, 1, 2), t.COUNT)[:, :3],
    ),
    _both(
        _normal,
        3,
        one_chain_of_16_elsewhere=lambda g: _chains(g, 0.9),
        one_chain_of_16_narrow=lambda g: _chains(g, width=0.4),
        one_of_64000_narrow=lambda g: g.normal(size=(32, 2000, 3)) * [0.965, 1, 1],
        outliers_of_64000=_outliers,
        importance_weights_left_out=lambda g: g.standard_t(9.0, size=(t.COUNT, 3)),
    ),
)

VALUED_RIGHT = {name: maker for pair in _RIGHT for kind in pair for name, maker in kind.items()}
VALUED_WRONG = {name: maker for pair in _WRONG for kind in pair for name, maker in kind.items()}
