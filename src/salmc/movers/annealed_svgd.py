"""A-SVGD: annealed Stein variational gradient descent, with the gradient and without.

SVGD toward a density that turns from the start p_0 into the target p,

    p_ℓ ∝ p_0^{1−β_ℓ} p^{β_ℓ},    β_ℓ = min(1, ℓ/L),

where p_0 is the Gaussian fitted to the starting particles. Far modes are found while the barriers
between them are low. After L steps (`annealing_steps`) it is SVGD, eq. 2 of the paper.

The gradient-free form never differentiates p. It moves along the score of a surrogate ρ_ℓ, and
weights make up for the difference,

    x_i ← x_i + (ε/Σ_j ω_j) Σ_j ω_j [κ(x_i, x_j) ∇log ρ_ℓ(x_j) + ∇_{x_j} κ(x_i, x_j)],
    ω_j = ρ_ℓ(x_j)/p_ℓ(x_j),

whose expectation vanishes at p_ℓ for every ρ_ℓ. Here log ρ_ℓ is fitted to the values log p_ℓ(x_j):
a quadratic g in each coordinate by least squares, which calls back particles that have no
neighbours, and kernel regression of what it leaves,

    log ρ_ℓ(x) = g(x) + Σ_j κ*(x, x_j) [log p_ℓ(x_j) − g(x_j)] / Σ_j κ*(x, x_j).

Reference: Han and Liu, "Stein variational gradient descent without gradient", 2018, alg. 1 and 2.
The paper compares with it, and AG-SVGD (eq. 12) is the surrogate ρ = ν, the particles' density.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, setting
from salmc.movers.stein import kernel_product, stein_direction
from salmc.movers.svgd import SVGDState, bounded, default_bandwidth
from salmc.target import AbstractTarget, Points

_LARGEST_LOG_WEIGHT = 3.0
"""Log weights are cut this far from their median, so that no stray particle takes all the mass."""

_LEAST_CURVATURE = 0.01
"""The quadratic part of the surrogate is never wider than a Gaussian of 10 starting spreads, so
that isolated particles always come back."""


class AnnealedSVGDState(SVGDState):
    """As SVGD's, with the mean of the start."""

    location: Float[Array, " dim"]

    @property
    def since_start(self) -> Points:
        """In units of the start, whose Gaussian is then the standard one, with score −z."""
        return (self.particles - self.location) / self.scale


class AnnealedSVGDInfo(Info):
    """What one step tells."""

    inverse_temperature: Float[Array, ""]
    """β: 0 is the start, 1 the target."""


class AbstractAnnealedSVGD(AbstractMover):
    """What both forms share: the schedule and the step along a direction."""

    step_size: eqx.AbstractVar[Float[Array, ""]]
    annealing_steps: eqx.AbstractVar[Float[Array, ""]]

    @abc.abstractmethod
    def direction(
        self, key: PRNGKeyArray, state: AnnealedSVGDState, inverse_temperature: Float[Array, ""]
    ) -> Points:
        """Where the particles go, in units of `state.scale`."""

    def inverse_temperature(self, count: Float[Array, ""]) -> Float[Array, ""]:
        """β of the step after `count` steps: linear up to 1, and 1 from then on."""
        return jnp.minimum(1.0, (count + 1.0) / self.annealing_steps)

    def init(self, key: PRNGKeyArray, particles: Points) -> AnnealedSVGDState:
        del key
        location = jnp.mean(particles, axis=0)
        return AnnealedSVGDState.begin(
            particles, mean_square=jnp.zeros_like(location), location=location
        )

    def step(
        self, key: PRNGKeyArray, state: AnnealedSVGDState
    ) -> tuple[AnnealedSVGDState, AnnealedSVGDInfo]:
        beta = self.inverse_temperature(state.count)
        state, length = state.settled(self.direction(key, state, beta), self.step_size)
        return state, AnnealedSVGDInfo(length, beta)


class AnnealedSVGD(AbstractAnnealedSVGD):
    """Annealed SVGD with the gradient of the target.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: length of the first move, in units of the spread of the start; step t is
            shorter by √(t + 1).
        bandwidth: a factor on h = median²/log(M + 1).
        annealing_steps: L, the steps until β = 1; about half of all steps.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.3, above=0.0)
    bandwidth: Float[Array, ""] = setting("bandwidth", 1.0, above=0.0)
    annealing_steps: Float[Array, ""] = setting("annealing_steps", 500.0, at_least=1.0)

    name = "a-svgd"
    explanation = "svgd from a Gaussian to the target by way of tempered densities"
    requires_gradient = True
    kind = "particles"

    def direction(
        self, key: PRNGKeyArray, state: AnnealedSVGDState, inverse_temperature: Float[Array, ""]
    ) -> Points:
        gradients, standard = bounded(state.gradients(key, self.target)), state.since_start
        scores = inverse_temperature * gradients - (1.0 - inverse_temperature) * standard
        return stein_direction(standard, scores, self.bandwidth * default_bandwidth(standard))


class GradientFreeAnnealedSVGD(AbstractAnnealedSVGD):
    """Annealed SVGD from values of the log density alone.

    Minibatches are not used: noise in log p would come back multiplied in the weights.

    Args:
        target: what to sample from; it needs no gradient.
        step_size: length of the first move, in units of the spread of the start; step t is
            shorter by √(t + 1).
        bandwidth: a factor on h = median²/log(M + 1).
        surrogate_bandwidth: bandwidth of κ* as a factor on the same h.
        annealing_steps: L, the steps until β = 1; about half of all steps.
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.3, above=0.0)
    bandwidth: Float[Array, ""] = setting("bandwidth", 1.0, above=0.0)
    surrogate_bandwidth: Float[Array, ""] = setting("surrogate_bandwidth", 0.3, above=0.0)
    annealing_steps: Float[Array, ""] = setting("annealing_steps", 500.0, at_least=1.0)

    name = "gf-a-svgd"
    explanation = "a-svgd without gradients, by a fitted surrogate and weights"
    requires_gradient = False
    kind = "particles"

    def direction(
        self, key: PRNGKeyArray, state: AnnealedSVGDState, inverse_temperature: Float[Array, ""]
    ) -> Points:
        del key
        standard = state.since_start
        start = -0.5 * jnp.sum(standard**2, axis=1)
        values = finite_log_densities(self.target, state.particles)
        values = inverse_temperature * values + (1.0 - inverse_temperature) * start
        default = default_bandwidth(standard)
        fitted, scores = surrogate(standard, values, self.surrogate_bandwidth * default)
        log_weights = fitted - values
        log_weights = log_weights - jnp.median(log_weights)
        limited = jnp.clip(log_weights, -_LARGEST_LOG_WEIGHT, _LARGEST_LOG_WEIGHT)
        weights = jax.nn.softmax(limited)
        return stein_direction(standard, bounded(scores), self.bandwidth * default, weights)


def finite_log_densities(target: AbstractTarget, particles: Points) -> Float[Array, " n"]:
    """log p, with the lowest finite value of all particles where the density is zero."""
    values = target.log_densities(particles)
    finite = jnp.isfinite(values)
    lowest = jnp.min(jnp.where(finite, values, jnp.inf))
    return jnp.where(finite, values, jnp.where(jnp.isfinite(lowest), lowest, 0.0))


def surrogate(
    points: Points, values: Float[Array, " n"], bandwidth: Float[Array, ""]
) -> tuple[Float[Array, " n"], Points]:
    """log ρ and its gradient at each point: a quadratic, and kernel regression of the rest."""
    linear, curvature = quadratic_fit(points, values)
    quadratic = points @ linear + 0.5 * points**2 @ curvature
    rest, gradient = kernel_regression(points, values - quadratic, bandwidth)
    return quadratic + rest, linear + curvature * points + gradient


def quadratic_fit(
    points: Points, values: Float[Array, " n"]
) -> tuple[Float[Array, " dim"], Float[Array, " dim"]]:
    """Least squares of b·x + Σ_k c_k x_k²/2 + constant, with c below a small negative bound."""
    dim = points.shape[1]
    features = jnp.concatenate([points, 0.5 * points**2], axis=1)
    features = features - jnp.mean(features, axis=0)
    unit = jnp.maximum(jnp.std(features, axis=0), 1e-9)
    features = features / unit
    # Of correlations, so that it does not weigh more the narrower the cloud; it is needed where
    # there are fewer particles than features.
    ridge = 1e-4 * jnp.eye(2 * dim)
    moments = features.T @ features / len(points) + ridge
    covariances = features.T @ (values - jnp.mean(values)) / len(points)
    coefficients = jnp.linalg.solve(moments, covariances) / unit
    return coefficients[:dim], jnp.minimum(coefficients[dim:], -_LEAST_CURVATURE)


def kernel_regression(
    points: Points, values: Float[Array, " n"], bandwidth: Float[Array, ""]
) -> tuple[Float[Array, " n"], Points]:
    """m(x) = Σ_j κ_j f_j / Σ_j κ_j at each point, and its gradient.

    With κ = exp(−|x − x_j|²/h):  ∇m = (2/h) Σ_j κ_j (f_j − m) x_j / Σ_j κ_j.
    """
    dim = points.shape[1]
    # Centred values and points keep the small differences that make the gradient.
    centre = jnp.median(values)
    points = points - jnp.mean(points, axis=0)
    column = (values - centre)[:, None]
    ones = jnp.ones_like(column)
    stacked = jnp.concatenate([column * points, points, column, ones], axis=1)
    products = kernel_product(points, points, bandwidth, stacked)
    weighted, plain, total, mass = jnp.split(products, [dim, 2 * dim, 2 * dim + 1], axis=1)
    fitted = total / mass
    gradient = (2.0 / bandwidth) * (weighted - fitted * plain) / mass
    return fitted[:, 0] + centre, gradient
