"""The critic D: tells pool particles from the kernel's outputs.

A fully connected network of whitened points; D(x) is a real number, larger where the critic takes
a point for real. Any module that maps (n, dim) to (n,) can take its place.
"""

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.kernels.layers import Network, network, numpy_generator
from salmc.target import Points


class Critic(eqx.Module):
    """A network with SiLU layers.

    Args:
        key: of the first weights.
        dim: number of coordinates.
        width, depth: of the hidden layers.
    """

    network: Network

    def __init__(self, key: PRNGKeyArray, dim: int, *, width: int = 128, depth: int = 3):
        for name, value in (("dim", dim), ("width", width), ("depth", depth)):
            checks.integer(name, value, 1)
        sizes = [dim, *[width] * depth, 1]
        self.network = network(numpy_generator(key), sizes, jax.nn.silu, last_gain=1.0)

    def __call__(self, points: Points) -> Float[Array, " n"]:
        """D at n points."""
        return self.network(points.T)[0]
