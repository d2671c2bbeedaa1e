"""Tempered particles from far around, with no look at the draws but for their frame.

Particles start from a mixture r of Gaussians at many scales, about the centre of the draws and
about the origin, and follow r^{1−β} p^β from β = 0 to 1 (Neal 2001; Del Moral et al. 2006), each β
as large as leaves half of them to count. Moves are differences of two other particles, with no
gradient. What is left tells where mass may be, not how much.
"""

import numpy as np
from scipy.special import logsumexp

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import LITTLE, HostDensity

WIDEST = 100.0
_WIDTHS = (1.0, 3.0, 10.0, 30.0, WIDEST)
_ORIGIN_WIDTHS = (1.6, 10.0)
"""About the origin, in the units of the density: where people put their parameters."""

_PARTICLES, _MOVES, _MOST_ROUNDS = 512, 3, 60
_COUNTING = 0.5


class WideStart:
    """A mixture of Gaussians, equal shares, at many scales."""

    def __init__(self, frame: Frame):
        self.frame = frame
        shape = frame.scale[:, None] * frame.factor
        self._means = [frame.centre] * len(_WIDTHS) + [np.zeros(frame.dim)] * len(_ORIGIN_WIDTHS)
        self._factors = [width * shape for width in _WIDTHS]
        self._factors += [width * np.eye(frame.dim) for width in _ORIGIN_WIDTHS]

    def sample(self, count: int, generator: np.random.Generator) -> tuple[Cloud, np.ndarray]:
        """Draws, and which of the Gaussians each comes from."""
        which = np.arange(count) % len(self._means)
        noise = generator.normal(size=(count, self.frame.dim))
        points = np.empty_like(noise)
        for k, (mean, factor) in enumerate(zip(self._means, self._factors, strict=True)):
            points[which == k] = mean + noise[which == k] @ factor.T
        return points, which

    def log_density(self, points: Cloud) -> Numbers:
        """log r up to a constant."""
        parts = []
        for mean, factor in zip(self._means, self._factors, strict=True):
            units = np.linalg.solve(factor, (points - mean).T)
            parts.append(-0.5 * np.sum(units**2, axis=0) - np.linalg.slogdet(factor)[1])
        return logsumexp(parts, axis=0)


def tempered_particles(density: HostDensity, frame: Frame, generator: np.random.Generator) -> Cloud:
    """Particles that tempering carried from far around to the density; none if it is zero there."""
    start = WideStart(frame)
    count = density.share_of(_PARTICLES, 64)
    points, _ = start.sample(4 * count, generator)
    values = density.values(points)
    alive = np.flatnonzero(np.isfinite(values))
    if len(alive) < 8:
        return points[:0]
    kept = generator.choice(alive, count, replace=len(alive) < count)
    points, values = points[kept], values[kept]
    own = start.log_density(points)
    beta = 0.0
    for _ in range(_MOST_ROUNDS):
        step = _step(values - own, 1.0 - beta)
        beta += step
        weights = np.exp(step * (values - own) - np.max(step * (values - own)))
        chosen = _resampled(weights / np.sum(weights), generator)
        points, values, own = points[chosen], values[chosen], own[chosen]
        for _ in range(_MOVES if density.effort > LITTLE else 1):
            points, values, own = _moved(density, start, points, values, own, beta, generator)
        if beta >= 1.0:
            break
    return points


def _step(gain: Numbers, most: float) -> float:
    """The largest step of β that leaves half of the particles to count."""

    def enough(step: float) -> bool:
        weights = np.exp(step * (gain - np.max(gain)))
        return bool(np.sum(weights) ** 2 >= _COUNTING * len(gain) * np.sum(weights**2))

    if enough(most):
        return most
    low, high = -60.0, float(np.log(most))
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(np.exp(middle)) else (low, middle)
    return float(np.exp(low))


def _resampled(weights: Numbers, generator: np.random.Generator) -> np.ndarray:
    """Systematic resampling."""
    count = len(weights)
    places = (np.arange(count) + generator.random()) / count
    return np.minimum(np.searchsorted(np.cumsum(weights), places), count - 1)


def _moved(
    density: HostDensity,
    start: WideStart,
    points: Cloud,
    values: Numbers,
    own: Numbers,
    beta: float,
    generator: np.random.Generator,
) -> tuple[Cloud, Numbers, Numbers]:
    """One Metropolis step by differences of other particles, at a random length."""
    n, dim = points.shape
    first, second = generator.integers(n, size=(2, n))
    length = np.exp(generator.uniform(np.log(0.05), 0.0, size=n)) * 2.38 / np.sqrt(2.0 * dim)
    # Now and then in full, which is how particles change modes.
    length = np.where(generator.random(n) < 0.1, 1.0, length)
    steps = length[:, None] * (points[first] - points[second])
    spread = np.median(np.abs(points - np.median(points, axis=0)), axis=0)
    tried = points + steps + 1e-3 * spread * generator.normal(size=points.shape)
    found, found_own = density.values(tried), start.log_density(tried)
    with np.errstate(invalid="ignore"):
        ratio = beta * (found - values) + (1.0 - beta) * (found_own - own)
    taken = np.log(generator.random(n)) < np.where(np.isnan(ratio), -np.inf, ratio)
    return (
        np.where(taken[:, None], tried, points),
        np.where(taken, found, values),
        np.where(taken, found_own, own),
    )
