"""Birth and death: particles move between modes by dying in one and being born in another.

A kernel method moves particles only as far as its kernel reaches, so modes that are once apart
keep the share of particles they happened to get. Birth and death add the reaction part of the
Wasserstein–Fisher–Rao flow,

    ∂_t ν = … − ν (log(ν/p) − mean),

which needs log(ν/p) alone: where particles are too many for the density they die, where they are
too few they are born, at whatever distance. Here each step resamples the particles with weights
exp(−rate · log(ν/p)), keeps every survivor in its place, and puts each newborn near its parent.

Reference: Lu, Lu and Nolen, "Accelerating Langevin sampling with birth-death", 2019.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray


class Succession(NamedTuple):
    """Who follows whom: slot i is taken by `parent[i]`, anew where `born[i]`."""

    parent: Int[Array, " n"]
    born: Bool[Array, " n"]


def succession(key: PRNGKeyArray, log_weights: Float[Array, " n"]) -> Succession:
    """Systematic resampling in which the survivors stay where they are.

    Offspring counts differ from their expectation by less than one, so equal weights change
    nothing. There is no sort: newborns are matched to empty slots by cumulative counts.
    """
    count = len(log_weights)
    cumulative = jnp.cumsum(jax.nn.softmax(log_weights))
    marks = jnp.floor(count * cumulative / cumulative[-1] + jax.random.uniform(key)).astype(int)
    # The last mark is exactly `count` whatever was lost to rounding in the sum.
    marks = jnp.minimum(marks, count).at[-1].set(count)
    offspring = jnp.diff(marks, prepend=0)
    born = offspring == 0
    surplus = jnp.cumsum(jnp.maximum(offspring - 1, 0))
    rank = jnp.cumsum(born) - 1
    parent = jnp.searchsorted(surplus, rank, side="right").clip(0, count - 1)
    return Succession(jnp.where(born, parent, jnp.arange(count)), born)
