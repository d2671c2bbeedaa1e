"""Exact draws of each target, and its modes where it has several: for judging, and nothing else.

Most targets can be drawn from in closed form. Posteriors of regressions and of mixtures with
labels are drawn by importance resampling from a Student-t at the mode, which there is nearly the
posterior itself (the modes of a mixture are permutations of one): independent of every sampler
that is judged. `Truth.size` says how many independent draws the pool stands for.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.peers import densities as d

Generator = np.random.Generator
POOL = 200_000
_PROPOSALS = 300_000
_DEGREES = 8.0


class Truth(NamedTuple):
    """What is true of a target.

    Attributes:
        pool: exact draws (n, dim).
        size: independent draws that the pool is worth.
        mode: points ↦ the number of the mode of each; None for a target of one mode.
        shares: of the modes.
        has_moments: whether there are a mean and a variance to judge by.
    """

    pool: np.ndarray
    size: float
    mode: Callable[[np.ndarray], np.ndarray] | None = None
    shares: np.ndarray | None = None
    has_moments: bool = True


@functools.lru_cache(maxsize=4)
def truth(name: str) -> Truth:
    """The truth of a target, the same each time."""
    generator = np.random.default_rng(20_000)
    mode, shares = _MODES.get(name, (None, None))
    if name in _EXACT:
        pool = _EXACT[name](generator)
        return Truth(pool, len(pool), mode, shares, has_moments=name != "cauchy5")
    pool, size = _by_importance(name, generator)
    return Truth(pool, size, mode, shares)


def _ring_draws(radii: np.ndarray, width: float) -> Callable[[Generator], np.ndarray]:
    def draw(generator: Generator) -> np.ndarray:
        # The radius has the density r exp(−U): inverted on a grid finer than any error here.
        grid = np.linspace(0.0, radii[-1] + 8.0 * width, 400_001)
        weights = grid * np.exp(-np.min(((grid[:, None] - radii) / width) ** 2, axis=1))
        total = np.cumsum(weights)
        radius = np.interp(generator.random(POOL), total / total[-1], grid)
        angle = 2.0 * np.pi * generator.random(POOL)
        return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)

    return draw


def _mixture_draws(centres: np.ndarray) -> Callable[[Generator], np.ndarray]:
    def draw(generator: Generator) -> np.ndarray:
        which = generator.integers(len(centres), size=POOL)
        return centres[which] + 0.5 * generator.normal(size=(POOL, centres.shape[1]))

    return draw


def _funnel_draws(generator: Generator) -> np.ndarray:
    first = 3.0 * generator.normal(size=(POOL, 1))
    others = np.exp(0.5 * first) * generator.normal(size=(POOL, 9))
    return np.concatenate([first, others], axis=1)


def _schools_draws(generator: Generator) -> np.ndarray:
    """Given τ all else is Gaussian; log τ by a grid, as in Gelman et al., section 5.5."""
    effects, errors = d.EFFECTS, d.STANDARD_ERRORS
    grid = np.linspace(-22.0, 10.0, 32_001)
    precision = 1.0 / (errors**2 + np.exp(grid)[:, None] ** 2)
    variance = 1.0 / (0.04 + precision.sum(axis=1))
    mean = variance * (precision @ effects)
    log_weight = d.schools_prior(np.zeros_like(grid), grid, np)
    log_weight += 0.5 * np.sum(np.log(precision) - precision * effects**2, axis=1)
    log_weight += 0.5 * np.log(variance) + mean**2 / (2.0 * variance)
    total = np.cumsum(np.exp(log_weight - log_weight.max()))
    log_scale = np.interp(generator.random(POOL), total / total[-1], grid)[:, None]
    scale = np.exp(log_scale)
    precision = 1.0 / (errors**2 + scale**2)
    variance = 1.0 / (0.04 + precision.sum(axis=1, keepdims=True))
    mean = variance * np.sum(precision * effects, axis=1, keepdims=True)
    centre = mean + np.sqrt(variance) * generator.normal(size=(POOL, 1))
    raw = scale * precision * (effects - centre)
    raw += errors * np.sqrt(precision) * generator.normal(size=(POOL, 8))
    return np.concatenate([centre, log_scale, raw], axis=1)


def _centred_draws(generator: Generator) -> np.ndarray:
    x = _schools_draws(generator)
    x[:, 2:] = x[:, :1] + np.exp(x[:, 1:2]) * x[:, 2:]
    return x


def _student_draws(degrees: float) -> Callable[[Generator], np.ndarray]:
    def draw(generator: Generator) -> np.ndarray:
        scale = np.sqrt(generator.chisquare(degrees, size=(POOL, 1)) / degrees)
        return generator.normal(size=(POOL, 5)) / scale

    return draw


def _two_widths_draws(generator: Generator) -> np.ndarray:
    narrow = generator.random((POOL, 1)) < 0.5
    noise = np.where(narrow, 0.02, 1.0) * generator.normal(size=(POOL, 2))
    return noise + np.where(narrow, 3.0, -3.0) * np.array([1.0, 0.0])


def _stretched_draws(generator: Generator) -> np.ndarray:
    noise = generator.normal(size=(POOL // 2, 100))  # half of it: they are wide
    return (d.stretched_scales(100) * noise) @ d.rotation(100).T


def _bent_draws(generator: Generator) -> np.ndarray:
    first, noise, third = (s * generator.normal(size=2 * POOL) for s in (0.15, 0.03, 0.1))
    points = 0.5 + np.stack([first, noise - 0.3 + 2.0 * first**2, third], axis=1)
    return points[np.all((points >= 0.0) & (points <= 1.0), axis=1)][:POOL]


def _by_importance(name: str, generator: Generator) -> tuple[np.ndarray, float]:
    """Resampled from a Student-t at the mode; and how many independent draws that is worth."""
    density = d.DENSITIES[name]()
    centre = _highest(density, _STARTS.get(name, np.zeros(density.dim)))
    factor = np.linalg.cholesky(np.linalg.inv(_curvature(density, centre)))
    scale = np.sqrt(generator.chisquare(_DEGREES, size=(_PROPOSALS, 1)) / _DEGREES)
    z = generator.normal(size=(_PROPOSALS, density.dim)) / scale
    points = centre + z @ factor.T
    log_proposal = -0.5 * (_DEGREES + density.dim) * np.log1p(np.sum(z**2, axis=1) / _DEGREES)
    parts = np.array_split(points, 300)
    values = np.concatenate([density.log_density(part, np) for part in parts])
    weights = np.exp(values - log_proposal - np.max(values - log_proposal))
    weights /= weights.sum()
    size = 1.0 / np.sum(weights**2)
    if size < 0.2 * _PROPOSALS:
        raise ValueError(f"The proposal of {name} is too far from it: {size:.0f} draws.")
    # Systematic resampling adds less noise than choosing at random.
    levels = (np.arange(POOL) + generator.random()) / POOL
    total = np.cumsum(weights)
    chosen = points[np.minimum(np.searchsorted(total / total[-1], levels), _PROPOSALS - 1)]
    generator.shuffle(chosen)
    return (_relabelled(chosen, generator) if name in _STARTS else chosen), min(size, POOL)


def _highest(density: d.Density, start: np.ndarray) -> np.ndarray:
    from scipy.optimize import minimize

    found = minimize(lambda x: -float(density.log_density(x, np)), start, method="BFGS")
    return np.asarray(found.x)


def _curvature(density: d.Density, x: np.ndarray, step: float = 1e-3) -> np.ndarray:
    """−∇∇ log p by central differences, all at once."""
    dim = len(x)
    steps = step * np.eye(dim)
    pairs = steps[:, None, :] + steps[None, :, :]
    cross = steps[:, None, :] - steps[None, :, :]
    around = np.concatenate([x + s.reshape(-1, dim) for s in (pairs, cross, -cross, -pairs)])
    values = density.log_density(around, np).reshape(4, dim, dim)
    return -(values[0] - values[1] - values[2] + values[3]) / (4.0 * step**2)


def _relabelled(points: np.ndarray, generator: Generator) -> np.ndarray:
    """Each point with its components in an order at random."""
    count = (points.shape[1] + 1) // 3
    logits = points[:, : count - 1]
    full = [logits, -logits] if count == 2 else [logits, np.zeros((len(points), 1))]
    weights = np.concatenate(full, axis=1)
    means, log_sds = points[:, count - 1 : 2 * count - 1], points[:, 2 * count - 1 :]
    order = np.argsort(generator.random((len(points), count)), axis=1)
    weights, means, log_sds = (
        np.take_along_axis(part, order, axis=1) for part in (weights, means, log_sds)
    )
    # Two components have the logits (x, −x); more have a last one that is zero.
    new = weights[:, :1] if count == 2 else weights[:, :-1] - weights[:, -1:]
    return np.concatenate([new, means, log_sds], axis=1)


def _nearest(centres: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.argmin(np.sum((x[:, None] - centres) ** 2, axis=2), axis=1)


def _order(count: int) -> Callable[[np.ndarray], np.ndarray]:
    """The order of the means, as a number."""
    orders = np.array(list(itertools.permutations(range(count))))

    def number(points: np.ndarray) -> np.ndarray:
        found = np.argsort(points[:, count - 1 : 2 * count - 1], axis=1)
        return np.argmax(np.all(found[:, None] == orders, axis=2), axis=1)

    return number


def _ring_number(points: np.ndarray) -> np.ndarray:
    radius = np.linalg.norm(points, axis=1)
    return np.clip(np.rint(radius), 1, 5).astype(int) - 1


def _ring_shares() -> np.ndarray:
    """∫ r exp(−U) dr over the cell of each ring, by a fine grid."""
    grid = np.linspace(0.0, 7.0, 700_001)
    weights = grid * np.exp(-np.min(((grid[:, None] - np.arange(1, 6)) / 0.2) ** 2, axis=1))
    ring = np.clip(np.rint(grid), 1, 5).astype(int) - 1
    return np.bincount(ring, weights) / weights.sum()


_EXACT: dict[str, Callable[[Generator], np.ndarray]] = {
    "gaussian2": lambda g: 2.0 * g.normal(size=(POOL, 2)),
    "ring": _ring_draws(np.array([2.0]), 0.4),
    "ring5": _ring_draws(np.arange(1.0, 6.0), 0.2),
    "mog2": _mixture_draws(d.circle(2)),
    "mog6": _mixture_draws(d.circle(6)),
    "funnel": _funnel_draws,
    "schools": _schools_draws,
    "centred-schools": _centred_draws,
    "cauchy5": _student_draws(1.0),
    "t3": _student_draws(3.0),
    "box20": lambda g: 3.0 + g.random((POOL, 20)),
    "two-widths": _two_widths_draws,
    "stretched100": _stretched_draws,
    "black-box3": _bent_draws,
}
_STARTS = {
    "switching2": np.array([-0.2, -2.0, 2.5, -0.5, 0.0]),
    "switching3": np.array([-0.1, 0.1, -4.0, 0.0, 3.5, -0.3, -0.5, 0.0]),
}
"""Where one of the equal modes is, from which the others follow."""

_MODES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]] = {
    "mog2": (_nearest(d.circle(2)), np.full(2, 1 / 2)),
    "mog6": (_nearest(d.circle(6)), np.full(6, 1 / 6)),
    "ring5": (_ring_number, _ring_shares()),
    "switching2": (_order(2), np.full(2, 1 / 2)),
    "switching3": (_order(3), np.full(6, 1 / 6)),
    "two-widths": (lambda x: (x[:, 0] > 2.0).astype(int), np.array([0.5, 0.5])),
}
