"""Mixtures of Gaussians.

    p(x) = Σₖ πₖ N(x; μₖ, Σₖ)

    mean  μ = Σₖ πₖ μₖ,   variance  Σₖ πₖ (diag Σₖ + (μₖ − μ)²)

A point belongs to the component of greatest responsibility πₖ N(x; μₖ, Σₖ)/p(x). The regions of
modes well apart weigh πₖ, and `component_weights` says so. The share of draws that fall into the
region of another component is at most (Bhattacharyya)

    Σ_{j<k} 2 √(πⱼ πₖ) · (|Σⱼ| |Σₖ|)^¼ |Σ̄|^(−½) exp(−⅛ (μⱼ − μₖ)ᵀ Σ̄⁻¹ (μⱼ − μₖ)),  Σ̄ = (Σⱼ + Σₖ)/2

and where that bound is above 10⁻³ the weights are not known: None.

Mog2 and Mog6 are those of Song, Zhao and Ermon, "A-NICE-MC", 2017. The paper this package
implements describes Mog4 (two-dimensional, distant modes, varied variances) and Mog10
(five-dimensional, ten modes close together) but prints no parameters: those below are ours.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc import checks
from salmc.target import AbstractTarget, Point, Points, Scalar
from salmc.targets.gaussian import cholesky

_LARGEST_OVERLAP = 1e-3


class GaussianMixture(AbstractTarget):
    """Σₖ πₖ N(μₖ, Σₖ), normalised.

    Args:
        means: array (modes, dim).
        covariances: array (modes,) of variances for round modes, (modes, dim) of variances along
            the axes, or (modes, dim, dim) of full covariances.
        weights: array (modes,) that sums to 1; equal weights if left out.
        name: what tables and folders call it.
    """

    means: Float[Array, "modes dim"]
    weights: Float[Array, " modes"]
    factors: Float[Array, "modes dim dim"]
    whitenings: Float[Array, "modes dim dim"]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)
    modes_are_apart: bool = eqx.field(static=True)

    can_sample = True

    def __init__(self, means: Any, covariances: Any, weights: Any = None, *, name: str = "mixture"):
        centres = np.asarray(checks.real("means", means), dtype=float)
        if centres.ndim != 2:
            checks.fail("means", "an array of shape (modes, dim)", f"shape {centres.shape}")
        modes, dim = centres.shape
        shares = _weights(weights, modes)
        full = _full_covariances(covariances, modes, dim)
        factors = np.stack([cholesky("covariances", matrix, dim) for matrix in full])
        self.means = jnp.asarray(centres)
        self.weights = jnp.asarray(shares)
        self.factors = jnp.asarray(factors)
        self.whitenings = jnp.asarray(np.linalg.inv(factors))
        self.dim = dim
        self.name = name
        self.modes_are_apart = _overlap(shares, centres, full) <= _LARGEST_OVERLAP

    def log_density(self, x: Point) -> Scalar:
        return jax.nn.logsumexp(self._log_joint(x))

    def _log_joint(self, x: Point) -> Float[Array, " modes"]:
        """log πₖ N(x; μₖ, Σₖ) for each k."""
        z = jnp.einsum("kij,kj->ki", self.whitenings, x - self.means)
        log_determinants = jnp.sum(jnp.log(jnp.diagonal(self.whitenings, axis1=1, axis2=2)), axis=1)
        log_normal = -0.5 * jnp.sum(z**2, axis=1) + log_determinants
        return jnp.log(self.weights) + log_normal - self.dim / 2 * math.log(2 * math.pi)

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        mode_key, noise_key = jax.random.split(key)
        mode = jax.random.categorical(mode_key, jnp.log(self.weights), shape=(n,))
        noise = jax.random.normal(noise_key, (n, self.dim))
        return self.means[mode] + jnp.einsum("nij,nj->ni", self.factors[mode], noise)

    @property
    def mean(self) -> Point:
        return self.weights @ self.means

    @property
    def std(self) -> Point:
        within = jnp.sum(self.factors**2, axis=2)
        return jnp.sqrt(self.weights @ (within + (self.means - self.mean) ** 2))

    @property
    def component_weights(self) -> Float[Array, " modes"] | None:
        return self.weights if self.modes_are_apart else None

    def component(self, points: Points) -> Int[Array, " n"]:
        return jnp.argmax(jax.vmap(self._log_joint)(points), axis=1)


def Mog2() -> GaussianMixture:  # noqa: N802, named as the target it makes
    """Two modes: ½ Σ N(±(5, 0), 0.25 I)."""
    return GaussianMixture([[5.0, 0.0], [-5.0, 0.0]], [0.25, 0.25], name="mog2")


def Mog6() -> GaussianMixture:  # noqa: N802, named as the target it makes
    """Six modes on a circle: ⅙ Σₖ N(5 (cos kπ/3, sin kπ/3), 0.25 I)."""
    angles = np.arange(6) * np.pi / 3
    means = 5.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return GaussianMixture(means, np.full(6, 0.25), name="mog6")


def Mog4() -> GaussianMixture:  # noqa: N802, named as the target it makes
    """Four modes of equal weight, more than five units apart, of sd 0.3, 0.5, 0.7 and 1.

    All lie where particles started from N(0, 2.5 I) rarely are, in no symmetric place, and the
    same weight sits in peaks whose heights differ by a factor of eleven.
    """
    means = [[-3.0, -3.5], [-3.5, 3.0], [4.0, 2.5], [2.5, -4.0]]
    return GaussianMixture(means, [0.09, 0.25, 0.49, 1.0], name="mog4")


def Mog10() -> GaussianMixture:  # noqa: N802, named as the target it makes
    """Ten overlapping modes of equal weight in five dimensions, of sd 0.5 to 0.8."""
    means = [
        [1.7, -1.3, 0.5, -0.7, -0.6],
        [-0.3, -1.6, -0.3, -1.1, 1.3],
        [0.3, -0.5, -0.4, -0.9, -1.4],
        [-0.5, 0.6, -0.3, 1.2, -0.3],
        [0.0, 1.4, 0.7, -0.7, -0.2],
        [0.7, 1.5, -0.4, -0.3, 1.3],
        [-1.2, -0.4, 1.1, 0.8, 0.1],
        [0.9, -1.2, 1.3, 0.6, -0.8],
        [0.4, 0.9, -1.6, -0.4, 0.0],
        [-0.9, 0.8, 1.0, 0.3, 1.4],
    ]
    deviations = [0.5, 0.6, 0.7, 0.8, 0.5, 0.6, 0.7, 0.8, 0.6, 0.7]
    return GaussianMixture(means, np.square(deviations), name="mog10")


def _weights(weights: Any, modes: int) -> np.ndarray:
    if weights is None:
        return np.full(modes, 1 / modes)
    shares = np.asarray(checks.real("weights", weights, above=0.0), dtype=float)
    if shares.shape != (modes,) or abs(shares.sum() - 1) > 1e-5:
        checks.fail("weights", f"{modes} positive numbers that sum to 1", weights)
    return shares / shares.sum()


def _full_covariances(covariances: Any, modes: int, dim: int) -> np.ndarray:
    given = np.asarray(checks.real("covariances", covariances), dtype=float)
    if given.shape == (modes,):
        return given[:, None, None] * np.eye(dim)
    if given.shape == (modes, dim):
        return given[:, :, None] * np.eye(dim)
    if given.shape != (modes, dim, dim):
        shapes = f"({modes},), ({modes}, {dim}) or ({modes}, {dim}, {dim})"
        checks.fail("covariances", f"an array of shape {shapes}", f"shape {given.shape}")
    return given


def _overlap(weights: np.ndarray, means: np.ndarray, covariances: np.ndarray) -> float:
    """The bound of the module's text on draws that fall into another component's region."""
    log_determinants = np.linalg.slogdet(covariances).logabsdet
    bound = 0.0
    for k in range(len(weights)):
        for j in range(k):
            average = (covariances[j] + covariances[k]) / 2
            apart = means[j] - means[k]
            exponent = (
                (log_determinants[j] + log_determinants[k]) / 4
                - np.linalg.slogdet(average).logabsdet / 2
                - apart @ np.linalg.solve(average, apart) / 8
            )
            bound += 2 * np.sqrt(weights[j] * weights[k]) * np.exp(exponent)
    return float(bound)
