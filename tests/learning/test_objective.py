"""Each term of the objective against its formula, written out with loops in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.learning.critic import Critic
from salmc.learning.objective import (
    adversarial_critic_loss,
    adversarial_kernel_loss,
    cross_covariance,
    gradient_penalty,
    log_ratio_regression,
)
from salmc.learning.transport import closed_form, sinkhorn

generator = np.random.default_rng(0)


def _softplus(value):
    return np.log1p(np.exp(value))


@pytest.mark.parametrize("form", ["relativistic", "logistic"])
def test_adversarial_losses(form):
    real, fake = generator.normal(size=(2, 7))
    if form == "relativistic":
        critic = np.mean([_softplus(f - r) for r, f in zip(real, fake, strict=True)])
        kernel = np.mean([_softplus(r - f) for r, f in zip(real, fake, strict=True)])
    else:
        # The critic maximises E log σ(D(x)) + E log(1 − σ(D(x'))), eq. 8.
        sigmoid = lambda value: 1 / (1 + np.exp(-value))  # noqa: E731
        critic = -np.mean(np.log(sigmoid(real))) - np.mean(np.log(1 - sigmoid(fake)))
        kernel = -np.mean(np.log(sigmoid(fake)))
    scores = (jnp.asarray(real), jnp.asarray(fake))
    np.testing.assert_allclose(adversarial_critic_loss(form, *scores), critic, rtol=1e-5)
    np.testing.assert_allclose(adversarial_kernel_loss(form, *scores), kernel, rtol=1e-5)


def test_gradient_penalty_matches_finite_differences():
    critic = Critic(jax.random.key(0), 3, width=16, depth=2)
    real, fake = generator.normal(size=(2, 5, 3))
    step, total = 1e-2, 0.0
    for cloud in (real, fake):
        slopes = np.zeros_like(cloud)
        for axis in range(3):
            move = step * np.eye(3)[axis]
            above, below = critic(jnp.asarray(cloud + move)), critic(jnp.asarray(cloud - move))
            slopes[:, axis] = (np.asarray(above) - np.asarray(below)) / (2 * step)
        total += 0.5 * np.mean(np.sum(slopes**2, axis=1))
    value = gradient_penalty(critic, jnp.asarray(real), jnp.asarray(fake))
    np.testing.assert_allclose(value, total, rtol=2e-3)


def test_cross_covariance():
    new, old = generator.normal(size=(2, 8, 3))
    total = 0.0
    for a in range(3):
        for b in range(3):
            halves = [
                np.mean((new[rows, a] - new[rows, a].mean()) * (old[rows, b] - old[rows, b].mean()))
                for rows in (slice(0, 4), slice(4, 8))
            ]
            total += halves[0] * halves[1]
    value = cross_covariance(jnp.asarray(new), jnp.asarray(old))
    np.testing.assert_allclose(value, total, rtol=1e-4, atol=1e-6)


def test_regression():
    log_p, log_q = generator.normal(size=(2, 10)) * 2
    pool = (log_p - log_q)[:6]
    median = np.median(pool)
    centre = median + np.mean(np.clip(pool - median, -3, 3))
    expected = 0.0
    for error in np.abs(log_p - log_q - centre):
        expected += 0.5 * error**2 if error < 1.5 else 1.5 * (error - 0.75)
    value = log_ratio_regression(jnp.asarray(log_p), jnp.asarray(log_q), 6, 1.5)
    np.testing.assert_allclose(value, expected / 10, rtol=1e-5)


def test_regression_takes_proposals_away_from_zero_density():
    log_p = jnp.array([0.0, 0.0, -jnp.inf])
    log_q = jnp.array([0.1, -0.1, 0.0])
    slope = jax.grad(lambda q: log_ratio_regression(log_p, q, 2, 1.0))(log_q)
    assert np.all(np.isfinite(slope))
    # A step against the gradient lowers q where p = 0.
    assert slope[2] > 0


def test_closed_form_matches_a_double_loop():
    new, old = generator.normal(size=(2, 6, 3))
    cost = np.array([[np.sum((x - y) ** 2) / 3 for y in old] for x in new])
    expected = sum(c * np.exp(-c / cost.mean()) for c in cost.ravel()) / 36
    np.testing.assert_allclose(closed_form(jnp.asarray(new), jnp.asarray(old)), expected, rtol=1e-5)
    same = jnp.ones((4, 2))
    value, slope = jax.jit(jax.value_and_grad(closed_form))(same, same)
    assert value == 0.0
    assert np.all(np.isfinite(slope))


def test_sinkhorn_of_a_shifted_gaussian():
    pytest.importorskip("ott")
    points = jnp.asarray(generator.normal(size=(64, 2)))
    shift = jnp.array([1.5, -0.5])
    # W₂² = |shift|² = 2.5, here per coordinate; the solver's own tolerance is 1e-3.
    both = jax.jit(jax.value_and_grad(sinkhorn))
    value, slope = both(points + shift, points)
    np.testing.assert_allclose(value, 1.25, rtol=1e-2)
    # ∂W₂²/∂x'_i = 2 shift / n, per coordinate.
    np.testing.assert_allclose(jnp.sum(slope, axis=0), shift, rtol=3e-2)
    assert abs(float(both(points, points)[0])) < 1e-3
