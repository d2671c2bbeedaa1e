"""Funnels by derivatives: the exact form of known models, by points of any law; none elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.bounds import Unbounded
from salmc.diagnostics.straightening.curvature import funnels_of_curvature
from salmc.diagnostics.straightening.spreads import governed_spreads
from salmc.sampling.files.coordinates import arrays_of, in_coordinates
from salmc.straight import NEVER
from salmc.target import Target

GROUPS = 5
NOISE = np.array([0.5, 1.0, 2.0, 4.0, 0.25])
DATA = np.array([3.0, -1.0, 0.5, 2.0, 1.0])


def normal(x, mean, deviation):
    return jnp.sum(-0.5 * ((x - mean) / deviation) ** 2 - jnp.log(deviation))


def hierarchical(x):
    """log τ, μ, θ_j ~ N(μ, τ²), y_j ~ N(θ_j, NOISE_j²)."""
    log_scale, mean, effects = x[0], x[1], x[2:]
    prior = normal(log_scale, 0.0, 2.0) + normal(mean, 0.0, 5.0)
    groups = normal(effects, mean, jnp.exp(log_scale) * jnp.ones(GROUPS))
    return prior + groups + normal(jnp.asarray(DATA), effects, jnp.asarray(NOISE))


def found(log_density, points):
    gradient = jax.grad(log_density)
    both = jax.jit(jax.vmap(lambda x: (gradient(x), jax.jacrev(gradient)(x))))
    gradients, hessians = both(jnp.asarray(points, dtype=float))
    return funnels_of_curvature(
        points, np.asarray(gradients, np.float64), np.asarray(hessians, np.float64)
    )


def points(seed, dim, count=400):
    """Of no target at all."""
    return np.random.default_rng(seed).normal(size=(count, dim))


def test_the_law_of_normal_effects_given_their_scale():
    """y_j is N(0, 1) given log τ and μ, whatever these are, up to a shift and a unit of its own."""
    straight = found(hierarchical, points(0, 2 + GROUPS))
    assert straight.scales.tolist() == [0]
    np.testing.assert_allclose(straight.powers[0], [0, 0, *np.ones(GROUPS)], atol=1e-5)
    np.testing.assert_allclose(straight.weights[0][2:, 1], 1.0, atol=0.05)
    log_scale, mean = -1.5, 0.7
    spread = (np.exp(-2.0 * log_scale) + NOISE**-2) ** -0.5
    middle = spread**2 * (mean * np.exp(-2.0 * log_scale) + DATA * NOISE**-2)
    noise = np.random.default_rng(1).normal(size=(2000, GROUPS))
    for log_scale in (-4.0, -1.5, 0.0, 2.0):
        spread = (np.exp(-2.0 * log_scale) + NOISE**-2) ** -0.5
        middle = spread**2 * (mean * np.exp(-2.0 * log_scale) + DATA * NOISE**-2)
        x = np.column_stack([np.tile([log_scale, mean], (2000, 1)), middle + spread * noise])
        y = straight.inward(x)[:, 2:]
        if log_scale == -4.0:
            unit, place = np.std(y, axis=0), np.mean(y, axis=0)
        np.testing.assert_allclose(np.std(y, axis=0) / unit, 1.0, rtol=0.1)
        # In the neck a thousandth of μ is a tenth of a spread.
        np.testing.assert_allclose((np.mean(y, axis=0) - place) / unit, 0.0, atol=0.4)


def test_scales_that_multiply():
    """β_j ~ N(0, (τ λ_j)²), as in a horseshoe: both powers are 1, for each its own λ."""

    def horseshoe(x):
        effects, own, shared = x[:3], x[3:6], x[6]
        prior = normal(x[3:], 0.0, 1.0)
        return prior + normal(effects, 0.0, jnp.exp(own + shared)) - 0.5 * jnp.sum(effects**2)

    straight = found(horseshoe, points(2, 7))
    assert straight.scales.tolist() == [6]
    np.testing.assert_allclose(straight.powers[0][:3], 1.0, atol=1e-5)
    np.testing.assert_allclose(np.diag(straight.further[0][:3, 3:6]), 1.0, atol=1e-5)
    # Data of precision 1 beside priors of precision (τ λ)⁻²: the turn is where τ λ is 1.
    middle = float(straight.middles[0]) + np.asarray(straight.origins[0][3:6])
    np.testing.assert_allclose(straight.turns[0][:3] + middle, 0.0, atol=0.1)


@pytest.mark.parametrize(
    "log_density",
    [
        lambda x: -0.5 * jnp.sum(x**2) - 0.4 * x[0] * x[1],
        lambda x: -4.0 * jnp.log1p(jnp.sum(x**2) / 3.0),
        lambda x: -0.5 * ((jnp.linalg.norm(x) - 3.0) / 0.1) ** 2,
        lambda x: jnp.logaddexp(-jnp.sum((x - 2.0) ** 2), -jnp.sum((x + 2.0) ** 2)),
        lambda x: -jnp.sum((1.0 - x[:-1]) ** 2 + 20.0 * (x[1:] - x[:-1] ** 2) ** 2),
        lambda x: -0.5 * jnp.sum(x**2) - jnp.sum(jnp.logaddexp(0.0, x @ jnp.ones((5, 9)))),
    ],
    ids=["normal", "t", "shell", "two modes", "valley", "logistic"],
)
def test_elsewhere_there_are_none(log_density):
    assert found(log_density, points(3, 5)) is None


def test_odd_points_show_nothing():
    assert found(hierarchical, np.ones((100, 7))) is None
    assert found(hierarchical, points(0, 7, 5)) is None
    assert found(hierarchical, np.full((100, 7), np.nan)) is None


def test_coordinates_of_before_turns_are_read():
    """Files that do not tell of turns hold plain funnels."""
    target = Target(hierarchical, 2 + GROUPS)
    straight = found(hierarchical, points(0, 2 + GROUPS))
    arrays = arrays_of(Unbounded.with_straight(target, straight))
    old = {
        name: part
        for name, part in arrays.items()
        if name.partition("/")[2] not in ("further", "turns", "anchors")
    }
    read = in_coordinates(target, old, 2 + GROUPS).straight
    np.testing.assert_array_equal(read.powers, straight.powers)
    assert np.all(np.asarray(read.turns) == NEVER)
    assert not np.any(np.asarray(read.further))


def test_the_effects_of_a_funnel_may_govern_others_a_little():
    """log a_j ~ N(0, e^{2s}), as discriminations of items, and difficulties b_j that data hold more
    closely where a_j is large: s governs log a, and what follows from a single a_j is left."""

    def items(x):
        log_scale, logs, difficulties = x[0], x[1:6], x[6:]
        prior = normal(log_scale, -1.0, 1.0) + normal(logs, 0.0, jnp.exp(log_scale) * jnp.ones(5))
        held = -0.5 * jnp.sum((difficulties**2) * jnp.exp(0.6 * logs)) - 0.5 * jnp.sum(logs**2)
        return prior + held

    straight = found(items, points(3, 11))
    assert straight.scales.tolist() == [0]
    assert np.flatnonzero(straight.powers[0]).tolist() == [1, 2, 3, 4, 5]


def test_a_further_scale_must_tell_something():
    """log f_a = s/2 + b/16 and noise, log f_b = a/4: b is none of the scales of a, or the two would
    govern each other, and neither be an effect."""
    generator = np.random.default_rng(0)
    s, a, b = units = generator.standard_normal((3, 400))
    logs = [0.0 * s, 0.5 * s + b / 16.0, 0.25 * a]
    logs = np.array(logs) + np.array([[0.0], [0.15], [0.1]]) * generator.standard_normal((3, 400))
    spreads = governed_spreads(units.T, np.exp(-2.0 * logs).T, np.ones(3))
    assert list(spreads) == [1]
    assert spreads[1].scales == [0]
