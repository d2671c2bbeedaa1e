"""Bounded coordinates: maps and their slopes, and that nobody ever sees the unbounded ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.bounds import Bounds, Unbounded
from salmc.errors import ArgumentError
from salmc.kernels import FlowKernel, Whitening

LIMITS = [(0.0, None), (None, 2.0), (-1.0, 3.0), (None, None)]
SMALL = {"steps": 60, "pool_size": 1024, "batch": 128}


# One program, where operations one by one would be thirty.
inward = eqx.filter_jit(lambda bounds, x: bounds.inward(x))
outward = eqx.filter_jit(lambda bounds, y: bounds.outward(y))


def gamma_and_more(x):
    """Gamma(3), −Exponential(1) below 2, uniform, normal."""
    return 2 * jnp.log(x[0]) - x[0] + x[1] - 0.5 * x[3] ** 2


def test_there_and_back():
    bounds = Bounds.of(LIMITS, 4)
    y = 3.0 * jax.random.normal(jax.random.key(0), (100, 4))
    x, _ = outward(bounds, y)
    assert np.all(bounds.contain(x))
    np.testing.assert_allclose(inward(bounds, x), y, rtol=1e-3, atol=1e-3)


def test_slopes():
    bounds = Bounds.of(LIMITS, 4)
    y = jax.random.normal(jax.random.key(1), (5, 4))
    jacobians = jax.jit(jax.vmap(jax.jacobian(lambda y: bounds.outward(y)[0])))(y)
    expected = np.linalg.slogdet(np.asarray(jacobians, np.float64))[1]
    found = jax.jit(jax.vmap(lambda y: bounds.outward(y)[1]))(y)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-4)


def test_edges_are_finite_and_far_ends_do_not_overflow_to_nan():
    bounds = Bounds.of(LIMITS, 4)
    assert np.all(np.isfinite(inward(bounds, jnp.array([0.0, 2.0, 3.0, 0.0]))))
    assert not np.any(np.isnan(outward(bounds, jnp.full(4, 200.0))[0][1:]))
    gradient = jax.jit(jax.grad(lambda y: jnp.sum(bounds.outward(y)[0])))(jnp.full(4, 50.0))
    assert not np.any(np.isnan(gradient))


@pytest.mark.parametrize("bounds", [[(0, 1)], 3, [(0, 1), (1, 0)], [(0, 1), 2], [(0, "a"), (0, 1)]])
def test_bad_bounds_get_one_sentence(bounds):
    with pytest.raises(ArgumentError, match="`bounds`"):
        salmc.Target(lambda x: 0.0 * x[0], dim=2, bounds=bounds)


def test_coordinates_without_bounds_may_be_large():
    """An intercept of 240 beside a positive scale: e^240 is infinite, and its slope no number."""
    bounds = Bounds.of(LIMITS, 4)
    target = Unbounded(salmc.Target(gamma_and_more, dim=4), bounds)
    y = jnp.array([0.3, 0.2, 0.1, 240.0])
    found = jax.grad(target.log_density)(y)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found[3], -240.0, rtol=1e-6)


def test_zero_outside():
    target = salmc.Target(gamma_and_more, dim=4, bounds=LIMITS)
    assert target.log_density(jnp.array([-1.0, 0.0, 0.0, 0.0])) == -jnp.inf
    assert jnp.isfinite(target.log_density(jnp.array([1.0, 0.0, 0.0, 0.0])))
    assert target.unbounded.outer is target


def exact_draws(n):
    generator = np.random.default_rng(0)
    draws = generator.gamma(3.0, size=n), 2.0 - generator.exponential(size=n)
    return np.stack([*draws, generator.uniform(-1.0, 3.0, n), generator.normal(size=n)], axis=1)


def test_draws_are_in_the_users_coordinates(tmp_path, given_pool):
    """Means of 8,000 draws worth a few hundred: within 0.25 sd. The pool is of exact draws:
    `test_movers_see_no_bounds_and_their_draws_keep_them` and `tests/request` fill pools."""
    given_pool(Bounds.of(LIMITS, 4).inward(jnp.asarray(exact_draws(SMALL["pool_size"]))))
    target = salmc.Target(gamma_and_more, dim=4, bounds=LIMITS, names=list("abcd"))
    kernel = FlowKernel(jax.random.key(0), 4, layers=2, width=16, knots=6, radial_knots=4)
    sampler = salmc.fit(target, kernel=kernel, settings=SMALL, progress=False)
    draws = sampler.sample(chains=16, draws=500, progress=False)
    points = draws.positions.reshape(-1, 4)
    assert np.all(Bounds.of(LIMITS, 4).contain(jnp.asarray(points)))
    assert draws.target is target
    truth, spread = np.array([3.0, 1.0, 1.0, 0.0]), np.array([3**0.5, 1.0, 2 / 3**0.5, 1.0])
    assert np.all(np.abs(points.mean(axis=0) - truth) < 0.25 * spread)
    values = np.asarray(target.log_densities(jnp.asarray(points)))
    np.testing.assert_allclose(draws.log_density.reshape(-1), values, rtol=1e-3, atol=1e-2)
    assert np.all(Bounds.of(LIMITS, 4).contain(jnp.asarray(draws.seen)))
    summary = draws.summary(hunt=False)
    assert summary.evidence.ksd_kind == "gradient"
    again = salmc.load(sampler.save(tmp_path / "k.salmc"), target=target)
    repeated = again.sample(chains=16, draws=500, progress=False)
    np.testing.assert_array_equal(repeated.positions, draws.positions)


def test_bounds_that_were_found_are_kept_in_the_file(tmp_path):
    target = salmc.Target(lambda x: jnp.where(jnp.all(x > 0), -jnp.sum(x), -jnp.inf), dim=2)
    inner = Unbounded(target, Bounds.of([(0, None)] * 2, 2))
    pool = np.random.default_rng(0).normal(size=(50, 2))
    kernel = FlowKernel(jax.random.key(0), 2, layers=1, width=4, knots=4, radial_knots=4)
    sampler = salmc.Sampler(kernel, inner, Whitening.identity(2), pool)
    again = salmc.load(sampler.save(tmp_path / "k.salmc"), target=target)
    options = {"chains": 4, "draws": 20, "progress": False}
    first, second = sampler.sample(**options), again.sample(**options)
    np.testing.assert_array_equal(first.positions, second.positions)
    assert np.all(first.positions > 0)


def test_movers_see_no_bounds_and_their_draws_keep_them():
    target = salmc.Target(lambda x: -jnp.sum(x), dim=2, bounds=[(0, None)] * 2)
    draws = salmc.move(salmc.movers.SGLD(target), particles=200, steps=200, progress=False)
    assert np.all(draws.positions > 0)
    assert draws.target is target


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_points_near_an_edge_stay_where_they_are(scale):
    bounds = Bounds.of([(0, None), (None, 0), (0, 3 * scale)], 3)
    x = jnp.array([[1.0, -1.0, 1.0], [1e-9, -1e-9, 1e-9], [2.0, -2.0, 2.0]]) * scale
    there, _ = outward(bounds, inward(bounds, x))
    np.testing.assert_allclose(there, x, rtol=1e-4)


def test_points_on_an_edge_are_as_near_as_rounds_to_it():
    y = inward(Bounds.of([(0, 1), (-2, None)], 2), jnp.array([[0.0, -2.0], [1.0, -2.0]]))
    assert np.all(np.isfinite(y))
    assert y[0, 0] == pytest.approx(np.log(1e-6), rel=1e-3)
    assert y[1, 0] > 16.0
