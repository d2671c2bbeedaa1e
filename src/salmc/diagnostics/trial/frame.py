"""The draws' own frame: where they are, how wide, and in which directions; far ones hardly matter.

Means and covariances of heavy tails say nothing, so the centre is the median, a unit is half the
distance between the quantiles of 16 and 84 %, and correlations are those of points held within a
few units.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.point_sets import Cloud

_HELD = 4.0
_QUANTILES = (0.16, 0.84)


class Frame(NamedTuple):
    """x = centre + scale ⊙ (factor y), y of about unit covariance."""

    centre: Float[np.ndarray, " dim"]
    scale: Float[np.ndarray, " dim"]
    factor: Float[np.ndarray, "dim dim"]

    @classmethod
    def of(cls, points: Cloud, shrunk: bool = True) -> "Frame":
        """The frame of a sample; correlations shrunk a little, as few draws overrate them.

        Of many draws thin directions are better known than that, and shrinking widens them.
        """
        centre = np.median(points, axis=0)
        low, high = np.quantile(points, _QUANTILES, axis=0)
        scale = 0.5 * (high - low)
        # Half of the points in one place: then any width at all is better than none.
        scale = np.where(scale > 0.0, scale, np.std(points, axis=0))
        scale = np.where(scale > 0.0, scale, np.maximum(1e-6 * np.abs(centre), 1e-12))
        units = np.clip((points - centre) / scale, -_HELD, _HELD)
        dim = points.shape[1]
        shrink = dim / (dim + len(points)) if shrunk else 0.0
        covariance = np.atleast_2d(np.cov(units, rowvar=False))
        covariance = (1.0 - shrink) * covariance + shrink * np.diag(np.diag(covariance))
        covariance += 1e-9 * np.eye(dim)
        return cls(centre, scale, np.linalg.cholesky(covariance))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.centre)

    def outward(self, y: Cloud) -> Cloud:
        """From the frame's coordinates to those of the density."""
        return self.centre + self.scale * (y @ self.factor.T)

    def inward(self, points: Cloud) -> Cloud:
        """To the frame's coordinates."""
        return np.linalg.solve(self.factor, ((points - self.centre) / self.scale).T).T

    def directions(self, y: Cloud) -> Cloud:
        """Differences in the frame's coordinates as differences of points."""
        return self.scale * (y @ self.factor.T)

    @property
    def conditional(self) -> Float[np.ndarray, " dim"]:
        """Width of each coordinate when all others are held."""
        precision = np.linalg.inv(self.factor @ self.factor.T)
        return self.scale / np.sqrt(np.diag(precision))


def spaced(count: int, size: int, generator: np.random.Generator) -> np.ndarray:
    """About `size` of `count` indices at equal distances, from a random one on."""
    if count <= size:
        return np.arange(count)
    return ((np.arange(size) + generator.random()) * count / size).astype(int)
