"""Eight schools: the small hierarchical model on which many samplers are tried, with its truth.

Effects y of coaching and their standard errors σ in eight schools (Rubin 1981):

    μ ~ N(0, 5²),   τ ~ half-Cauchy(5),   ηᵢ ~ N(0, 1),   θᵢ = μ + τ ηᵢ,   yᵢ ~ N(θᵢ, σᵢ²)

This is the non-centred form, x = (μ, log τ, η₁ … η₈), with the Jacobian of the logarithm:

    log p(x) = −μ²/50 + log τ − log(1 + τ²/25) − ½ Σ ηᵢ² − ½ Σ ((yᵢ − μ − τ ηᵢ)/σᵢ)² + const

Its exact draws need no Markov chain. Given τ all else is Gaussian; with cᵢ = 1/(σᵢ² + τ²),

    μ | τ, y ~ N(m, v),   1/v = 1/25 + Σ cᵢ,   m = v Σ cᵢ yᵢ
    ηᵢ | μ, τ, y ~ N(τ cᵢ (yᵢ − μ), σᵢ² cᵢ)
    log p(log τ | y) = log τ − log(1 + τ²/25) + ½ Σ log cᵢ − ½ Σ cᵢ yᵢ² + ½ log v + m²/(2v) + const

which leaves one dimension for a fine grid: draws of log τ by its inverted distribution function,
moments by quadrature. Reference: Gelman et al., "Bayesian Data Analysis", 3rd ed., section 5.5.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.target import AbstractTarget, Point, Points, Scalar

EFFECTS = (28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0)
STANDARD_ERRORS = (15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0)
PRIOR_SCALE = 5.0
"""Of μ and of τ alike."""

_GRID = np.linspace(-22.0, 10.0, 32_001)
"""log τ: the posterior has a share of less than 1e-9 beyond either end."""


class EightSchools(AbstractTarget):
    """The posterior of the eight schools, non-centred.

    Args:
        name: what tables and folders call it.
    """

    effects: Float[Array, " schools"]
    standard_errors: Float[Array, " schools"]
    log_tau_grid: Float[Array, " grid"]
    log_tau_distribution: Float[Array, " grid"]
    """P(log τ ≤ grid point | y)."""
    true_mean: Float[Array, " dim"]
    true_std: Float[Array, " dim"]
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True)

    can_sample = True

    def __init__(self, *, name: str = "eight-schools"):
        effects, errors = np.array(EFFECTS), np.array(STANDARD_ERRORS)
        truth = _truth(effects, errors)
        self.effects = jnp.asarray(effects)
        self.standard_errors = jnp.asarray(errors)
        self.log_tau_grid = jnp.asarray(_GRID)
        self.log_tau_distribution = jnp.asarray(truth.distribution)
        self.true_mean = jnp.asarray(truth.mean)
        self.true_std = jnp.asarray(truth.std)
        self.dim = len(effects) + 2
        self.name = name

    def log_density(self, x: Point) -> Scalar:
        mu, log_tau, eta = x[0], x[1], x[2:]
        residuals = (self.effects - mu - jnp.exp(log_tau) * eta) / self.standard_errors
        # log(1 + τ²/25) as a softplus: τ² may overflow where its logarithm does not.
        log_prior_of_tau = log_tau - jax.nn.softplus(2 * (log_tau - math.log(PRIOR_SCALE)))
        log_prior_of_mu = -0.5 * (mu / PRIOR_SCALE) ** 2
        normal = -0.5 * (jnp.sum(eta**2) + jnp.sum(residuals**2))
        return log_prior_of_mu + log_prior_of_tau + normal

    def sample(self, key: PRNGKeyArray, n: int) -> Points:
        tau_key, mu_key, eta_key = jax.random.split(key, 3)
        level = jax.random.uniform(tau_key, (n, 1))
        log_tau = jnp.interp(level, self.log_tau_distribution, self.log_tau_grid)
        tau = jnp.exp(log_tau)
        c = 1 / (self.standard_errors**2 + tau**2)
        v = 1 / (PRIOR_SCALE**-2 + jnp.sum(c, axis=1, keepdims=True))
        m = v * jnp.sum(c * self.effects, axis=1, keepdims=True)
        mu = m + jnp.sqrt(v) * jax.random.normal(mu_key, (n, 1))
        noise = jax.random.normal(eta_key, (n, self.dim - 2))
        eta = tau * c * (self.effects - mu) + self.standard_errors * jnp.sqrt(c) * noise
        return jnp.concatenate([mu, log_tau, eta], axis=1)

    @property
    def mean(self) -> Point:
        return self.true_mean

    @property
    def std(self) -> Point:
        return self.true_std

    @property
    def names(self) -> tuple[str, ...]:
        return ("mu", "log_tau", *(f"eta[{i}]" for i in range(self.dim - 2)))

    def constrain(self, x: Point) -> dict[str, Float[Array, "..."]]:
        mu, tau = x[0], jnp.exp(x[1])
        return {"mu": mu, "tau": tau, "theta": mu + tau * x[2:]}


class _Truth(NamedTuple):
    distribution: np.ndarray
    mean: np.ndarray
    std: np.ndarray


def _truth(effects: np.ndarray, errors: np.ndarray) -> _Truth:
    """The distribution function of log τ and the moments of x, in double precision."""
    tau = np.exp(_GRID)[:, None]
    c = 1 / (errors**2 + tau**2)
    v = 1 / (PRIOR_SCALE**-2 + c.sum(axis=1))
    m = v * (c @ effects)
    log_posterior = (
        _GRID
        - np.logaddexp(0.0, 2 * (_GRID - math.log(PRIOR_SCALE)))
        + 0.5 * np.sum(np.log(c) - c * effects**2, axis=1)
        + 0.5 * np.log(v)
        + m**2 / (2 * v)
    )
    density = np.exp(log_posterior - log_posterior.max())
    # Trapezia: the density is smooth and vanishes at both ends, where the rule is most accurate.
    distribution = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    weights = density / density.sum()
    # Given log τ: the mean and the mean square of each coordinate.
    eta = tau * c * (effects - m[:, None])
    eta_variance = errors**2 * c + (tau * c) ** 2 * v[:, None]
    given_tau = np.concatenate([m[:, None], _GRID[:, None], eta], axis=1)
    variance = np.concatenate([v[:, None], np.zeros_like(v)[:, None], eta_variance], axis=1)
    mean = weights @ given_tau
    std = np.sqrt(weights @ (variance + (given_tau - mean) ** 2))
    return _Truth(distribution / distribution[-1], mean, std)
