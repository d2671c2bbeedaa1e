"""The spline against its own inverse, against autodiff, and against FlowJAX's."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flowjax.bijections import RationalQuadraticSpline

import salmc.kernels.spline
from salmc.kernels.spline import (
    MIN_SHARE,
    MIN_SLOPE,
    parameter_count,
    radial_grid,
    wide_grid,
)

BINS = 7
LOW, HIGH = -5.0, 5.0
GRID = np.linspace(LOW, HIGH, BINS + 1)


@functools.partial(jax.jit, static_argnames=("name", "grid", "options"))
def _compiled(name, x, raw, grid, options):
    """One program, where operations one by one would be fifty."""
    return getattr(salmc.kernels.spline, name)(x, raw, np.array(grid), **dict(options))


def spline(x, raw, grid):
    return _compiled("spline", x, raw, tuple(grid), ())


def spline_inverse(y, raw, grid, **options):
    return _compiled("spline_inverse", y, raw, tuple(grid), tuple(options.items()))


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def splines(scale, count=400, number=3):
    """Points that cover both sides of the interval, and a spline for each of them."""
    generator = np.random.default_rng(1)
    x = generator.uniform(1.3 * LOW, 1.3 * HIGH, (number, count))
    raw = generator.normal(scale=scale, size=(number, parameter_count(BINS), count))
    return jnp.asarray(x), jnp.asarray(raw)


def knots_and_slopes(raw):
    """The same parametrisation written again with NumPy, for one spline."""
    widths, heights = np.split(raw[: 2 * BINS], 2)
    edges = []
    for part in (widths, heights):
        share = np.exp(part) / np.sum(np.exp(part))
        share = share * (1 - MIN_SHARE * BINS) + MIN_SHARE
        edges.append(LOW + (HIGH - LOW) * np.concatenate([[0.0], np.cumsum(share)]))
    # softplus(raw + offset) + MIN_SLOPE, with the offset for which raw = 0 has slope 1
    inner = np.log1p(np.exp(raw[2 * BINS :]) * np.expm1(1 - MIN_SLOPE)) + MIN_SLOPE
    return *edges, np.concatenate([[1.0], inner, [1.0]])


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_the_inverse_undoes_the_spline(scale):
    x, raw = splines(scale)
    y, log_slope = spline(x, raw, GRID)
    back, inverse_log_slope = spline_inverse(y, raw, GRID)
    # An edge is the sum of up to BINS numbers up to HIGH. Divisions by the size of a bin magnify
    # its rounding by up to 1 / MIN_SHARE, and flat places that of x by 1 / slope: 1e7 at scale 5.
    rounding = BINS * HIGH * np.finfo(float).eps
    assert np.all(np.abs(back - x) < rounding / MIN_SHARE * (1 + np.exp(-log_slope)))
    # At the same x: what is left is the rounding of the place in the bin, and that of the sizes.
    there = spline(back, raw, GRID)[1]
    bends = jax.grad(lambda x: jnp.sum(spline(x, raw, GRID)[1]))(back)
    allowed = rounding * (np.abs(bends) + 4 / (MIN_SHARE * (HIGH - LOW)))
    assert np.all(np.abs(inverse_log_slope + there) < allowed)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 100.0])
def test_the_inverse_written_out_is_the_inverse(scale):
    y, raw = splines(scale)
    for plain, quick in zip(
        spline_inverse(y, raw, GRID), spline_inverse(y, raw, GRID, written_out=True), strict=True
    ):
        np.testing.assert_allclose(quick, plain, atol=1e-9)


def test_knots_of_zeros_stand_on_the_grid():
    # Steeper in the one bin between two knots of the grid, and nowhere else left of it.
    grid = wide_grid(BINS, 10.0)
    raw = np.zeros((1, parameter_count(BINS), 300))
    raw[0, 2 * BINS + 3] = 1.0  # the slope at the fourth inner knot
    x = np.linspace(-12.0, 12.0, 300)
    log_slope = np.asarray(spline(jnp.asarray(x[None]), jnp.asarray(raw), grid)[1][0])
    changed = x[np.abs(log_slope) > 1e-9]
    assert grid[3] <= changed.min() < changed.max() <= grid[5]


def test_half_of_a_wide_grid_is_near_the_middle():
    grid = wide_grid(16, 10.0)
    assert grid[0] == -10.0
    assert grid[-1] == 10.0
    assert np.all(np.abs(grid[4:13]) < 2.5)


def test_single_precision_is_enough_for_an_inverse():
    with jax.enable_x64(False):
        x, raw = (jnp.asarray(value, dtype=jnp.float32) for value in splines(0.5))
        y, log_slope = spline(x, raw, GRID)
        back, inverse_log_slope = spline_inverse(y, raw, GRID)
    assert back.dtype == jnp.float32
    np.testing.assert_allclose(back, x, atol=1e-4)
    np.testing.assert_allclose(inverse_log_slope, -log_slope, atol=1e-4)


@pytest.mark.parametrize("rule", [spline, spline_inverse])
def test_log_slopes_are_those_of_autodiff(rule):
    x, raw = splines(2.0)
    slope = jax.grad(lambda x: jnp.sum(rule(x, raw, GRID)[0]))(x)
    np.testing.assert_allclose(rule(x, raw, GRID)[1], np.log(slope), atol=1e-8)


@pytest.mark.parametrize("rule", [spline, spline_inverse])
@pytest.mark.parametrize(
    "grid", [GRID, wide_grid(BINS, 10.0), radial_grid(BINS, 1.4, 10.0), radial_grid(BINS, 1.4, 2.0)]
)
def test_zeros_are_the_identity(rule, grid):
    x, raw = splines(0.0)
    y, log_slope = rule(x, raw, grid)
    np.testing.assert_allclose(y, x, atol=1e-12)
    np.testing.assert_allclose(log_slope, 0.0, atol=1e-12)


def test_increasing_and_continuous_over_the_ends():
    _, raw = splines(2.0, count=1, number=1)
    x = jnp.linspace(1.2 * LOW, 1.2 * HIGH, 100_001)[None]
    y = spline(x, jnp.broadcast_to(raw, (*raw.shape[:2], x.shape[1])), GRID)[0]
    steps = np.diff(np.asarray(y[0]))
    assert np.all(steps > 0)
    # A jump would be a step of its own size, whatever the grid.
    assert np.max(steps) < 0.01


@pytest.mark.parametrize("rule", [spline, spline_inverse])
def test_gradients_are_finite_everywhere(rule):
    edge_cases = [-1e6, -50.0, LOW, np.nextafter(LOW, 0), 0.0, np.nextafter(HIGH, 0), HIGH, 50.0]
    _, raw = splines(3.0, count=len(edge_cases), number=1)

    def total(x, raw):
        y, log_slope = rule(x, raw, GRID)
        return jnp.sum(y) + jnp.sum(log_slope)

    for gradient in jax.jit(jax.grad(total, argnums=(0, 1)))(jnp.asarray([edge_cases]), raw):
        assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_agrees_with_flowjax(scale):
    _, raw = splines(scale, count=1, number=1)
    x = jnp.linspace(1.2 * LOW, 1.2 * HIGH, 301)
    peer = eqx.tree_at(
        lambda module: (module.x_pos, module.y_pos, module.derivatives),
        RationalQuadraticSpline(knots=BINS - 1, interval=HIGH),
        tuple(jnp.asarray(value) for value in knots_and_slopes(np.asarray(raw[0, :, 0]))),
    )
    wide = jnp.broadcast_to(raw, (*raw.shape[:2], len(x)))
    for own, expected in (
        (spline, peer.transform_and_log_det),
        (spline_inverse, peer.inverse_and_log_det),
    ):
        values, log_slopes = own(x[None], wide, GRID)
        expected_values, expected_slopes = jax.jit(jax.vmap(expected))(x)
        np.testing.assert_allclose(values[0], expected_values, atol=1e-9)
        np.testing.assert_allclose(log_slopes[0], expected_slopes, atol=1e-7)
