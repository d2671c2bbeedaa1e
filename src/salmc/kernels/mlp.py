"""The MLP kernel: the paper's implicit conditional generator.

Sampling is eq. 15 of the paper, forward passes alone:

    x̃_{t+1} = G(x̃_t, ξ),   ξ ~ N(0, σ² I)
    G(x, ξ) = shift + M (m_k + L_k [A ξ + MLP(x, ξ, k)])

The noise has some dimensions more than x, so that one point can lead to any of several places, and
a number that picks a component k (`picked`): one for each mode, so that none is reached through
what lies between. A starts as (I 0) / σ and the network near zero: the untrained kernel draws
nearly from the Gaussians that were fitted to the pool, or without components from N(0, I), which in
whitened coordinates has the pool's mean and covariance. The affine map (M, shift) is the identity
until a trained kernel is calibrated.

The proposal density is not known: a Metropolis step with this kernel is not exact.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractKernel, Calibration, Noise, Proposal
from salmc.kernels.layers import Network, claim_weights, network, numpy_generator
from salmc.kernels.picked import PickedNoise
from salmc.programs import on_device
from salmc.target import Point, Points

_LAST_GAIN, _LAST_GAIN_PLACED = 0.1, 0.001
"""Of the network's last layer: small enough to start near N(0, I), or where the pool has placed the
components, and not zero, which would stop the gradients of all layers before it."""


class MLPKernel(AbstractKernel):
    """Proposals x' = G(x, ξ) from a fully connected network.

    Args:
        key: for the initial weights; not inside `jit`.
        dim: number of coordinates.
        width, depth: of the hidden layers.
        extra_noise: dimensions of the noise beyond `dim`.
        noise_scale: σ. The paper has 5 for its synthetic targets and 1 for logistic regression, in
            the target's own coordinates; in whitened ones, 1.
        components: that the noise may have; 0 for one connected cloud.

    Example:
        >>> import equinox as eqx, jax, jax.numpy as jnp
        >>> from salmc.kernels import MLPKernel
        >>> kernel = MLPKernel(jax.random.key(0), dim=2)
        >>> generate = eqx.filter_jit(kernel.generate)
        >>> generate(jnp.zeros((5, 2)), jnp.zeros((5, kernel.noise_dim))).shape
        (5, 2)
    """

    network: Network
    noise_matrix: Float[Array, "dim noise_dim"]
    """A."""
    calibration_matrix: Float[Array, "dim dim"]
    """M. Set from moments after training; no gradient reaches it."""
    calibration_shift: Point
    picked: PickedNoise | None
    dim: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    extra_noise: int = eqx.field(static=True)
    noise_scale: float = eqx.field(static=True)
    components: int = eqx.field(static=True)

    name = "mlp"
    explanation = "the paper's generator: forward passes without a density, so never exact"
    calibrated = True
    placed = True

    def __init__(
        self,
        key: PRNGKeyArray,
        dim: int,
        *,
        width: int = 128,
        depth: int = 3,
        extra_noise: int = 6,
        noise_scale: float = 1.0,
        components: int = 64,
    ):
        self.dim = checks.integer("dim", dim, 1)
        self.width = checks.integer("width", width, 1)
        self.depth = checks.integer("depth", depth, 1)
        self.extra_noise = checks.integer("extra_noise", extra_noise, 0)
        self.noise_scale = float(checks.real("noise_scale", noise_scale, above=0.0))
        self.components = checks.integer("components", components, 0)
        self.network = network(
            numpy_generator(key),
            [dim + self.free_dim + components, *[width] * depth, dim],
            jax.nn.silu,
            last_gain=_LAST_GAIN_PLACED if components else _LAST_GAIN,
        )
        claim_weights(dim, self.free_dim)
        claim_weights(dim, dim)
        claim_weights(components, dim + 1, dim)
        noise_matrix = np.eye(dim, self.free_dim) / self.noise_scale
        self.noise_matrix = on_device(noise_matrix)
        self.calibration_matrix = on_device(np.eye(dim))
        self.calibration_shift = on_device(np.zeros(dim))
        self.picked = PickedNoise.single(components, dim) if components else None

    @property
    def noise_dim(self) -> int:
        """Dimensions of ξ."""
        return self.free_dim + (1 if self.components else 0)

    @property
    def free_dim(self) -> int:
        """Dimensions of ξ without the number that picks a component."""
        return self.dim + self.extra_noise

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> "MLPKernel":
        # Files that were written before there were components do not name their number.
        return super().from_description({"components": 0, **description})

    def generate(
        self, points: Float[Array, "*n dim"], noise: Float[Array, "*n noise_dim"]
    ) -> Float[Array, "*n dim"]:
        """G(x, ξ), for one pair or many; the paper also samples with ξ = 0."""
        shape = points.shape
        points, noise = points.reshape(-1, self.dim), noise.reshape(-1, self.noise_dim)
        which = jnp.zeros(len(points), dtype=int)
        if self.picked is not None:
            which = jax.lax.stop_gradient(self.picked).pick(noise[:, -1] / self.noise_scale)
        return self._generate_of(points, noise[:, : self.free_dim], which).reshape(shape)

    def _generate_of(
        self, points: Points, free: Float[Array, "n free"], which: Int[Array, " n"]
    ) -> Points:
        """G(x, ξ) with given components, of which `free` does not tell."""
        inputs, picked = [points, free], jax.lax.stop_gradient(self.picked)
        if picked is not None:
            inputs.append(jax.nn.one_hot(which, self.components))
        raw = (self.noise_matrix @ free.T + self.network(jnp.concatenate(inputs, axis=1).T)).T
        if picked is not None:
            raw = picked.place(which, raw)
        matrix, shift = jax.lax.stop_gradient((self.calibration_matrix, self.calibration_shift))
        return shift + raw @ matrix.T

    def propose(self, points: Points, noise: Noise) -> Proposal:
        return Proposal(self.generate(points, self.noise_scale * noise), None)

    @property
    def calibration(self) -> Calibration:
        return self.calibration_matrix, self.calibration_shift

    def with_calibration(self, calibration: Calibration) -> "MLPKernel":
        return eqx.tree_at(
            lambda kernel: (kernel.calibration_matrix, kernel.calibration_shift), self, calibration
        )

    @property
    def places(self) -> int:
        return self.components

    @property
    def connected(self) -> bool:
        return self.picked is None or self.picked.used == 1

    def placed_at(self, weights: np.ndarray, means: np.ndarray, factors: np.ndarray) -> "MLPKernel":
        picked = PickedNoise.of(self.components, weights, means, factors)
        unmoved = on_device(np.eye(self.dim)), on_device(np.zeros(self.dim))
        return eqx.tree_at(lambda kernel: kernel.picked, self, picked).with_calibration(unmoved)

    @property
    def placement(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.picked is None:
            return super().placement
        weights, means, factors = self.picked.in_use()
        matrix, shift = (np.asarray(part, dtype=np.float64) for part in self.calibration)
        return weights, shift + means @ matrix.T, matrix @ factors

    def pass_of(self, point: Point, numbers: Float[Array, " free"], which: Array) -> Point:
        # Rows of an orthogonal matrix, of which the first span what A sees of the noise.
        turn = jnp.linalg.qr(self.noise_matrix.T, mode="complete")[0].T
        return self._generate_of(point[None], self.noise_scale * numbers[None] @ turn, which[None])[
            0
        ]

    def forward_passes(
        self, noise: Float[Array, "steps n noise_dim"]
    ) -> tuple[Any, Callable[[Any, Points], Points]]:
        # All products with ξ are one large product, and M is multiplied into the matrices before
        # it: what is left for a step are the network's own products with x. Points are rows here.
        matrix, shift = self.calibration
        activation = self.network.activation
        first, *hidden, last = [weight.T for weight in self.network.weights]
        first_bias, *biases, last_bias = [bias[:, 0] for bias in self.network.biases]
        from_point, from_noise, from_pick = jnp.split(first, [self.dim, self.dim + self.free_dim])
        flat = noise.reshape(-1, self.noise_dim)
        free = self.noise_scale * flat[:, : self.free_dim]
        wide = free @ jnp.concatenate([from_noise, self.noise_matrix.T], axis=1)
        wide += jnp.concatenate([first_bias, last_bias])
        inputs = [wide[:, : self.width], wide[:, self.width :]]
        if self.picked is None:
            last, inputs[1] = last @ matrix.T, inputs[1] @ matrix.T + shift
        else:
            which = self.picked.pick(flat[:, -1])
            inputs[0] += from_pick[which]
            inputs += [which, (self.picked.means @ matrix.T + shift)[which]]
            factors = matrix @ jnp.tril(self.picked.factors)

        def step(ahead: list[Array], points: Points) -> Points:
            values = activation(points @ from_point + ahead[0])
            for weight, bias in zip(hidden, biases, strict=True):
                values = activation(values @ weight + bias)
            raw = values @ last + ahead[1]
            if self.picked is None:
                return raw
            # A sum of products and not a product of matrices, which is a call for each point.
            return ahead[3] + jnp.sum(factors[ahead[2]] * raw[:, None], axis=2)

        return [a.reshape(*noise.shape[:2], *a.shape[1:]) for a in inputs], step
