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
from salmc.kernels.base import TRAININGS, AbstractKernel
from salmc.kernels.layers import Whitening
from salmc.sampling.chains import Transition
from salmc.target import Target
from simple_kernels import SIMPLE

REGISTERED = salmc.kernels.KERNELS
EVERY_CLASS = {**SIMPLE, **REGISTERED}
EVERY = pytest.mark.parametrize("name", sorted(EVERY_CLASS))
EVERY_EXACT = pytest.mark.parametrize(
    "name", sorted(name for name, kernel in EVERY_CLASS.items() if kernel.exact)
)
EVERY_TRACTABLE = pytest.mark.parametrize(
    "name", sorted(name for name, kernel in EVERY_CLASS.items() if kernel.tractable)
)


@eqx.filter_jit
def call(kernel, method, *given):
    """One program, where operations one by one would be fifty."""
    return getattr(kernel, method)(*given)


def noise(kernel, *shape, seed=0):
    given = np.random.default_rng(seed).normal(size=(*shape, kernel.noise_dim))
    return jnp.asarray(given, float)


SMALL = {
    "flow": {"layers": 2, "width": 16, "knots": 5, "radial_knots": 5, "tails": True},
    "nice": {"width": 16},
}
"""What takes long to compile, or to run, in its usual size."""


@functools.cache
def make(name, dim=2):
    """Untrained, then moved off its first weights, at which a flow may be the identity."""
    kernel = EVERY_CLASS[name].from_description({"dim": dim, **SMALL.get(name, {})})
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
def test_names_and_what_a_kernel_states(name):
    kernel = make(name)
    assert type(kernel).name == name
    assert kernel.explanation
    assert kernel.dim == 2
    assert kernel.training in TRAININGS
    assert kernel.exact or not kernel.tractable
    assert kernel.tractable or not kernel.independent
    assert kernel.tractable or kernel.training != "likelihood"


@EVERY
@pytest.mark.parametrize("dim", [1, 5])
def test_shapes(name, dim):
    kernel = make(name, dim)
    points = jnp.ones((7, dim))
    proposal = jax.eval_shape(kernel.propose, points, noise(kernel, 7))
    assert proposal.points.shape == (7, dim)
    assert (proposal.log_correction is not None) == kernel.exact
    if kernel.exact:
        assert proposal.log_correction.shape == (7,)
    new, _ = jax.eval_shape(kernel.push, points, noise(kernel, 7))
    assert new.shape == (7, dim)
    if kernel.tractable:
        new, log_q = jax.eval_shape(kernel.propose_with_density, points, noise(kernel, 7))
        assert (new.shape, log_q.shape) == ((7, dim), (7,))
        assert jax.eval_shape(kernel.log_densities, points, points).shape == (7,)
    if kernel.independent:
        new, log_q = jax.eval_shape(kernel.propose_ahead, noise(kernel, 3, 7))
        assert (new.shape, log_q.shape) == ((3, 7, dim), (3, 7))


@EVERY
def test_forward_passes_are_proposals_one_after_the_other(name):
    """In double precision: sums in another order differ by roundings of 1e-16, here times 1e4."""
    with jax.enable_x64(True):
        kernel = make.__wrapped__(name)
        given, points = noise(kernel, 3, 7), jnp.ones((7, 2))

        @eqx.filter_jit
        def passes(kernel, points):
            inputs, step = kernel.forward_passes(given)
            return jax.lax.scan(lambda x, now: (step(now, x),) * 2, points, inputs)[1]

        for made, now in zip(passes(kernel, points), given, strict=True):
            points = call(kernel, "propose", points, now).points
            np.testing.assert_allclose(made, points, rtol=1e-10, atol=1e-10)


@EVERY
def test_each_row_goes_its_own_way(name):
    """A proposal depends on its own point and its own noise, and on no other row."""
    with jax.enable_x64(True):
        kernel = make.__wrapped__(name)
        points, given = jnp.asarray(np.random.default_rng(1).normal(size=(9, 2))), noise(kernel, 9)
        whole = call(kernel, "propose", points, given)
        part = call(kernel, "propose", points[3:5], given[3:5])
        np.testing.assert_allclose(whole.points[3:5], part.points, rtol=1e-10, atol=1e-10)
        assert len(np.unique(np.asarray(whole.points)[:, 0])) == 9
        if kernel.exact:
            np.testing.assert_allclose(
                whole.log_correction[3:5], part.log_correction, rtol=1e-8, atol=1e-8
            )


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
def test_density_proposals_and_correction_agree(name):
    with jax.enable_x64(True):
        kernel = make.__wrapped__(name)
        points = jnp.asarray(np.random.default_rng(0).normal(size=(50, 2)))
        new, log_q = call(kernel, "propose_with_density", points, noise(kernel, 50))
        again, back = (call(kernel, "log_densities", *p) for p in ((new, points), (points, new)))
        np.testing.assert_allclose(log_q, again, rtol=1e-7, atol=1e-7)
        proposal = call(kernel, "propose", points, noise(kernel, 50))
        np.testing.assert_allclose(proposal.points, new, atol=1e-10)
        np.testing.assert_allclose(proposal.log_correction, back - again, rtol=1e-6, atol=1e-6)
        if kernel.independent:
            elsewhere = call(kernel, "log_densities", new, points + 3.0)
            np.testing.assert_allclose(elsewhere, again, rtol=1e-7, atol=1e-7)


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
    propose = eqx.filter_jit(lambda kernel, *given: kernel.propose_with_density(*given))
    start = jnp.broadcast_to(point, (20_000, 2))
    new = np.asarray(propose(kernel, start, noise(kernel, 20_000, seed=5))[0])
    for cut in (-0.5, 0.0, 0.7):
        for axis in (0, 1):
            expected = mass[np.asarray(grid)[:, axis] > cut].sum()
            assert np.mean(new[:, axis] > cut) == pytest.approx(expected, abs=0.0175 + 0.005)
    both = mass[np.all(np.asarray(grid) > 0, axis=1)].sum()
    assert np.mean(np.all(new > 0, axis=1)) == pytest.approx(both, abs=0.0175 + 0.005)


@EVERY
def test_velocities_come_out_of_volume_preserving_kernels_alone(name):
    kernel = make(name)
    points = jnp.asarray(np.random.default_rng(0).normal(size=(50, 2)), float)
    _, velocities = call(kernel, "push", points, noise(kernel, 50))
    assert (velocities is not None) == kernel.volume_preserving


@EVERY_EXACT
def test_metropolis_with_an_exact_kernel_keeps_a_gaussian(name):
    """20,000 draws of N(0, I) after ten steps: first two moments, within 5 standard errors."""
    kernel, count = make(name), 20_000
    target = Target(lambda x: -0.5 * jnp.sum(x**2), 2)

    @eqx.filter_jit
    def run(kernel, points):
        transition = Transition(kernel, Whitening.identity(2), target)
        keys = jax.random.split(jax.random.key(1), count)
        return transition.block(transition.start(points), keys, jnp.uint32(0), 10)

    first = jnp.asarray(np.random.default_rng(3).normal(size=(count, 2)), float)
    state, steps = run(kernel, first)
    assert np.mean(steps.accepted) > 0.05
    moved = np.asarray(state.points, np.float64)
    assert np.mean(np.any(moved != np.asarray(first), axis=1)) > 0.3
    error = 5 / np.sqrt(count)
    np.testing.assert_allclose(moved.mean(axis=0), 0.0, atol=error)
    np.testing.assert_allclose((moved**2).mean(axis=0), 1.0, atol=np.sqrt(2) * error)
    assert abs(np.mean(moved[:, 0] * moved[:, 1])) < error
