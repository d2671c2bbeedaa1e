"""One suite that every registered kernel passes, and the simple ones of the tests."""

import functools
import importlib
import inspect
import json
import pkgutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc.kernels
from salmc.kernels.base import (
    AbstractKernel,
    AbstractTractableKernel,
    AbstractVolumePreservingKernel,
    is_exact,
)
from salmc.sampling.metropolis import ChainState, Noise, hastings
from simple_kernels import SIMPLE, TRACTABLE

REGISTERED = salmc.kernels.KERNELS
EVERY_CLASS = {**SIMPLE, **REGISTERED}
EVERY = pytest.mark.parametrize("name", sorted(EVERY_CLASS))
TRACTABLE_NAMES = sorted(
    name for name, kernel in EVERY_CLASS.items() if issubclass(kernel, AbstractTractableKernel)
)
EVERY_TRACTABLE = pytest.mark.parametrize("name", TRACTABLE_NAMES)
PRESERVING_NAMES = sorted(
    name
    for name, kernel in EVERY_CLASS.items()
    if issubclass(kernel, AbstractVolumePreservingKernel)
)
EVERY_PRESERVING = pytest.mark.parametrize("name", PRESERVING_NAMES)


@functools.cache
def make(name, dim=2):
    """Untrained, then moved off its first weights, at which a flow may be the identity."""
    kernel = EVERY_CLASS[name].from_description({"dim": dim})
    arrays, static = eqx.partition(kernel, eqx.is_inexact_array)
    generator = np.random.default_rng(1)
    moved = jax.tree.map(
        lambda leaf: jnp.asarray(
            np.asarray(leaf) + 0.02 * generator.normal(size=leaf.shape), float
        ),
        arrays,
    )
    return eqx.combine(moved, static)


def test_every_kernel_of_the_package_is_registered():
    found = set()
    for module in pkgutil.iter_modules(salmc.kernels.__path__):
        members = vars(importlib.import_module(f"salmc.kernels.{module.name}")).values()
        found |= {
            member
            for member in members
            if inspect.isclass(member)
            and issubclass(member, AbstractKernel)
            and not inspect.isabstract(member)
        }
    assert found == set(REGISTERED.values()) | set(salmc.kernels.IMAGE_KERNELS.values())


@EVERY
def test_names_and_explanations(name):
    kernel = EVERY_CLASS[name]
    assert kernel.name == name
    assert kernel.explanation
    assert make(name).dim == 2


@EVERY
@pytest.mark.parametrize("dim", [1, 5])
def test_shapes(name, dim):
    kernel = make(name, dim)
    key, points = jax.random.key(1), jnp.ones((7, dim))
    assert jax.eval_shape(kernel.propose, key, points[0]).shape == (dim,)
    assert jax.eval_shape(kernel.propose_batch, key, points).shape == (7, dim)
    many = jax.vmap(kernel.propose)
    assert jax.eval_shape(many, jax.random.split(key, 7), points).shape == (7, dim)
    if isinstance(kernel, AbstractTractableKernel):
        assert jax.eval_shape(kernel.log_density, points[0], points[1]).shape == ()
        assert jax.eval_shape(kernel.log_densities, points, points).shape == (7,)
        # Chains make the proposals of many steps at once.
        steps = jax.vmap(lambda key: kernel.propose_with_log_density(key, points))
        new, log_q = jax.eval_shape(steps, jax.random.split(key, 3))
        assert (new.shape, log_q.shape) == ((3, 7, dim), (3, 7))


@EVERY
def test_batches_have_the_distribution_of_single_points(name):
    """Means of 4000 proposals from one point, either way: within 5 standard errors."""
    points = jnp.broadcast_to(jnp.array([0.4, -0.8]), (4000, 2))
    keys = jax.random.split(jax.random.key(3), 4000)
    single, batch = (
        np.asarray(values)
        for values in eqx.filter_jit(
            lambda kernel: (
                jax.vmap(kernel.propose)(keys, points),
                kernel.propose_batch(jax.random.key(4), points),
            )
        )(make(name))
    )
    assert np.all(np.isfinite(single))
    assert np.all(np.isfinite(batch))
    assert len(np.unique(batch[:, 0])) > 3900  # each row has noise of its own
    error = np.sqrt((np.var(single, axis=0) + np.var(batch, axis=0)) / 4000)
    assert np.all(np.abs(np.mean(single, axis=0) - np.mean(batch, axis=0)) < 5 * error)


@EVERY
def test_the_description_rebuilds_the_structure(name):
    kernel = make(name)
    description = json.loads(json.dumps(kernel.description()))
    again = EVERY_CLASS[name].from_description(description)
    assert type(again) is type(kernel)
    first, second = (eqx.partition(k, eqx.is_array) for k in (kernel, again))
    assert jax.tree.structure(first[0]) == jax.tree.structure(second[0])
    shapes = [[(x.shape, x.dtype) for x in jax.tree.leaves(part[0])] for part in (first, second)]
    assert shapes[0] == shapes[1]
    assert eqx.tree_equal(first[1], second[1])


@EVERY_TRACTABLE
def test_density_and_proposals_agree(name):
    # In double precision: rounding, magnified by slopes of log q of up to 1e3, stays below 1e-9.
    same = {"rtol": 1e-9, "atol": 1e-9}
    with jax.enable_x64(True):
        kernel = make.__wrapped__(name)  # made anew: the weights must be of double precision
        points = jax.random.normal(jax.random.key(0), (50, 2))
        new, log_q = eqx.filter_jit(kernel.propose_with_log_density)(jax.random.key(1), points)
        assert log_q.dtype == jnp.float64
        again = eqx.filter_jit(kernel.log_densities)(new, points)
        np.testing.assert_allclose(log_q, again, **same)
        one = eqx.filter_jit(kernel.log_density)(new[3], points[3])
        np.testing.assert_allclose(one, again[3], **same)
        if not kernel.looks_at_state:
            elsewhere = eqx.filter_jit(kernel.log_densities)(new, points + 3.0)
            np.testing.assert_allclose(elsewhere, again, **same)


@EVERY_TRACTABLE
def test_the_density_is_normalised_and_is_that_of_the_proposals(name):
    """On a grid of [−8, 8]²: ∫ q = 1 to 1 %, and proposals fall into quadrants as q says.

    A count of 20,000 in a box has a standard error of at most 0.0035; 5 of them are allowed, and
    0.005 for the sum over the grid.
    """
    kernel = make(name)
    edge = np.linspace(-8, 8, 321)
    centres = 0.5 * (edge[1:] + edge[:-1])
    grid = jnp.asarray(np.stack(np.meshgrid(centres, centres, indexing="ij"), -1).reshape(-1, 2))
    point = jnp.array([0.5, -1.0])
    old = jnp.broadcast_to(point, grid.shape)
    density = np.exp(np.asarray(eqx.filter_jit(kernel.log_densities)(grid, old), np.float64))
    mass = density * (edge[1] - edge[0]) ** 2
    assert mass.sum() == pytest.approx(1.0, abs=0.01)
    new = np.asarray(
        eqx.filter_jit(kernel.propose_batch)(
            jax.random.key(5), jnp.broadcast_to(point, (20_000, 2))
        )
    )
    for cut in (-0.5, 0.0, 0.7):
        for axis in (0, 1):
            expected = mass[np.asarray(grid)[:, axis] > cut].sum()
            assert np.mean(new[:, axis] > cut) == pytest.approx(expected, abs=0.0175 + 0.005)
    both = mass[np.all(np.asarray(grid) > 0, axis=1)].sum()
    assert np.mean(np.all(new > 0, axis=1)) == pytest.approx(both, abs=0.0175 + 0.005)


@EVERY_PRESERVING
def test_a_volume_preserving_kernel_gives_velocities_and_their_correction(name):
    kernel = make(name)
    points, key = jax.random.normal(jax.random.key(0), (50, 2)), jax.random.key(1)
    new, correction = eqx.filter_jit(kernel.propose_with_correction)(key, points)
    assert correction.shape == (50,)
    assert len(np.unique(np.asarray(correction))) > 40
    same = eqx.filter_jit(kernel.propose_batch)(key, points)
    # Sums of 400 products, of size 1 in all, round by √400 ε = 2.4e-6 each; there are a few.
    np.testing.assert_allclose(new, same, atol=1e-5)
    pushed, velocities = eqx.filter_jit(kernel.push)(key, points)
    assert pushed.shape == (50, 2)
    assert velocities.shape == (50, kernel.velocity_dim)
    assert is_exact(type(kernel))


@EVERY_PRESERVING
def test_metropolis_with_a_volume_preserving_kernel_keeps_a_gaussian(name):
    """20,000 draws of N(0, I) after ten steps: first two moments, within 5 standard errors."""
    kernel, count = make(name), 20_000

    def log_density(points):
        return -0.5 * jnp.sum(points**2, axis=1)

    @eqx.filter_jit
    def run(kernel, points):
        keys = jax.random.split(jax.random.key(1), 10)
        log_uniform = jnp.log1p(-jax.random.uniform(jax.random.key(2), (10, 1, count)))
        start = ChainState(points, log_density(points), jnp.zeros(count))
        return hastings(kernel, log_density, start, Noise(keys, log_uniform))

    first = jax.random.normal(jax.random.key(0), (count, 2))
    state, steps = run(kernel, first)
    assert np.mean(steps.accepted) > 0.05
    moved = np.asarray(state.points, np.float64)
    assert np.mean(np.any(moved != np.asarray(first), axis=1)) > 0.3
    error = 5 / np.sqrt(count)
    np.testing.assert_allclose(moved.mean(axis=0), 0.0, atol=error)
    np.testing.assert_allclose((moved**2).mean(axis=0), 1.0, atol=np.sqrt(2) * error)
    assert abs(np.mean(moved[:, 0] * moved[:, 1])) < error


def test_the_simple_kernels_are_tractable():
    assert set(TRACTABLE) <= set(TRACTABLE_NAMES)
