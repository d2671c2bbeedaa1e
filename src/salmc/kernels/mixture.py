"""The mixture kernel: independent proposals from a few heavy-tailed Gaussians, exact and quick.

    q(x') = Σ_k w_k Σ_j s_j f_j(|L_k⁻¹(x' − m_k)|²) / |L_k|

with radial laws f_j that all components share: a Gaussian, a wider one, and Student's t with five
degrees of freedom and with one. A draw picks a component and a law, and is m_k + L_k z · r with
z ~ N(0, I) and r = 1, a width, or √(ν / χ²_ν). Where a few Gaussians describe the target it is the
first answer, with nothing to train (`answers.mixture.adaptation`); where they do not, the flow is
the better kernel.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.kernels.base import AbstractTractableKernel, Noise, Values
from salmc.kernels.layers import numpy_generator
from salmc.metropolis import choice
from salmc.programs import on_device
from salmc.target import Points

DEGREES = (math.inf, math.inf, 5.0, 1.0)
"""Of freedom, of each radial law."""

LEAST_SHARES = (0.0, 0.08, 0.03, 0.01)
"""Of the draws that come from each law, at least: tails that a proposal must not lack, or chains
stay for long where it does."""

_CHI = 5
"""Normal numbers for χ²; a law of fewer degrees uses the first of them."""

_PICKS = 2
"""Normal numbers that pick component and law."""


def widths(dim: int) -> tuple[float, ...]:
    """Of each radial law. In many dimensions a Gaussian that is much wider is nowhere near."""
    return (1.0, 1.0 + 1.5 / math.sqrt(dim), 1.0, 1.0)


def gaussian_shares() -> Float[np.ndarray, " laws"]:
    """As little of the wider laws as every mixture has."""
    shares = np.array(LEAST_SHARES)
    shares[0] = 1.0 - np.sum(shares)
    return shares


class MixtureKernel(AbstractTractableKernel):
    """Proposals from a mixture that all steps share.

    Args:
        key: of the first means; not inside `jit`.
        dim: number of coordinates.
        components: how many.
    """

    logits: Float[Array, " k"]
    means: Float[Array, "k dim"]
    factors: Float[Array, "k dim dim"]
    """L of C = L Lᵀ; what is above the diagonal is not looked at."""
    laws: Float[Array, " laws"]
    """Logits of the shares of the radial laws."""
    inverses: Float[Array, "k dim dim"] | None
    """L⁻¹, of a kernel that is `prepared`."""
    dim: int = eqx.field(static=True)
    components: int = eqx.field(static=True)

    name = "mixture"
    explanation = "heavy-tailed Gaussians, fitted in seconds: exact under Metropolis-Hastings"

    def __init__(self, key: PRNGKeyArray, dim: int, *, components: int = 8):
        self.dim = checks.integer("dim", dim, 1)
        self.components = checks.integer("components", components, 1)
        generator = numpy_generator(key)
        spread = 0.5 * generator.standard_normal((components, dim))
        self.logits = jnp.zeros(components)
        self.means = on_device(spread if components > 1 else 0.0 * spread)
        self.factors = on_device(np.tile(np.eye(dim), (components, 1, 1)))
        self.laws = on_device(np.log(gaussian_shares()))
        self.inverses = None

    @classmethod
    def of(
        cls, weights: np.ndarray, means: np.ndarray, factors: np.ndarray, shares: np.ndarray
    ) -> "MixtureKernel":
        """A kernel of given parts; weights and shares are positive."""
        kernel = cls.from_description({"dim": means.shape[1], "components": len(weights)})
        given = (np.log(weights), means, factors, np.log(shares))
        return eqx.tree_at(
            lambda kernel: (kernel.logits, kernel.means, kernel.factors, kernel.laws),
            kernel,
            tuple(on_device(part) for part in given),
        )

    @property
    def noise_dim(self) -> int:
        return self.dim + _PICKS + _CHI

    @property
    def independent(self) -> bool:
        return True

    def prepared(self) -> "MixtureKernel":
        found = _lower_inverses(self.factors)
        return eqx.tree_at(lambda k: k.inverses, self, found, is_leaf=lambda leaf: leaf is None)

    def propose_with_density(self, points: Points, noise: Noise) -> tuple[Points, Values]:
        del points
        which, law = (
            choice(logits, noise[:, i]) for i, logits in enumerate((self.logits, self.laws))
        )
        squares = jnp.cumsum(noise[:, _PICKS : _PICKS + _CHI] ** 2, axis=1)
        stretch = jnp.stack(
            [
                jnp.full(len(noise), width)
                if math.isinf(degrees)
                else width * jnp.sqrt(degrees / squares[:, int(degrees) - 1])
                for degrees, width in zip(DEGREES, widths(self.dim), strict=True)
            ],
            axis=1,
        )
        stretch = jnp.take_along_axis(stretch, law[:, None], axis=1)
        z = noise[:, _PICKS + _CHI :] * stretch
        # A matrix for each component and not for each point.
        each = self.means[:, None] + jnp.einsum("kij,nj->kni", jnp.tril(self.factors), z)
        new = jnp.take_along_axis(each, which[None, :, None], axis=0)[0]
        return new, self.log_densities(new, new)

    def log_densities(self, new: Points, old: Points) -> Values:
        del old
        # By an inverse, once for all points: a triangular solve is a call into LAPACK, which keeps
        # programs from running side by side.
        inverses = _lower_inverses(self.factors) if self.inverses is None else self.inverses
        z = jnp.einsum("kij,knj->kni", inverses, new[None] - self.means[:, None])
        squares = jnp.sum(z * z, axis=2)
        diagonal = jnp.diagonal(self.factors, axis1=1, axis2=2)
        log_volumes = jnp.sum(jnp.log(jnp.abs(diagonal)), axis=1)
        laws = jnp.stack(
            [
                _log_radial(squares / width**2, self.dim, degrees) - self.dim * math.log(width)
                for degrees, width in zip(DEGREES, widths(self.dim), strict=True)
            ]
        )
        laws = laws + jax.nn.log_softmax(self.laws)[:, None, None]
        parts = jax.nn.logsumexp(laws, axis=0) - log_volumes[:, None]
        return jax.nn.logsumexp(parts + jax.nn.log_softmax(self.logits)[:, None], axis=0)


def _log_radial(squares: Array, dim: int, degrees: float) -> Array:
    """log density of a radial law of unit scale at squared radii."""
    if math.isinf(degrees):
        return -0.5 * squares - 0.5 * dim * math.log(2.0 * math.pi)
    constant = math.lgamma(0.5 * (degrees + dim)) - math.lgamma(0.5 * degrees)
    constant -= 0.5 * dim * math.log(degrees * math.pi)
    return constant - 0.5 * (degrees + dim) * jnp.log1p(squares / degrees)


def _lower_inverses(factors: Float[Array, "k dim dim"]) -> Float[Array, "k dim dim"]:
    """L⁻¹ of each triangular L, row by row: L⁻¹_i = (e_i − Σ_{j<i} L_ij L⁻¹_j) / L_ii."""
    dim = factors.shape[-1]

    def row(i: Array, inverse: Array) -> Array:
        before = jnp.where(jnp.arange(dim) < i, factors[:, i], 0.0)
        rest = jnp.eye(dim)[i] - jnp.einsum("kj,kjl->kl", before, inverse)
        return inverse.at[:, i].set(rest / factors[:, i, i][:, None])

    return jax.lax.fori_loop(0, dim, row, jnp.zeros_like(factors))
