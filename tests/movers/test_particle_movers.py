"""SVGD and its kin: directions against plain formulae, spreads against the target's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.movers import SPOS, SVGD, WSGLD, AnnealedSVGD, GradientFreeAnnealedSVGD
from salmc.movers.annealed_svgd import kernel_regression, surrogate
from salmc.movers.base import spread
from salmc.movers.stein import stein_direction
from salmc.movers.svgd import default_bandwidth, settling_move
from salmc.movers.w_sgld import transport_force
from salmc.target import Target


@eqx.filter_jit
def one_step(mover, points):
    key = jax.random.key(0)
    return mover.step(key, mover.init(key, points))[0].particles


@pytest.mark.parametrize(
    ("mover_class", "count", "of_mean", "of_spread"),
    [
        (SVGD, 200, 0.1, 0.05),
        (AnnealedSVGD, 200, 0.1, 0.05),
        (WSGLD, 200, 0.1, 0.05),
        (SPOS, 400, 0.2, 0.15),
    ],
)
def test_mean_and_spread_of_a_gaussian(
    mover_class, count, of_mean, of_spread, normal, drive, start
):
    """200 particles without noise settle near the quantiles of the target: 5 % is bias alone.
    SPOS has noise: 400 particles know a mean to 0.05 sd and an sd to 3.5 %, four of each here.
    """
    std = jnp.array([2.0, 0.5])
    state, _, _ = drive(mover_class(normal(2, std)), start(count, 2), 600)
    np.testing.assert_allclose(jnp.mean(state.particles / std, axis=0), 0.0, atol=of_mean)
    np.testing.assert_allclose(jnp.std(state.particles / std, axis=0), 1.0, atol=of_spread)


def test_gradient_free_annealing_finds_mean_and_spread(normal, drive, start):
    """A surrogate fitted to 200 values: half a per cent of MMD, 20 % of spread."""
    state, _, _ = drive(GradientFreeAnnealedSVGD(normal(2)), start(200, 2), 600)
    np.testing.assert_allclose(jnp.mean(state.particles, axis=0), 0.0, atol=0.2)
    np.testing.assert_allclose(jnp.std(state.particles, axis=0), 1.0, atol=0.2)


def test_svgd_moves_along_the_stein_direction(normal, start):
    points = start(30, 2)
    mover = SVGD(normal(2))
    after = one_step(mover, points)
    scale = spread(points)
    standard = (points - jnp.mean(points, axis=0)) / scale
    direction = stein_direction(standard, -points * scale, default_bandwidth(standard))
    expected = 0.3 * direction / jnp.sqrt(jnp.mean(direction**2, axis=0))
    np.testing.assert_allclose((after - points) / scale, expected, atol=1e-5)


def test_moves_shorten_and_do_not_favour_isolated_particles():
    direction = jnp.array([[1.0], [1e-3]])
    one = jnp.ones(())
    first, mean_square = settling_move(direction, one, jnp.zeros(1), 0.0 * one)
    later, _ = settling_move(direction, one, mean_square, 99.0 * one)
    np.testing.assert_allclose(later, first / 10, rtol=1e-5)
    np.testing.assert_allclose(first[1] / first[0], 1e-3, rtol=1e-5)


def test_annealing_is_linear_and_ends_at_the_target(normal, drive, start):
    mover = AnnealedSVGD(normal(2), annealing_steps=4)
    _, _, infos = drive(mover, start(20, 2), 6)
    np.testing.assert_allclose(infos.inverse_temperature, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0])


def test_annealing_stays_at_the_start_while_it_is_cold(drive, start):
    """At β ≈ 0 the density is the Gaussian of the start, wherever the target is. SVGD itself makes
    100 particles 5 % too narrow."""
    points = start(100, 2)
    far = Target(lambda x: -0.5 * jnp.sum((x - 50.0) ** 2), 2)
    state, _, _ = drive(AnnealedSVGD(far, annealing_steps=1e8), points, 100)
    np.testing.assert_allclose(jnp.mean(state.particles - points, axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(spread(state.particles) / spread(points), 1.0, atol=0.1)


def test_annealing_balances_modes_better_than_svgd(drive, start):
    """Two equal modes at ±3 and a start about +3, N(3, 3.2²): a fair share is a half. Annealing
    takes more of the excess away than SVGD does (measured: 0.71 against 0.82).
    """

    def log_density(x):
        return jnp.logaddexp(-0.5 * jnp.sum((x - 3.0) ** 2), -0.5 * jnp.sum((x + 3.0) ** 2))

    target = Target(log_density, 1)
    points = 2.0 * start(200, 1) + 3.0
    annealed, _, _ = drive(AnnealedSVGD(target, annealing_steps=300), points, 500)
    plain, _, _ = drive(SVGD(target), points, 500)
    excess = float(jnp.mean(annealed.particles > 0)) - 0.5
    assert excess < float(jnp.mean(plain.particles > 0)) - 0.5 - 0.05
    assert excess < 0.3


def test_regression_score_is_the_derivative_of_the_regression(start):
    points = start(20, 2)
    values = -jnp.sum(points**2, axis=1)
    bandwidth = jnp.array(0.8)

    def regression(x):
        kernel = jnp.exp(-jnp.sum((x - points) ** 2, axis=1) / bandwidth)
        return jnp.sum(kernel * values) / jnp.sum(kernel)

    fitted, scores = kernel_regression(points, values, bandwidth)
    np.testing.assert_allclose(fitted, jax.vmap(regression)(points), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores, jax.vmap(jax.grad(regression))(points), rtol=1e-3, atol=1e-3)


def test_surrogate_of_a_gaussian_is_the_gaussian(start):
    """Quadratic values leave nothing to the regression, up to the ridge of 1e-4."""
    points = start(50, 2)
    values = 7.0 - jnp.sum((points - 1.0) ** 2, axis=1)
    fitted, scores = surrogate(points, values, jnp.array(0.3))
    np.testing.assert_allclose(fitted, values, atol=0.02)
    np.testing.assert_allclose(scores, -2.0 * (points - 1.0), atol=0.02)


def test_transport_force_is_the_gradient_of_the_transport_cost(start):
    """With all of the attraction, F_i = ∇_{x_i} Σ_j c_ij e^{−c_ij/λ}, the others held fixed."""
    points = start(15, 3)
    bandwidth = jnp.array(2.0)

    def cost(x, others):
        distances = jnp.sum((x - others) ** 2, axis=1)
        return jnp.sum(distances * jnp.exp(-distances / bandwidth))

    expected = jax.vmap(jax.grad(cost), in_axes=(0, None))(points, points)
    force, mass = transport_force(points, bandwidth, jnp.array(1.0))
    np.testing.assert_allclose(force, expected, atol=1e-4)
    distances = jnp.sum((points[:, None] - points[None]) ** 2, axis=2)
    np.testing.assert_allclose(mass, jnp.sum(jnp.exp(-distances / bandwidth), axis=1), rtol=1e-5)


def test_transport_repulsion_is_the_score_of_the_density_estimate(start):
    points = start(15, 3)
    bandwidth = jnp.array(2.0)

    def log_estimate(x):
        return jax.nn.logsumexp(-jnp.sum((x - points) ** 2, axis=1) / bandwidth)

    force, mass = transport_force(points, bandwidth, jnp.array(0.0))
    expected = -jax.vmap(jax.grad(log_estimate))(points)
    np.testing.assert_allclose(force / (mass[:, None] * bandwidth), expected, atol=1e-4)


def test_spos_without_temperature_is_svgd_with_a_plain_step(normal, start):
    points = start(30, 2)
    mover = SPOS(normal(2), inverse_temperature=1e12, step_size=0.05)
    after = one_step(mover, points)
    scale = spread(points)
    standard = (points - jnp.mean(points, axis=0)) / scale
    direction = stein_direction(standard, -points * scale, default_bandwidth(standard))
    np.testing.assert_allclose((after - points) / scale, 0.05 * direction, atol=1e-5)


def test_spos_keeps_the_spread_that_svgd_loses(normal, drive, start):
    """In 10 dimensions SVGD is too narrow by a third or more; 100 × 10 values know an sd to 2 %."""
    points = start(100, 10)
    narrow, _, _ = drive(SVGD(normal(10)), points, 400)
    kept, _, _ = drive(SPOS(normal(10)), points, 400)
    assert float(jnp.std(narrow.particles)) < 0.75
    np.testing.assert_allclose(jnp.std(kept.particles), 1.0, atol=0.08)


def test_settings_change_the_result_without_a_new_mover_class(normal, start):
    points = start(20, 2)
    step = eqx.filter_jit(lambda mover, state: mover.step(jax.random.key(0), state)[0].particles)
    mover = SVGD(normal(2))
    state = mover.init(jax.random.key(0), points)
    assert not np.allclose(step(mover, state), step(SVGD(normal(2), step_size=0.1), state))
