"""Strays: particles where the target has hardly any mass are born again where they are wanted.

A particle on its way between two modes feels next to nothing of the energy distance (`energy`):
what draws pull at it, the other particles push away, and it stays there. The density tells it
apart. With u(x) the share of the target whose density is below that at x,

    u(x) = P_{y ~ p}[p(y) < p(x)],

u is uniform on [0, 1] for x ~ p, whatever p is. Here it comes from the memory's weighted draws. In
each of the bands [0, a), [a, 2a), [2a, 4a), …, up to about a tenth, λ = M · width of the M
particles belong; what exceeds λ + √λ, which chance alone would seldom do, dies at random.

The dead are reborn at draws of the memory where particles are too few: with p_h and ν_h the draws
and the living particles, both smoothed by the same kernel, places come from

    p (1 − ν_h/p_h)⁺,

so that modes that lack particles get them, at whatever distance.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.movers.memory import Memory, by_weight
from salmc.movers.stein import kernel_product
from salmc.target import Points

_FIRST, _LAST = 0.125, 0.1
"""The first band should hold this many particles; the last ends at about this share of all."""

DRAWS, _PLACES = 4096, 512
"""Draws that stand for the target where births are, and those of them at which births may be."""


def shares_below(log_density: Float[Array, " m"], memory: Memory) -> Float[Array, " m"]:
    """u: the share of the target with a density that is lower than each of these."""
    order = jnp.argsort(memory.log_density)
    cumulative = jnp.cumsum(memory.weights[order])
    below = jnp.searchsorted(memory.log_density[order], log_density)
    total = jnp.maximum(cumulative[-1], 1e-30)
    return jnp.where(below > 0, cumulative[below - 1], 0.0) / total


def surplus(key: PRNGKeyArray, shares: Float[Array, " m"]) -> Bool[Array, " m"]:
    """Who dies: in each band of low shares as many, on average, as are too many there."""
    count = len(shares)
    bands = max(1, math.ceil(math.log2(_LAST * count / _FIRST)))
    edges = np.concatenate([[0.0], _FIRST / count * 2.0 ** np.arange(bands + 1)])
    band = jnp.searchsorted(jnp.asarray(edges), shares, side="right") - 1
    inside = jnp.zeros(len(edges)).at[band].add(1.0)
    # Above the last edge nobody dies.
    expected = count * np.diff(edges)
    room = np.append(expected + np.sqrt(expected), np.inf)
    return jax.random.uniform(key, (count,)) * inside[band] > jnp.asarray(room)[band]


def reborn(
    key: PRNGKeyArray,
    points: Points,
    dead: Bool[Array, " n"],
    draws: Float[Array, "m dim"],
    bandwidth: Float[Array, ""],
) -> Points:
    """The points, of which the dead are at draws where points are too few.

    Args:
        key: which draws are chosen.
        points: centred near 0.
        dead: the points that are replaced.
        draws: of the target, as they come from the memory; the first are the places to choose from.
        bandwidth: h.
    """
    places = draws[:_PLACES]
    living = jnp.where(dead, 0.0, 1.0 / len(points))
    evenly = jnp.full(len(draws), 1.0 / len(draws))
    here = kernel_product(places, points, bandwidth, living[:, None])[:, 0]
    wanted = kernel_product(places, draws, bandwidth, evenly[:, None])[:, 0]
    lack = jnp.maximum(1.0 - here / wanted, 1e-6)
    return jnp.where(dead[:, None], places[by_weight(key, lack, len(points))], points)
