"""Coordinates for chains that follow the gradient: funnels straight by the density's derivatives.

Where these show no funnel, bends and funnels are looked for in the draws themselves.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.diagnostics.straightening.curvature import funnels_of_curvature
from salmc.diagnostics.straightening.search import find_straight
from salmc.movers.base import log_densities
from salmc.movers.climb import can_climb, second_derivatives
from salmc.programs import compiled
from salmc.sizes import MANY_DIMENSIONS
from salmc.straight import Straight
from salmc.target import AbstractTarget, Points

_FEWEST, _FEWEST_EACH = 256, 6
"""Points whose derivatives are looked at, in all and for each coordinate: these have no noise."""

_MOST_NUMBERS = 2**24
"""In all Hessians together."""

FEWEST_DIMENSIONS = 4
"""Below which a mixture follows funnels as well."""


def shows_funnels(target: AbstractTarget, places: Points) -> bool:
    """Whether the density's derivatives show that some coordinates govern the spread of others.

    Args:
        target: any.
        places: far around it; only the likeliest of them are looked at.
    """
    if target.dim < FEWEST_DIMENSIONS or not _looks(target):
        return False
    values = np.asarray(log_densities(target, places))
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values))
    likely = np.asarray(places, np.float64)[order[: _count(target.dim)]]
    return _funnels(target, likely) is not None


def straight_coordinates(
    target: AbstractTarget, cloud: Float[np.ndarray, "n dim"]
) -> Straight | None:
    """The maps that make funnels and bends straight; None where there are none.

    Args:
        target: differentiable.
        cloud: points near it, in any order.
    """
    some = np.random.default_rng(0).permutation(cloud)
    if target.dim >= 2 and _looks(target):
        found = _funnels(target, some[: _count(target.dim)])
        if found is not None:
            return found
    return find_straight(some) if target.dim <= MANY_DIMENSIONS else None


def _count(dim: int) -> int:
    return max(_FEWEST, _FEWEST_EACH * dim)


def _looks(target: AbstractTarget) -> bool:
    return _count(target.dim) * target.dim**2 <= _MOST_NUMBERS and can_climb(target)


def _funnels(target: AbstractTarget, points: Float[np.ndarray, "n dim"]) -> Straight | None:
    # One shape, and so one program, for all clouds.
    padded = points[np.arange(_count(target.dim)) % len(points)]
    found = _derivatives(target, jnp.asarray(padded, dtype=float))
    gradients, hessians = (np.asarray(part, np.float64)[: len(points)] for part in found)
    return funnels_of_curvature(points, gradients, hessians)


@compiled
def _derivatives(target: AbstractTarget, points: Points) -> tuple[Array, Array]:
    """Gradients and Hessians of log p, one point after the other."""

    def one(x: Array) -> tuple[Array, Array]:
        return jax.grad(target.log_density)(x), second_derivatives(target)(x)

    return jax.lax.map(one, points)
