"""Symmetries: maps under which a density is the same, as moves of chains between equal modes.

Labels of components that may be exchanged, hidden units of a network in any order, factors whose
sign nobody knows: a posterior of K such things has K! or 2^K modes of one shape, and chains in one
of them never see the others. But a map g that takes one into the other keeps volumes, and

    x' = g x,    g drawn from a set that holds each g⁻¹ as well,   taken with min{1, p(x') / p(x)}

leaves p invariant, whatever p is; where p is the same under g, every such move is taken. Signed
permutations are affine in white coordinates, and so they are kept.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.kernels.layers import Whitening
from salmc.target import Points


class Symmetries(eqx.Module):
    """Some maps u' = u M_k + b_k of white points, each with its inverse among them.

    Attributes:
        matrices: M of each.
        offsets: b of each.
    """

    matrices: Float[Array, "k dim dim"]
    offsets: Float[Array, "k dim"]

    @classmethod
    def of(cls, maps: Float[np.ndarray, "k dim dim"], whitening: Whitening) -> "Symmetries":
        """Of linear maps x' = x G_k in coordinates that are not white, and of their inverses."""
        both = np.concatenate([maps, np.linalg.inv(maps)])
        inward = np.asarray(whitening.forward_matrix, np.float64)
        outward = np.asarray(whitening.inverse_matrix, np.float64)
        mean = np.asarray(whitening.mean, np.float64)
        matrices, offsets = outward @ both @ inward, (mean @ both - mean) @ inward
        return cls(jnp.asarray(matrices, dtype=float), jnp.asarray(offsets, dtype=float))

    def __call__(self, points: Points, share: Float[Array, " n"]) -> Points:
        """Each point's image under one of the maps, which a uniform number chooses."""
        count = len(self.matrices)
        which = jnp.minimum((share * count).astype(int), count - 1)
        # Every map of every point: a matrix for each point would be much more to fetch.
        all_images = jnp.einsum("nd,kde->nke", points, self.matrices) + self.offsets
        return jnp.take_along_axis(all_images, which[:, None, None], axis=1)[:, 0]
