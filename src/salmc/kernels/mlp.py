"""The MLP kernel: the paper's implicit conditional generator.

Sampling is eq. 15 of the paper, forward passes alone:

    x̃_{t+1} = G(x̃_t, ξ),   ξ ~ N(0, σ² I)
    G(x, ξ) = shift + M [A ξ + MLP(x, ξ)]

The noise has some dimensions more than x, so that one point can lead to any of several modes. A
starts as (I 0) / σ and the network near zero: the untrained kernel draws nearly from N(0, I),
which in whitened coordinates is the Gaussian with the pool's mean and covariance. The affine map
(M, shift) is the identity until a trained kernel is calibrated.

The proposal density is not known: a Metropolis step with this kernel is not exact.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractKernel, Calibration, Noise, Proposal
from salmc.kernels.layers import Network, claim_weights, network, numpy_generator
from salmc.target import Point, Points

_LAST_GAIN = 0.1
"""Of the network's last layer: small enough to start near N(0, I), and not zero, which would stop
the gradients of all layers before it."""


class MLPKernel(AbstractKernel):
    """Proposals x' = G(x, ξ) from a fully connected network.

    Args:
        key: for the initial weights; not inside `jit`.
        dim: number of coordinates.
        width, depth: of the hidden layers.
        extra_noise: dimensions of the noise beyond `dim`.
        noise_scale: σ. The paper has 5 for its synthetic targets and 1 for logistic regression, in
            the target's own coordinates; in whitened ones, 1.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from salmc.kernels import MLPKernel
        >>> kernel = MLPKernel(jax.random.key(0), dim=2)
        >>> kernel.generate(jnp.zeros((5, 2)), jnp.zeros((5, kernel.noise_dim))).shape
        (5, 2)
    """

    network: Network
    noise_matrix: Float[Array, "dim noise_dim"]
    """A."""
    calibration_matrix: Float[Array, "dim dim"]
    """M. Set from moments after training; no gradient reaches it."""
    calibration_shift: Point
    dim: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    extra_noise: int = eqx.field(static=True)
    noise_scale: float = eqx.field(static=True)

    name = "mlp"
    explanation = "the paper's generator: forward passes without a density, so never exact"
    calibrated = True

    def __init__(
        self,
        key: PRNGKeyArray,
        dim: int,
        *,
        width: int = 128,
        depth: int = 3,
        extra_noise: int = 6,
        noise_scale: float = 1.0,
    ):
        self.dim = checks.integer("dim", dim, 1)
        self.width = checks.integer("width", width, 1)
        self.depth = checks.integer("depth", depth, 1)
        self.extra_noise = checks.integer("extra_noise", extra_noise, 0)
        self.noise_scale = float(checks.real("noise_scale", noise_scale, above=0.0))
        self.network = network(
            numpy_generator(key),
            [dim + self.noise_dim, *[width] * depth, dim],
            jax.nn.silu,
            last_gain=_LAST_GAIN,
        )
        claim_weights(dim, self.noise_dim)
        claim_weights(dim, dim)
        noise_matrix = np.eye(dim, self.noise_dim) / self.noise_scale
        self.noise_matrix = jnp.asarray(noise_matrix, dtype=float)
        self.calibration_matrix = jnp.asarray(np.eye(dim), dtype=float)
        self.calibration_shift = jnp.asarray(np.zeros(dim), dtype=float)

    @property
    def noise_dim(self) -> int:
        """Dimensions of ξ."""
        return self.dim + self.extra_noise

    def description(self) -> dict[str, Any]:
        return {
            "dim": self.dim,
            "width": self.width,
            "depth": self.depth,
            "extra_noise": self.extra_noise,
            "noise_scale": self.noise_scale,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> "MLPKernel":
        return cls(jax.random.key(0), **description)

    def generate(
        self, points: Float[Array, "*n dim"], noise: Float[Array, "*n noise_dim"]
    ) -> Float[Array, "*n dim"]:
        """G(x, ξ), for one pair or many; the paper also samples with ξ = 0."""
        inputs = jnp.concatenate([points, noise], axis=-1).reshape(-1, self.dim + self.noise_dim).T
        raw = self.noise_matrix @ inputs[self.dim :] + self.network(inputs)
        matrix, shift = jax.lax.stop_gradient((self.calibration_matrix, self.calibration_shift))
        return (shift + (matrix @ raw).T).reshape(points.shape)

    def propose(self, points: Points, noise: Noise) -> Proposal:
        return Proposal(self.generate(points, self.noise_scale * noise), None)

    @property
    def calibration(self) -> Calibration:
        return self.calibration_matrix, self.calibration_shift

    def with_calibration(self, calibration: Calibration) -> "MLPKernel":
        return eqx.tree_at(
            lambda kernel: (kernel.calibration_matrix, kernel.calibration_shift), self, calibration
        )

    def forward_passes(
        self, noise: Float[Array, "steps n noise_dim"]
    ) -> tuple[Any, Callable[[Any, Points], Points]]:
        # All products with ξ are one large product, and M is multiplied into the matrices before
        # it: what is left for a step are the network's own products with x. Points are rows here.
        matrix, activation = self.calibration_matrix, self.network.activation
        first, *hidden, last = [weight.T for weight in self.network.weights]
        first_bias, *biases, last_bias = [bias[:, 0] for bias in self.network.biases]
        from_point, from_noise = first[: self.dim], first[self.dim :]
        last = last @ matrix.T
        inputs = (
            self.noise_scale
            * noise
            @ jnp.concatenate([from_noise, self.noise_matrix.T @ matrix.T], axis=1)
        )
        inputs += jnp.concatenate([first_bias, matrix @ last_bias + self.calibration_shift])

        def step(ahead: Float[Array, "n features"], points: Points) -> Points:
            values = activation(points @ from_point + ahead[:, : self.width])
            for weight, bias in zip(hidden, biases, strict=True):
                values = activation(values @ weight + bias)
            return values @ last + ahead[:, self.width :]

        return inputs, step
