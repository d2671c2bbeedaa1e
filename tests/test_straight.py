"""Straight coordinates: maps and their slopes, what clouds show, and files that keep them."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.bounds import Bounds, Unbounded
from salmc.diagnostics.straightening.search import find_straight, shows_funnel
from salmc.errors import OutputError
from salmc.kernels import FlowKernel, Whitening
from salmc.sampling.sampler import Sampler

GROUPS = 5
UNIT = np.array([1.0, 20.0, *np.full(GROUPS, 20.0)])


def centred(x):
    """log τ ~ N(0, 1.5²), μ ~ N(0, 20²), θ_j ~ N(μ, (20 τ)²); x = (log τ, μ, θ)."""
    y = x / jnp.asarray(UNIT)
    spread = jnp.sum((y[2:] - y[1]) ** 2) * jnp.exp(-2.0 * y[0])
    return -0.5 * (y[0] / 1.5) ** 2 - 0.5 * y[1] ** 2 - 0.5 * spread - GROUPS * y[0]


def cloud(seed, count=4000):
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(count, 2 + GROUPS))
    noise[:, 0] *= 1.5
    noise[:, 2:] = noise[:, [1]] + np.exp(noise[:, [0]]) * noise[:, 2:]
    return UNIT * noise


@functools.cache
def found_for_groups():
    return find_straight(cloud(0))


def test_the_form_that_people_write_is_found():
    """θ = μ + τ y: power 1 and weight 1 exactly, as nothing fits better."""
    found = found_for_groups()
    assert found.scales.tolist() == [0]
    np.testing.assert_allclose(found.powers[0], [0, 0, *np.ones(GROUPS)], atol=1e-6)
    np.testing.assert_allclose(found.weights[0][2:, 1], 1.0, atol=1e-5)
    np.testing.assert_allclose(found.shifts[0], 0.0, atol=1e-3)
    straight = np.asarray(found.inward(jnp.asarray(cloud(1), dtype=float)))
    assert not shows_funnel(straight)
    assert found.moves.tolist() == [False, False, *[True] * GROUPS]
    assert found.governs.tolist() == [True, True, *[False] * GROUPS]
    away = (straight[:, 2:] - straight[:, [1]]) / 20.0
    np.testing.assert_allclose(np.std(away, axis=0), 1.0, rtol=0.1)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_and_signs_do_not_matter(scale):
    points = scale * cloud(2)
    points[:, 0] *= -1.0
    found = find_straight(points)
    np.testing.assert_allclose(scale * found.powers[0][2:], -1.0, rtol=0.1)


def test_rosenbrocks_valley_is_straight_in_two_bends():
    """x₁ = x₀² + ½ε, x₂ = x₁² + ½ε': all that is left is Gaussian."""
    generator = np.random.default_rng(7)
    points = 1.0 + 1.5 * generator.normal(size=(4000, 1))
    for _ in range(2):
        points = np.c_[points, points[:, -1] ** 2 + 0.5 * generator.normal(size=4000)]
    found = find_straight(points)
    assert sorted(np.argwhere(np.asarray(found.bends) != 0.0)[:, 1:].tolist()) == [[1, 0], [2, 1]]
    straight = np.asarray(found.inward(jnp.asarray(points, dtype=float)))
    np.testing.assert_allclose(np.std(straight, axis=0), [1.5, 0.5, 0.5], rtol=0.1)
    back, log_slope, kept = found.outward(jnp.asarray(straight))
    np.testing.assert_allclose(back, points, rtol=1e-3, atol=1e-3)
    assert np.all(kept)
    assert not np.any(log_slope)


def ring(generator, n):
    angle = 2.0 * np.pi * generator.random(n)
    radius = 3.0 + 0.2 * generator.normal(size=n)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def three_modes(generator, n):
    centres = np.array([[-4.0, 0.3, 0.0], [0.0, -0.5, 1.0], [4.0, 0.4, 2.0]])
    return centres[generator.integers(3, size=n)] + 0.1 * generator.normal(size=(n, 3))


def two_modes(generator, n):
    return generator.normal(size=(n, 3)) + 4.0 * np.sign(generator.normal(size=(n, 1)))


def heavy(generator, n):
    return generator.standard_t(3, size=(n, 4))


@pytest.mark.parametrize(
    "make", [ring, two_modes, three_modes, heavy, lambda g, n: g.normal(size=(n, 25))]
)
def test_what_is_straight_already_is_left_alone(make):
    assert find_straight(make(np.random.default_rng(3), 4000)) is None


def test_odd_clouds_are_left_alone():
    assert find_straight(np.ones((1000, 3))) is None
    assert find_straight(np.random.default_rng(0).normal(size=(30, 3))) is None
    assert find_straight(np.random.default_rng(0).normal(size=(1000, 1))) is None
    assert find_straight(np.full((1000, 2), np.nan)) is None


def test_there_and_back_with_known_slope():
    found = found_for_groups()
    points = jnp.asarray(cloud(4, 50) / UNIT * UNIT, dtype=float)
    straight = eqx.filter_jit(found.inward)(points)
    back, log_slope, kept = eqx.filter_jit(found.outward)(straight)
    assert np.all(kept)
    np.testing.assert_allclose(back / UNIT, points / UNIT, rtol=1e-4, atol=1e-4)
    jacobians = jax.jit(jax.vmap(jax.jacobian(lambda y: found.outward(y)[0])))(straight[:3])
    for jacobian, slope in zip(jacobians, log_slope[:3], strict=True):
        expected = np.linalg.slogdet(np.asarray(jacobian, np.float64))[1]
        assert abs(float(slope) - expected) < 1e-3


def test_the_target_is_the_same_law_with_and_without_bounds():
    straight = found_for_groups()
    plain = salmc.Target(centred, 2 + GROUPS)
    bounds = Bounds.of([(None, 12.0), *[(None, None)] * (1 + GROUPS)], 2 + GROUPS)
    for target in (Unbounded.with_straight(plain, straight), Unbounded(plain, bounds, straight)):
        points = jnp.asarray(cloud(5, 20), dtype=float)
        inside = eqx.filter_jit(target.inward)(points)
        values = eqx.filter_jit(target.log_densities)(inside)
        back, outer = eqx.filter_jit(target.outward)(inside, values)
        np.testing.assert_allclose(back / UNIT, points / UNIT, rtol=1e-3, atol=1e-3)
        expected = eqx.filter_jit(plain.log_densities)(points)
        np.testing.assert_allclose(outer, expected, rtol=1e-3, atol=2e-2)
        assert target.outer is plain


def sampler_of(target):
    kernel = FlowKernel(jax.random.key(0), 2 + GROUPS, layers=1, width=4, knots=4, radial_knots=4)
    inside = eqx.filter_jit(target.inward)(jnp.asarray(cloud(6, 500), dtype=float))
    pool, values = eqx.filter_jit(lambda y: target.outward(y, target.log_densities(y)))(inside)
    return Sampler(
        kernel=kernel,
        target=target,
        whitening=Whitening.fit(inside),
        pool=np.asarray(pool),
        method="sal-mc",
        pool_log_density=np.asarray(values),
    )


def test_files_keep_the_coordinates(tmp_path):
    target = salmc.Target(centred, 2 + GROUPS)
    sampler = sampler_of(Unbounded.with_straight(target, found_for_groups()))
    path = sampler.save(tmp_path / "straight.salmc")
    again = salmc.load(path, target)
    one, two = (s.sample(chains=4, draws=20, seed=1, progress=False) for s in (sampler, again))
    np.testing.assert_array_equal(one.positions, two.positions)
    assert one.target is target
    # Without the target nothing undoes the coordinates.
    with pytest.raises(OutputError, match="Give the target"):
        salmc.load(path)


def test_what_rounding_loses_has_no_density():
    """At log τ = −30 all effects round to μ, whatever y is, and log p would be the same."""
    target = Unbounded.with_straight(salmc.Target(centred, 2 + GROUPS), found_for_groups())
    lost = jnp.array([[-30.0, 40.0, *np.full(GROUPS, 60.0)]])
    assert eqx.filter_jit(target.log_densities)(lost)[0] == -jnp.inf
    assert eqx.filter_jit(target.log_density)(lost[0]) == -jnp.inf
    assert np.isfinite(eqx.filter_jit(target.log_densities)(lost.at[0, 0].set(-3.0))[0])


def test_damaged_coordinates_get_one_sentence(tmp_path):
    target = salmc.Target(centred, 2 + GROUPS)
    straight = found_for_groups()
    wrong = dataclasses.replace(straight, scales=jnp.array([99]))
    sampler = dataclasses.replace(
        sampler_of(Unbounded.with_straight(target, straight)),
        target=Unbounded.with_straight(target, wrong),
    )
    path = sampler.save(tmp_path / "wrong.salmc")
    with pytest.raises(OutputError, match="damaged"):
        salmc.load(path, target)


def test_bends_that_hide_each_other_are_undone_together():
    """Rosenbrock's valley with branches: x₁ and x₃ follow x₀², x₂ follows x₁², and x₄ follows x₃,
    so that neither of the last two is straighter for having its own bend undone."""
    noise = np.random.default_rng(3).normal(size=(5, 4000))
    first = 1.0 + 3.0 * noise[0]
    second, fourth = (first**2 + 0.3 * noise[i] for i in (1, 3))
    points = np.stack(
        [first, second, second**2 + 2.0 * noise[2], fourth, fourth + 0.3 * noise[4]], axis=1
    )
    found = find_straight(points)
    bends = np.sum(np.asarray(found.bends), axis=0)
    np.testing.assert_allclose(
        bends[[1, 2, 3, 4], [0, 1, 0, 0]], 1.0, rtol=0.02, err_msg="weights of the squares"
    )
    straight = found.inward(points)
    np.testing.assert_allclose(np.std(straight[:, [1, 3]], axis=0), 0.3, rtol=0.1)
    np.testing.assert_allclose(np.std(straight[:, 2]), 2.0, rtol=0.1)
    np.testing.assert_allclose(np.std(straight[:, 4] - straight[:, 3]), 0.3, rtol=0.1)
