"""Points in standard units, and how well a Gaussian suits them: what looks for maps begins here."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud

_FEWEST_EACH = 20
"""Points for each coordinate, below which nothing is looked for."""

_CLUSTERS = -1.3
"""Excess kurtosis of a coordinate with nothing in its middle; −1.2 is that of a uniform, −2 of two
points. Separate modes are no funnel, and no bend."""


class Units(NamedTuple):
    """Points in standard units u, x = middle + width u."""

    units: Cloud
    middle: Float[np.ndarray, " dim"]
    width: Float[np.ndarray, " dim"]

    @classmethod
    def of(cls, points: Cloud, each: int = _FEWEST_EACH) -> "Units | None":
        """Of at least so many points for each coordinate, or None."""
        middle, width = np.mean(points, axis=0), np.std(points, axis=0)
        few = len(points) < each * points.shape[1] or points.shape[1] < 2
        if few or not np.all((width > 0.0) & np.isfinite(width)):
            return None
        return cls((points - middle) / width, middle, width)


def are_empty(columns: Cloud, kurtosis: float = _CLUSTERS) -> np.ndarray:
    """Which columns have next to nothing in their middle."""
    away = columns - np.mean(columns, axis=0)
    squares = np.mean(away**2, axis=0)
    return np.mean(away**4, axis=0) < (3.0 + kurtosis) * squares**2


def likelihood(built: Cloud, held: Cloud) -> float:
    """Mean log density of held-out points by a Gaussian that was fitted to the others."""
    middle, covariance = np.mean(built, axis=0), np.cov(built, rowvar=False)
    covariance = covariance + 1e-12 * np.trace(covariance) * np.eye(len(middle))
    squares = np.sum((held - middle) * np.linalg.solve(covariance, (held - middle).T).T, axis=1)
    return float(-0.5 * (np.linalg.slogdet(covariance)[1] + np.mean(squares)))
