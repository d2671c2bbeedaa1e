"""Log densities of the targets: one formula for NumPy and JAX, so that all samplers have the same.

Each is a function of points (…, dim) and of the array module, `numpy` or `jax.numpy`, up to a
constant. Nothing here knows the truth, and nothing imports salmc: peers' environments lack it.
"""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.references import Reference, cauchy, normal, secant, uniform

DATA_VARIABLE = "PEERS_DATA"
"""The folder of the tables of the regressions, as the benchmark tells its workers."""

Array = Any
LogDensity = Callable[[Array, Any], Array]


class Density(NamedTuple):
    """A target as samplers see it.

    Attributes:
        dim: number of coordinates.
        log_density: points (…, dim) and array module ↦ (…).
        reference: a distribution of each coordinate, for samplers that need a prior; the model's
            own prior where it has one.
        bounds: of every coordinate, if the density has an edge.
        black_box: whether only values are to be had, from NumPy, no gradient.
        seconds: what an evaluation is taken to cost, beside what it does.
    """

    dim: int
    log_density: LogDensity
    reference: tuple[Reference, ...]
    bounds: tuple[float, float] | None = None
    black_box: bool = False
    seconds: float = 0.0


def log_sum_exp(values: Array, xp: Any) -> Array:
    """log Σ exp over the last axis."""
    highest = xp.max(values, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(values - highest), axis=-1)) + highest[..., 0]


def gaussian(x: Array, xp: Any) -> Array:
    """N(0, 4 I)."""
    return -0.125 * xp.sum(x**2, axis=-1)


def rings(*radii: float, width: float) -> LogDensity:
    """exp(−minᵢ ((r − aᵢ)/w)²)."""

    def log_density(x: Array, xp: Any) -> Array:
        radius = xp.sqrt(xp.maximum(xp.sum(x**2, axis=-1, keepdims=True), 1e-30))
        return -xp.min(((radius - xp.asarray(radii)) / width) ** 2, axis=-1)

    return log_density


def circle(count: int) -> np.ndarray:
    """Centres on a circle of radius 5."""
    angles = np.arange(count) * 2.0 * np.pi / count
    return 5.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def mixture(centres: np.ndarray) -> LogDensity:
    """Equal round Gaussians of variance 0.25."""

    def log_density(x: Array, xp: Any) -> Array:
        squares = xp.sum((x[..., None, :] - xp.asarray(centres)) ** 2, axis=-1)
        return log_sum_exp(-2.0 * squares, xp)

    return log_density


def signed_rows(name: str) -> np.ndarray:
    """Standardised features with a 1, times −1 where the label is 0."""
    table = np.loadtxt(Path(os.environ[DATA_VARIABLE]) / f"{name}.csv", delimiter=",", skiprows=1)
    features, labels = table[:, :-1], table[:, -1:]
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    return (2.0 * labels - 1.0) * np.concatenate([standard, np.ones_like(labels)], axis=1)


def regression(rows: np.ndarray) -> LogDensity:
    """Logistic regression with the prior N(0, I)."""
    transposed = np.ascontiguousarray(rows.T)

    def log_density(x: Array, xp: Any) -> Array:
        z = -(x @ xp.asarray(transposed, dtype=x.dtype))
        softplus = xp.maximum(z, 0.0) + xp.log1p(xp.exp(-xp.abs(z)))
        return -xp.sum(softplus, axis=-1) - 0.5 * xp.sum(x**2, axis=-1)

    return log_density


def groups(seed: int, *each: tuple[float, float, int]) -> np.ndarray:
    """Data of the label-switching mixtures."""
    generator = np.random.default_rng(seed)
    return np.concatenate([generator.normal(*group) for group in each])


TWO_GROUPS = groups(0, (-2.0, 0.6, 80), (2.5, 1.0, 120))
THREE_GROUPS = groups(1, (-4.0, 0.7, 60), (0.0, 0.6, 80), (3.5, 1.0, 70))


def switching(data: np.ndarray, count: int) -> LogDensity:
    """The posterior of a mixture of Gaussians: weights, means, log sds; count! equal modes."""

    def log_density(x: Array, xp: Any) -> Array:
        logits = x[..., : count - 1]
        last = -logits if count == 2 else xp.zeros_like(logits[..., :1])
        logits = xp.concatenate([logits, last], axis=-1)
        log_weights = logits - log_sum_exp(logits, xp)[..., None]
        means, log_sds = x[..., count - 1 : 2 * count - 1], x[..., 2 * count - 1 :]
        z = (xp.asarray(data)[:, None] - means[..., None, :]) * xp.exp(-log_sds)[..., None, :]
        each = (log_weights - log_sds)[..., None, :] - 0.5 * z**2
        prior = -0.02 * means**2 + log_sds - 0.125 * xp.exp(2.0 * log_sds) + log_weights
        return xp.sum(log_sum_exp(each, xp), axis=-1) + xp.sum(prior, axis=-1)

    return log_density


def funnel(x: Array, xp: Any) -> Array:
    """x₀ ~ N(0, 9), the others N(0, exp x₀)."""
    first, others = x[..., 0], x[..., 1:]
    spread = 0.5 * xp.sum(others**2, axis=-1) * xp.exp(-first)
    return -(first**2) / 18.0 - spread - 0.5 * others.shape[-1] * first


EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
STANDARD_ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools_prior(mean: Array, log_scale: Array, xp: Any) -> Array:
    """μ ~ N(0, 5²), τ ~ half-Cauchy(5), of log τ."""
    return -0.02 * mean**2 + log_scale - xp.logaddexp(0.0, 2.0 * (log_scale - math.log(5.0)))


def schools(x: Array, xp: Any) -> Array:
    """Eight schools, non-centred: μ, log τ, η."""
    mean, log_scale, raw = x[..., 0], x[..., 1], x[..., 2:]
    effects = mean[..., None] + xp.exp(log_scale)[..., None] * raw
    residuals = (xp.asarray(EFFECTS) - effects) / xp.asarray(STANDARD_ERRORS)
    return schools_prior(mean, log_scale, xp) - 0.5 * xp.sum(raw**2 + residuals**2, axis=-1)


def centred_schools(x: Array, xp: Any) -> Array:
    """Eight schools, centred: μ, log τ, θ."""
    mean, log_scale, effects = x[..., 0], x[..., 1], x[..., 2:]
    residuals = (xp.asarray(EFFECTS) - effects) / xp.asarray(STANDARD_ERRORS)
    raw = (effects - mean[..., None]) * xp.exp(-log_scale)[..., None]
    squares = 0.5 * xp.sum(raw**2 + residuals**2, axis=-1)
    return schools_prior(mean, log_scale, xp) - squares - 8.0 * log_scale


def student(degrees: float) -> LogDensity:
    """Multivariate Student-t of unit scale."""

    def log_density(x: Array, xp: Any) -> Array:
        squares = xp.sum(x**2, axis=-1)
        return -0.5 * (degrees + x.shape[-1]) * xp.log1p(squares / degrees)

    return log_density


def box(x: Array, xp: Any) -> Array:
    """Uniform on [3, 4]^d."""
    return xp.where(xp.all((x > 3.0) & (x < 4.0), axis=-1), 0.0, -xp.inf)


def two_widths(x: Array, xp: Any) -> Array:
    """Equal weights: sd 1 at (−3, 0), sd 0.02 at (3, 0)."""
    first, second = x[..., 0], x[..., 1]
    wide = -0.5 * ((first + 3.0) ** 2 + second**2)
    narrow = -0.5 * ((first - 3.0) ** 2 + second**2) / 0.02**2 - 2.0 * math.log(0.02)
    return xp.logaddexp(wide, narrow)


def rotation(dim: int) -> np.ndarray:
    """An orthogonal matrix, always the same."""
    return np.linalg.qr(np.random.default_rng(7).normal(size=(dim, dim)))[0]


def stretched_scales(dim: int) -> np.ndarray:
    """Standard deviations along the axes: variances from 10⁻³ to 10³."""
    return np.logspace(-1.5, 1.5, dim)


def stretched(dim: int) -> LogDensity:
    """A rotated Gaussian of condition number 10⁶."""
    whitening = rotation(dim) / stretched_scales(dim)

    def log_density(x: Array, xp: Any) -> Array:
        return -0.5 * xp.sum((x @ xp.asarray(whitening, dtype=x.dtype)) ** 2, axis=-1)

    return log_density


def bent(x: Array, xp: Any) -> Array:
    """A bent Gaussian in the unit cube, whose ends are cut off."""
    first, second, third = x[..., 0] - 0.5, x[..., 1] - 0.5, x[..., 2] - 0.5
    across = (second + 0.3 - 2.0 * first**2) / 0.03
    inside = xp.all((x >= 0.0) & (x <= 1.0), axis=-1)
    value = -0.5 * ((first / 0.15) ** 2 + across**2 + (third / 0.1) ** 2)
    return xp.where(inside, value, -xp.inf)


def _plane(log_density: LogDensity) -> Density:
    return Density(2, log_density, (uniform(-10.0, 10.0),) * 2)


def _regression(name: str) -> Density:
    rows = signed_rows(name)
    return Density(rows.shape[1], regression(rows), (normal(0.0, 1.0),) * rows.shape[1])


def _switching(data: np.ndarray, count: int) -> Density:
    each = ((count - 1, normal(0.0, 2.0)), (count, normal(0.0, 5.0)), (count, normal(0.0, 1.5)))
    reference = tuple(one for times, one in each for _ in range(times))
    return Density(3 * count - 1, switching(data, count), reference)


_SCHOOLS = (normal(0.0, 5.0), secant(math.log(5.0), 1.0))

DENSITIES: dict[str, Callable[[], Density]] = {
    "gaussian2": lambda: _plane(gaussian),
    "ring": lambda: _plane(rings(2.0, width=0.4)),
    "mog2": lambda: _plane(mixture(circle(2))),
    "mog6": lambda: _plane(mixture(circle(6))),
    "ring5": lambda: _plane(rings(1.0, 2.0, 3.0, 4.0, 5.0, width=0.2)),
    "heart": lambda: _regression("heart"),
    "australian": lambda: _regression("australian"),
    "german": lambda: _regression("german"),
    "switching2": lambda: _switching(TWO_GROUPS, 2),
    "switching3": lambda: _switching(THREE_GROUPS, 3),
    "funnel": lambda: Density(10, funnel, (normal(0.0, 3.0), *(cauchy(0.0, 1.0),) * 9)),
    "schools": lambda: Density(10, schools, (*_SCHOOLS, *(normal(0.0, 1.0),) * 8)),
    "centred-schools": lambda: Density(10, centred_schools, (*_SCHOOLS, *(normal(0.0, 20.0),) * 8)),
    "cauchy5": lambda: Density(5, student(1.0), (uniform(-1000.0, 1000.0),) * 5),
    "t3": lambda: Density(5, student(3.0), (uniform(-100.0, 100.0),) * 5),
    "box20": lambda: Density(20, box, (uniform(3.0, 4.0),) * 20, bounds=(3.0, 4.0)),
    "two-widths": lambda: _plane(two_widths),
    "stretched100": lambda: Density(100, stretched(100), (normal(0.0, 15.0),) * 100),
    "black-box3": lambda: Density(
        3, bent, (uniform(0.0, 1.0),) * 3, bounds=(0.0, 1.0), black_box=True, seconds=0.005
    ),
}
