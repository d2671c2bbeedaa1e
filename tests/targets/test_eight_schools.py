"""The contract tests compare draws with the moments and with detailed balance; here the closed
form itself is held against the density and against integration."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.targets import EightSchools
from salmc.targets.eight_schools import EFFECTS, STANDARD_ERRORS

TARGET = EightSchools()
DRAWS = np.asarray(TARGET.sample(jax.random.key(3), 100_000))


def standard_errors_from_zero(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    return np.abs(values.mean(axis=0)) / (values.std(axis=0) / np.sqrt(len(values)))


def stein_terms(draws: np.ndarray) -> np.ndarray:
    """∇log p · f + div f, whose expectation under p is zero, for bounded f along each axis."""
    scores = np.asarray(eqx.filter_jit(TARGET.gradients)(jnp.asarray(draws)), dtype=np.float64)
    z = (draws - np.asarray(TARGET.mean)) / np.asarray(TARGET.std)
    std = np.asarray(TARGET.std)
    f = np.tanh(z)
    along = scores * f + (1 - f**2) / std
    # A field that couples coordinates: along μ and each η as a function of log τ.
    across = scores * np.tanh(z[:, 1:2])
    across = np.delete(across, 1, axis=1)
    return np.concatenate([along, across], axis=1)


def test_the_score_identity_holds_for_exact_draws():
    """4.5 standard errors: the largest of 19 exceeds it with probability 1.3e-4."""
    assert standard_errors_from_zero(stein_terms(DRAWS)).max() < 4.5


@pytest.mark.parametrize("coordinate", [0, 1, 2, 9])
def test_the_score_identity_finds_out_a_wrong_spread(coordinate):
    wrong = DRAWS.copy()
    centre = wrong[:, coordinate].mean()
    wrong[:, coordinate] = centre + 1.1 * (wrong[:, coordinate] - centre)
    assert standard_errors_from_zero(stein_terms(wrong)).max() > 4.5


def test_the_density_integrates_to_the_marginal_of_log_tau():
    """∫ p dμ dη for fixed log τ, by Gaussian algebra from the density's own curvature.

    Given log τ, log p is quadratic in (μ, η): its integral is its maximum and the determinant of
    its Hessian. That is independent of the closed form that draws log τ.
    """
    with jax.enable_x64(True):
        target = EightSchools()
        grid = np.linspace(-3.0, 4.0, 15)

        @eqx.filter_jit
        def log_marginal(log_tau: jax.Array) -> jax.Array:
            def log_density(rest):
                return target.log_density(jnp.insert(rest, 1, log_tau))

            zero = jnp.zeros(9)
            precision = -jax.hessian(log_density)(zero)
            slope = jax.grad(log_density)(zero)
            quadratic = 0.5 * slope @ jnp.linalg.solve(precision, slope)
            determinant = jnp.linalg.slogdet(precision).logabsdet
            return log_density(zero) + quadratic - 0.5 * determinant

        expected = np.asarray(jax.vmap(log_marginal)(jnp.asarray(grid)))
        distribution = np.asarray(target.log_tau_distribution)
        points = np.asarray(target.log_tau_grid)
    density = np.interp(grid, (points[1:] + points[:-1]) / 2, np.diff(distribution))
    difference = np.log(density) - expected
    np.testing.assert_allclose(difference, difference[0], atol=1e-4)


def test_own_variables_of_draws_against_integration_of_the_centred_model():
    """μ, τ and θ by a grid over (μ, τ) of the centred form, which shares no formula with `sample`.

    Given both, θᵢ has the precision-weighted mean of yᵢ and μ. The grid of τ is even in τ itself
    and ends at 100, where the tail of its mean is below 1e-3. 4.5 standard errors of the draws.
    """
    own = jax.vmap(TARGET.constrain)(jnp.asarray(DRAWS))
    effects, errors = np.array(EFFECTS), np.array(STANDARD_ERRORS)
    mu = np.linspace(-20.0, 30.0, 501)[:, None]
    tau = (np.arange(4000) + 0.5) * (100.0 / 4000)
    log_weights = -0.5 * (mu / 5) ** 2 - np.log1p((tau / 5) ** 2)
    for y, error in zip(effects, errors, strict=True):
        variance = error**2 + tau**2
        log_weights = log_weights - 0.5 * np.log(variance) - 0.5 * (y - mu) ** 2 / variance
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    theta = [
        np.sum(weights * (y / e**2 + mu / tau**2) / (1 / e**2 + 1 / tau**2))
        for y, e in zip(effects, errors, strict=True)
    ]
    assert own["tau"].shape == (len(DRAWS),)
    assert standard_errors_from_zero(own["mu"] - np.sum(weights * mu)) < 4.5
    assert standard_errors_from_zero(own["tau"] - np.sum(weights * tau)) < 4.5
    assert standard_errors_from_zero(own["theta"] - np.array(theta)).max() < 4.5


def test_own_variables():
    x = jnp.array([1.0, np.log(2.0), *range(8)])
    own = TARGET.constrain(x)
    np.testing.assert_allclose(own["theta"], 1.0 + 2.0 * np.arange(8), rtol=1e-6)
    np.testing.assert_allclose(own["tau"], 2.0, rtol=1e-6)
    assert TARGET.names == ("mu", "log_tau", *(f"eta[{i}]" for i in range(8)))


def test_log_density_by_hand():
    x = np.array([2.0, 0.7, *np.linspace(-1, 1, 8)])
    tau = np.exp(0.7)
    residuals = (np.array(EFFECTS) - 2.0 - tau * x[2:]) / np.array(STANDARD_ERRORS)

    def up_to_a_constant(x, tau, residuals):
        return (
            -(x[0] ** 2) / 50
            + np.log(tau)
            - np.log(1 + tau**2 / 25)
            - 0.5 * np.sum(x[2:] ** 2)
            - 0.5 * np.sum(residuals**2)
        )

    origin = up_to_a_constant(np.zeros(10), 1.0, (np.array(EFFECTS)) / np.array(STANDARD_ERRORS))
    expected = up_to_a_constant(x, tau, residuals) - origin
    found = TARGET.log_density(jnp.asarray(x)) - TARGET.log_density(jnp.zeros(10))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("log_tau", [-80.0, 40.0])
def test_extreme_scales_stay_finite(log_tau):
    x = jnp.zeros(10).at[1].set(log_tau)
    assert np.isfinite(TARGET.log_density(x))
    assert np.all(np.isfinite(jax.jit(lambda x: jax.grad(TARGET.log_density)(x))(x)))
