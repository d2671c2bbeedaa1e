"""The target's density on a grid, for the background of pictures."""

import time

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from salmc.movers.base import log_densities
from salmc.target import AbstractTarget

BATCH = 2048
PATIENCE = 10.0
MASSES = (0.97, 0.9, 0.75, 0.5, 0.25)
"""Share of the probability inside each contour, from the outermost in."""


def density(target: AbstractTarget, points: np.ndarray) -> np.ndarray | None:
    """Density at each of n points, 1 at the highest; None if that would take too long.

    A black box may need seconds for one call, and a picture is not worth hours of it.
    """
    values = []
    for start in range(0, len(points), BATCH):
        batch = points[start : start + BATCH]
        # All batches have one shape, so that one compilation serves all.
        padded = np.concatenate([batch, np.repeat(batch[-1:], BATCH - len(batch), axis=0)])
        began = time.perf_counter()
        values.append(np.asarray(log_densities(target, jnp.asarray(padded)))[: len(batch)])
        remaining = (len(points) - start - len(batch)) / BATCH
        if remaining * (time.perf_counter() - began) > PATIENCE and start > 0:
            return None
    log_density = np.concatenate(values).astype(float)
    highest = np.max(log_density)
    return np.exp(log_density - highest) if np.isfinite(highest) else None


def plane(
    target: AbstractTarget, x: np.ndarray, y: np.ndarray
) -> Float[np.ndarray, "rows columns"] | None:
    """Density of a two-dimensional target on the grid of x (columns) and y (rows)."""
    columns, rows = np.meshgrid(x, y)
    points = np.stack([columns.ravel(), rows.ravel()], axis=1)
    values = density(target, points)
    return None if values is None else values.reshape(columns.shape)


def levels(values: np.ndarray) -> np.ndarray:
    """Heights whose regions of higher density hold `MASSES` of the probability on the grid."""
    ordered = np.sort(values.ravel())[::-1]
    mass = np.cumsum(ordered)
    index = np.searchsorted(mass, np.array(MASSES) * mass[-1])
    return np.unique(ordered[np.clip(index, 0, len(ordered) - 1)])
