"""One suite that every registered mover passes."""

import importlib
import inspect
import pkgutil

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc.movers
from salmc.errors import ArgumentError, NotDifferentiableError
from salmc.movers import MOVERS
from salmc.movers.base import AbstractMover, Info
from salmc.target import AbstractTarget, Target


@pytest.fixture(autouse=True, scope="module")
def _quick_compilation():
    """Most of the time here is compilation of programs that then run for milliseconds."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


EVERY = pytest.mark.parametrize("name", sorted(MOVERS))


def steps(mover, particles, seed, count):
    """The state after `count` steps; as arrays, seed and count share one compilation."""
    return _steps(mover, particles, jnp.asarray(seed), jnp.asarray(count))


@eqx.filter_jit
def _steps(mover, particles, seed, count):
    init_key, step_key = jax.random.split(jax.random.key(seed))
    dynamic, static = eqx.partition(mover.init(init_key, particles), eqx.is_array)

    def body(i, dynamic):
        state, _ = mover.step(jax.random.fold_in(step_key, i), eqx.combine(dynamic, static))
        return eqx.filter(state, eqx.is_array)

    return eqx.combine(jax.lax.fori_loop(0, count, body, dynamic), static)


def cloud(count, dim, seed=0):
    return 1.6 * jax.random.normal(jax.random.key(seed), (count, dim))


class Gaussian(AbstractTarget):
    """A correlated Gaussian whose place, width and edges are arrays: all share one compilation."""

    mean_: jax.Array
    std_: jax.Array
    left: jax.Array
    top: jax.Array
    dim: int = eqx.field(static=True)
    name: str = eqx.field(static=True, default="gaussian")

    def log_density(self, x):
        z = (x - self.mean_) / self.std_
        # NaN with a NaN gradient on the left, and −inf above.
        inside = -0.5 * jnp.sum(z**2) + 0.0 * jnp.sqrt(x[0] - self.left)
        inside = inside - 0.25 * (z[0] - z[-1]) ** 2
        return jnp.where(x[-1] < self.top, inside, -jnp.inf)


def gaussian(dim=2, mean=0.0, std=1.0, left=-1e30, top=jnp.inf):
    mean, std = jnp.zeros(dim) + jnp.asarray(mean), jnp.ones(dim) * jnp.asarray(std)
    return Gaussian(mean, std, jnp.asarray(left), jnp.asarray(top), dim)


def scalar_settings(mover):
    return [
        field
        for field, value in vars(mover).items()
        if eqx.is_inexact_array(value) and value.ndim == 0
    ]


def test_every_mover_of_the_package_is_registered():
    found = set()
    for module in pkgutil.iter_modules(salmc.movers.__path__, "salmc.movers."):
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(member, AbstractMover) and not inspect.isabstract(member):
                found.add(member)
    assert found == set(MOVERS.values())


@EVERY
def test_it_describes_itself(name):
    mover_class = MOVERS[name]
    assert mover_class.name == name
    assert mover_class.kind in ("chains", "particles")
    assert 10 < len(mover_class.explanation) < 80
    assert isinstance(mover_class.requires_gradient, bool)
    parameters = list(inspect.signature(mover_class).parameters.values())
    assert parameters[0].name == "target"
    assert all(p.default is not inspect.Parameter.empty for p in parameters[1:])


@EVERY
@pytest.mark.parametrize("dim", [1, 10])
def test_shapes_and_types_are_kept_and_particles_stay_finite(name, dim):
    mover = MOVERS[name](gaussian(dim))
    start = cloud(40, dim)
    key = jax.random.key(0)
    before = eqx.filter_eval_shape(mover.init, key, start)
    after, info = eqx.filter_eval_shape(mover.step, key, before)
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
    assert isinstance(info, Info)
    assert info.displacement.shape == ()
    end = steps(mover, start, 0, 50).particles
    assert end.shape == start.shape
    assert end.dtype == start.dtype
    assert np.all(np.isfinite(end))
    assert not np.allclose(end, start)


@EVERY
def test_the_same_key_gives_the_same_particles(name):
    mover = MOVERS[name](gaussian())
    first, again = (steps(mover, cloud(60, 2), 3, 20).particles for _ in range(2))
    np.testing.assert_array_equal(first, again)


@EVERY
def test_one_particle_and_a_common_start_stay_finite(name):
    mover = MOVERS[name](gaussian())
    assert np.all(np.isfinite(steps(mover, jnp.ones((1, 2)), 0, 30).particles))
    assert np.all(np.isfinite(steps(mover, jnp.ones((60, 2)), 0, 30).particles))


@EVERY
def test_step_compiles_once_for_all_steps_and_settings(name):
    traces = []

    def log_density(x):
        traces.append(1)
        return -0.5 * jnp.sum(x**2)

    target = Target(log_density, 2)
    step = eqx.filter_jit(lambda mover, key, state: mover.step(key, state))
    default = MOVERS[name](target)
    state = eqx.filter_jit(default.init)(jax.random.key(0), cloud(30, 2))
    state, _ = step(default, jax.random.key(0), state)
    compiled = len(traces)
    assert compiled > 0
    for factor in (0.5, 0.8):
        changed = {field: factor * getattr(default, field) for field in scalar_settings(default)}
        mover = MOVERS[name](target, **changed)
        for seed in range(3):
            state, _ = step(mover, jax.random.key(seed), state)
    assert len(traces) == compiled


@EVERY
def test_scale_of_target_and_start_carries_over(name):
    """The same draws in other units.

    In double precision, here and below: rounding may change the sign of a direction near zero, or
    the parent of a birth, with a chance of some 1e-13 in place of 1e-4. Else it grows, to 1e-12
    in ten steps of AG-SVGD and SMC; by a thousand in the next ten of SMC.
    """
    with jax.enable_x64(True):
        scale = jnp.array([4.0, 0.125])
        start = cloud(60, 2)
        expected = steps(MOVERS[name](gaussian()), start, 0, 10).particles
        found = steps(MOVERS[name](gaussian(std=scale)), start * scale, 0, 10).particles / scale
        assert found.dtype == jnp.float64
        np.testing.assert_allclose(found, expected, atol=1e-9)


@EVERY
def test_shift_of_target_and_start_carries_over(name):
    with jax.enable_x64(True):
        scale, shift = jnp.array([4.0, 0.125]), jnp.array([8.0, -1.0])
        start = cloud(60, 2)
        expected = steps(MOVERS[name](gaussian()), start, 0, 10).particles
        moved = MOVERS[name](gaussian(mean=shift, std=scale))
        found = (steps(moved, start * scale + shift, 0, 10).particles - shift) / scale
        np.testing.assert_allclose(found, expected, atol=1e-9)


@EVERY
def test_it_moves_toward_the_target(name):
    """The mean's error, 2 spreads at the start, falls below half of that in 600 steps.

    The mean of 60 independent draws has a standard error of 0.13 spreads: half is 7 of them.
    """
    mean, std = jnp.array([40.0, -0.2]), jnp.array([10.0, 0.1])
    start = mean + std * (2.0 + jax.random.normal(jax.random.key(0), (60, 2)))
    end = steps(MOVERS[name](gaussian(mean=mean, std=std)), start, 0, 600).particles
    error = jnp.abs(jnp.mean(end, axis=0) - mean) / std
    assert float(jnp.max(error)) < 1.0


@EVERY
def test_a_start_far_out_does_not_explode(name):
    """Gradients of 10⁴ in units of the start: the cloud stays within a few dozen spreads."""
    mover = MOVERS[name](gaussian(std=0.01))
    end = steps(mover, cloud(60, 2), 0, 100).particles
    assert float(jnp.max(jnp.abs(end))) < 50.0


@EVERY
def test_gradients_are_used_only_where_declared(name):
    box = Target.from_numpy(lambda points: -0.5 * np.sum(points**2, axis=1), 2)
    if MOVERS[name].requires_gradient:
        with pytest.raises(NotDifferentiableError, match=name):
            MOVERS[name](box)
    else:
        # `pure_callback` has no derivative: differentiating it raises.
        assert np.all(np.isfinite(steps(MOVERS[name](box), cloud(30, 2), 0, 5).particles))


@EVERY
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "fast", [0.1, 0.2], True])
def test_a_bad_setting_is_an_argument_error(name, value):
    target = gaussian()
    fields = scalar_settings(MOVERS[name](target))
    assert fields
    for field in fields:
        with pytest.raises(ArgumentError, match=field):
            MOVERS[name](target, **{field: value})


@EVERY
def test_an_unknown_setting_is_an_error(name):
    with pytest.raises(TypeError):
        MOVERS[name](gaussian(), stepsize=0.1)


@EVERY
def test_regions_of_zero_density_do_not_make_nan(name):
    """Together about half of the start is there."""
    target, start = gaussian(left=-0.5, top=1.5), cloud(60, 2)
    assert 0.3 < np.mean(np.isfinite(target.log_densities(start))) < 0.7
    assert np.all(np.isfinite(steps(MOVERS[name](target), start, 0, 50).particles))


class Data(AbstractTarget):
    """The mean of Gaussian data, in minibatches of 10 of 100."""

    data: jax.Array
    weight: float = eqx.field(static=True, default=1.0)
    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="data")

    def log_density(self, x):
        return -0.5 * self.weight * jnp.sum((x - self.data) ** 2)

    def minibatch(self, key):
        rows = jax.random.choice(key, len(self.data), (10,), replace=False)
        return Data(self.data[rows], weight=10.0)


@EVERY
def test_minibatches_move_toward_the_posterior(name):
    data = 3.0 + jax.random.normal(jax.random.key(0), (100, 2))
    end = steps(MOVERS[name](Data(data)), cloud(60, 2), 0, 800).particles
    # The posterior is N(mean, 0.1² I); the start is 3 away. One minibatch moves the whole cloud:
    # over seeds its mean has an sd of 0.25 for SGHMC, and of up to 0.12 for the others.
    atol = 5 * 0.25 if name == "sghmc" else 4 * 0.12
    np.testing.assert_allclose(jnp.mean(end, axis=0), jnp.mean(data, axis=0), atol=atol)
