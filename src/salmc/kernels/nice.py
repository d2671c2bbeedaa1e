"""The NICE kernel of A-NICE-MC: a volume-preserving network on (x, v), exact under Metropolis.

    v ~ N(0, I);  (x', v') = f(x, v) or f⁻¹(x, v) with probability ½ each

f is three additive couplings in the order v–x–v, each undone by subtracting what it added:

    f:    v₁ = v + a(x)    x' = x + b(v₁)    v' = v₁ + c(x')
    f⁻¹:  v₁ = v − c(x)    x' = x − b(v₁)    v' = v₁ − a(x')

|det ∂(x', v')/∂(x, v)| = 1, so that a step is exact with min{1, p(x') N(v') / (p(x) N(v))}: no
density of the proposal is needed, and none is known.

b is the same either way but for a sign. a and c lie side by side in one network: both couplings of
v cost one matrix product of twice the width for a whole batch, whatever the direction of its rows.

Reference: Song, Zhao and Ermon, "A-NICE-MC: adversarial training for MCMC", NeurIPS 2017.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractKernel, Noise, Proposal
from salmc.kernels.layers import Network, network, numpy_generator
from salmc.kernels.quarter_turn import linear
from salmc.target import Points

Velocities = Float[Array, "n velocity_dim"]

_FEW_DIMENSIONS = 4
"""Up to here v has as many coordinates as x and b one hidden layer; beyond, twice as many of
each, as in the authors' experiments with 2 and with 25 dimensions."""

_LAST_GAIN = 0.3
"""Of the networks' last layers: first moves of a fraction of a standard deviation."""

_BIAS_SCALE = 0.5
"""Of the hidden layers: without it all kinks of the first functions meet at the origin."""


_FIRST_AND_OTHER = np.array([[1.0, 0.0], [-1.0, 1.0]])
"""(f, 1) ↦ (f, 1 − f)."""


class NICEKernel(AbstractKernel):
    """Proposals x' from additive couplings of x with a random velocity.

    Args:
        key: for the initial weights; not inside `jit`.
        dim: number of coordinates.
        velocity_dim: coordinates of v; by default `dim`, or twice as many in many dimensions.
        width: of the hidden layers.
        depth: hidden layers of b; by default 1, or 2 in many dimensions. a and c have one.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from salmc.kernels import NICEKernel
        >>> kernel = NICEKernel(jax.random.key(0), dim=2)
        >>> x, v = jnp.ones((5, 2)), jnp.zeros((5, 2))
        >>> back = kernel.inverse(*kernel.forward(x, v))
        >>> bool(jnp.allclose(back[0], x, atol=1e-5))
        True
    """

    velocity_networks: Network
    """a and c, along a leading axis."""
    position_network: Network
    """b."""
    dim: int = eqx.field(static=True)
    velocity_dim: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)

    name = "nice"
    explanation = "volume-preserving couplings with a random velocity (A-NICE-MC): exact"
    exact = True
    volume_preserving = True
    training = "velocities"

    def __init__(
        self,
        key: PRNGKeyArray,
        dim: int,
        *,
        velocity_dim: int | None = None,
        width: int = 400,
        depth: int | None = None,
    ):
        self.dim = checks.integer("dim", dim, 1)
        factor = 1 if dim <= _FEW_DIMENSIONS else 2
        velocity_dim = factor * dim if velocity_dim is None else velocity_dim
        self.velocity_dim = checks.integer("velocity_dim", velocity_dim, 1)
        self.width = checks.integer("width", width, 1)
        self.depth = checks.integer("depth", factor if depth is None else depth, 1)
        generator = numpy_generator(key)
        self.velocity_networks = network(
            generator,
            [dim, width, self.velocity_dim],
            jax.nn.relu,
            last_gain=_LAST_GAIN,
            bias_scale=_BIAS_SCALE,
            stack=(2,),
        )
        self.position_network = network(
            generator,
            [self.velocity_dim, *[width] * self.depth, dim],
            jax.nn.relu,
            last_gain=_LAST_GAIN,
            bias_scale=_BIAS_SCALE,
        )

    def turned(self) -> "NICEKernel":
        if self.velocity_dim < self.dim or self.width < 2 * self.dim:
            return self
        turn, velocity_networks = np.eye(self.dim), self.velocity_networks
        for which in range(2):
            velocity_networks = linear(velocity_networks, -turn, which)
        networks = (velocity_networks, linear(self.position_network, turn))
        return eqx.tree_at(
            lambda kernel: (kernel.velocity_networks, kernel.position_network), self, networks
        )

    def forward(self, points: Points, velocities: Velocities) -> tuple[Points, Velocities]:
        """f(x, v) for n pairs."""
        x, v = points.T, velocities.T
        first, last = self._velocity_network(0), self._velocity_network(1)
        v = v + first(x)
        x = x + self.position_network(v)
        return x.T, (v + last(x)).T

    def inverse(self, points: Points, velocities: Velocities) -> tuple[Points, Velocities]:
        """f⁻¹(x, v) for n pairs."""
        x, v = points.T, velocities.T
        first, last = self._velocity_network(0), self._velocity_network(1)
        v = v - last(x)
        x = x - self.position_network(v)
        return x.T, (v - first(x)).T

    def transform(
        self, points: Points, velocities: Velocities, forwards: Bool[Array, " n"]
    ) -> tuple[Points, Velocities]:
        """f for the rows that go forwards, f⁻¹ for the others."""
        x, v = points.T, velocities.T
        sign = jnp.where(forwards, 1.0, -1.0)
        v = v + sign * self._velocity_shift(x, forwards)
        x = x + sign * self.position_network(v)
        return x.T, (v + sign * self._velocity_shift(x, ~forwards)).T

    @property
    def noise_dim(self) -> int:
        """v, and one number whose sign is the direction."""
        return self.velocity_dim + 1

    def propose(self, points: Points, noise: Noise) -> Proposal:
        before, forwards = noise[:, :-1], noise[:, -1] > 0.0
        new, after = self.transform(points, before, forwards)
        return Proposal(new, velocity_correction(before, after))

    def push(self, points: Points, noise: Noise) -> tuple[Points, Velocities]:
        """f(x, v) alone: the inverse of a map that keeps p(x) N(v) keeps it, too."""
        return self.forward(points, noise[:, :-1])

    def _velocity_network(self, which: int) -> Network:
        """a or c."""
        return jax.tree.map(lambda leaf: leaf[which], self.velocity_networks)

    def _velocity_shift(
        self, x: Float[Array, "dim n"], first: Bool[Array, " n"]
    ) -> Float[Array, "velocity_dim n"]:
        """a(x) where `first`, else c(x): the hidden layers of both, of which a row keeps one."""
        (into, out), (bias, last_bias) = (
            self.velocity_networks.weights,
            self.velocity_networks.biases,
        )
        hidden = into.reshape(-1, self.dim) @ x + bias.reshape(-1, 1)
        hidden = jax.nn.relu(hidden).reshape(2, self.width, -1)
        # As a product, of which XLA keeps the result: a mask made of comparisons would be worked
        # out again for each of the hidden numbers, which takes as long as all the rest.
        either = jnp.stack([first, jnp.ones_like(first)]).astype(x.dtype)
        chosen = jnp.asarray(_FIRST_AND_OTHER, x.dtype) @ either
        hidden = jnp.where(chosen[:, None] > 0.5, hidden, 0.0).reshape(2 * self.width, -1)
        joined = jnp.concatenate([out[0], out[1]], axis=1)
        return joined @ hidden + jnp.where(first, last_bias[0], last_bias[1])


def velocity_correction(before: Velocities, after: Velocities) -> Float[Array, " n"]:
    """log N(v') − log N(v)."""
    return 0.5 * jnp.sum(before**2 - after**2, axis=1)
