"""Known distributions of one coordinate, for samplers that start from a prior.

Nested samplers and tempered ones need a distribution to begin with. They get π, a product of
these, and the likelihood p/π, whose posterior is p. Where the target is a model with a prior of
that form, π is that prior; elsewhere it is wide, as a user would state it who knows little.
"""

import math
from typing import Any, NamedTuple

import numpy as np


class Reference(NamedTuple):
    """A distribution: "normal", "uniform", "cauchy" or "secant", and its two numbers.

    Attributes:
        kind: which.
        first: the lower end of a uniform one, else the centre.
        second: the upper end of a uniform one, else the scale.
    """

    kind: str
    first: float
    second: float

    def log_density(self, x: Any, xp: Any) -> Any:
        """Normalised."""
        if self.kind == "uniform":
            inside = (x >= self.first) & (x <= self.second)
            return xp.where(inside, -math.log(self.second - self.first), -xp.inf)
        z = (x - self.first) / self.second
        if self.kind == "normal":
            return -0.5 * z**2 - math.log(self.second * math.sqrt(2.0 * math.pi))
        if self.kind == "cauchy":
            return -xp.log1p(z**2) - math.log(math.pi * self.second)
        return -xp.logaddexp(z, -z) + math.log(2.0 / (math.pi * self.second))

    def at(self, level: np.ndarray) -> np.ndarray:
        """The inverted distribution function."""
        if self.kind == "uniform":
            return self.first + (self.second - self.first) * level
        if self.kind == "normal":
            from scipy.special import ndtri

            return self.first + self.second * ndtri(level)
        if self.kind == "cauchy":
            return self.first + self.second * np.tan(np.pi * (level - 0.5))
        return self.first + self.second * np.log(np.tan(0.5 * np.pi * level))

    def scipy(self) -> Any:
        """The same as a frozen distribution of SciPy."""
        from scipy import stats

        if self.kind == "uniform":
            return stats.uniform(self.first, self.second - self.first)
        families = {"normal": stats.norm, "cauchy": stats.cauchy, "secant": stats.hypsecant}
        return families[self.kind](self.first, self.second)


def normal(mean: float, sd: float) -> Reference:
    """N(mean, sd²)."""
    return Reference("normal", mean, sd)


def uniform(low: float, high: float) -> Reference:
    """Uniform between two ends."""
    return Reference("uniform", low, high)


def cauchy(centre: float, scale: float) -> Reference:
    """Cauchy."""
    return Reference("cauchy", centre, scale)


def secant(centre: float, scale: float) -> Reference:
    """Hyperbolic secant: the logarithm of a half-Cauchy variable of scale exp(centre)."""
    return Reference("secant", centre, scale)


def log_prior(references: tuple[Reference, ...], x: Any, xp: Any) -> Any:
    """Of points (…, dim)."""
    parts = [one.log_density(x[..., i], xp) for i, one in enumerate(references)]
    return sum(parts[1:], start=parts[0])


def from_cube(references: tuple[Reference, ...], levels: np.ndarray) -> np.ndarray:
    """Points (…, dim) at levels between 0 and 1."""
    return np.stack([one.at(levels[..., i]) for i, one in enumerate(references)], axis=-1)
