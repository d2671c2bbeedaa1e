"""The Target contract's own code: the user's functions, black boxes and the door check."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError, NotDifferentiableError, TargetError
from salmc.movers.base import check_at
from salmc.target import AbstractTarget, Moments, Target, zero_where_invalid


def standard_normal(dim: int = 2, **options) -> Target:
    return Target(lambda x: -0.5 * jnp.sum(x**2), dim, **options)


def numpy_normal(points: np.ndarray) -> np.ndarray:
    return -0.5 * np.sum(points**2, axis=1)


POINTS = jnp.array([[0.0, 0.0], [1.0, 2.0], [-3.0, 0.5]])
VALUES = -0.5 * np.sum(np.asarray(POINTS) ** 2, axis=1)


def test_a_function_becomes_a_target():
    target = standard_normal()
    np.testing.assert_allclose(target.log_densities(POINTS), VALUES, rtol=1e-6)
    np.testing.assert_allclose(target.gradients(POINTS), -POINTS, rtol=1e-6)
    assert target.name == "target"
    assert target.names == ("x0", "x1")
    assert target.differentiable
    assert not target.can_sample
    assert target.mean is None
    assert target.statistic_moments is None
    assert target.component_weights is None
    assert target.minibatch(jax.random.key(0)) is target
    assert np.array_equal(target.statistic(POINTS), POINTS)
    assert set(target.constrain(POINTS[0])) == {"x"}


def test_known_truth_is_passed_on():
    target = standard_normal(
        names=["a", "b"],
        mean=[0, 0],
        std=np.ones(2),
        sample=lambda key, n: jax.random.normal(key, (n, 2)),
        constrain=lambda x: {"a": x[0], "b": x[1]},
    )
    assert target.names == ("a", "b")
    assert target.can_sample
    assert target.sample(jax.random.key(0), 5).shape == (5, 2)
    assert isinstance(target.statistic_moments, Moments)
    assert target.mean.dtype == jnp.float32
    assert float(target.constrain(POINTS[1])["b"]) == 2.0


def test_what_is_not_known_is_said():
    target = standard_normal(name="mine")
    with pytest.raises(TargetError, match="`mine` has no exact draws"):
        target.sample(jax.random.key(0), 5)
    with pytest.raises(TargetError, match="`mine` has no labelled modes"):
        target.component(POINTS)


def test_draws_of_the_wrong_shape_are_refused():
    target = standard_normal(sample=lambda key, n: jax.random.normal(key, (n,)))
    with pytest.raises(TargetError, match=r"must have shape \(4, 2\). Got \(4,\)"):
        target.sample(jax.random.key(0), 4)


@pytest.mark.parametrize("value", [0.0, 1])
def test_a_python_number_is_a_scalar_too(value):
    target = Target(lambda x: value, 2)
    assert target.log_densities(POINTS).dtype == jnp.float32


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 0}, "`dim` argument must be a whole number of at least 1. Got 0"),
        ({"dim": True}, "`dim` argument must be a whole number"),
        ({"names": ("a",)}, "`names` argument must be 2 names"),
        ({"mean": [1.0]}, "`mean` argument must be an array of shape"),
        ({"std": [[1.0, 1.0]]}, "`std` argument must be an array of shape"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        Target(lambda x: jnp.sum(x), **{"dim": 2, **options})


def test_invalid_values_count_as_zero_density():
    values = jnp.array([1.0, jnp.nan, jnp.inf, -jnp.inf])
    assert zero_where_invalid(values).tolist() == [1.0, -np.inf, -np.inf, -np.inf]
    target = Target(lambda x: jnp.log(x[0]) / x[1], 2)
    points = jnp.array([[-1.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    assert target.log_densities(points).tolist() == [-np.inf, -np.inf, 0.0]


class TestFromNumpy:
    def test_values_under_jit_vmap_and_loops(self):
        target = Target.from_numpy(numpy_normal, 2)
        assert not target.differentiable
        np.testing.assert_allclose(target.log_densities(POINTS), VALUES, rtol=1e-6)
        np.testing.assert_allclose(jax.jit(target.log_densities)(POINTS), VALUES, rtol=1e-6)
        np.testing.assert_allclose(target.log_density(POINTS[1]), VALUES[1], rtol=1e-6)
        twice = jax.jit(jax.vmap(target.log_densities))(jnp.stack([POINTS, POINTS]))
        np.testing.assert_allclose(twice, np.stack([VALUES, VALUES]), rtol=1e-6)

        def body(_, points):
            return points + 0.0 * target.log_densities(points)[:, None]

        looped = jax.jit(lambda x: jax.lax.fori_loop(0, 3, body, x))(POINTS)
        np.testing.assert_allclose(looped, POINTS)

    def test_one_call_for_a_whole_batch(self):
        shapes = []

        def log_densities(points):
            shapes.append(points.shape)
            return numpy_normal(points)

        target = Target.from_numpy(log_densities, 2)
        jax.block_until_ready(jax.jit(target.log_densities)(jnp.zeros((50, 2))))
        assert shapes == [(50, 2)]

    def test_the_function_gets_numpy_arrays(self):
        kinds = []

        def log_densities(points):
            kinds.append(type(points))
            return numpy_normal(points)

        jax.block_until_ready(Target.from_numpy(log_densities, 2).log_densities(POINTS))
        assert kinds == [np.ndarray]

    def test_no_gradient_is_said_in_a_sentence(self):
        target = Target.from_numpy(numpy_normal, 2, name="box")
        with pytest.raises(NotDifferentiableError, match=r"gradient .* `box` does not have"):
            target.gradients(POINTS)
        with pytest.raises(NotDifferentiableError, match="sgld needs the gradient"):
            target.require_gradient("sgld")
        with pytest.raises(NotDifferentiableError, match=r"jax.grad needs the gradient .* `box`"):
            jax.grad(target.log_density)(POINTS[0])
        with pytest.raises(NotDifferentiableError, match="`box`"):
            jax.jit(jax.vmap(jax.grad(target.log_density)))(POINTS)

    def test_differentiable_cannot_be_claimed(self):
        assert not Target.from_numpy(numpy_normal, 2, differentiable=True).differentiable

    @pytest.mark.parametrize(
        ("function", "shape"),
        [
            (lambda points: points, r"shape \(3, 2\)"),
            (lambda points: 1.0, r"shape \(\)"),
            (lambda points: numpy_normal(points)[:, None], r"shape \(3, 1\)"),
            (lambda points: None, "NoneType"),
        ],
    )
    def test_wrong_shapes(self, function, shape):
        target = Target.from_numpy(function, 2, name="box")
        expectation = rf"`box` failed: .* shape \(3,\) .* Got {shape} instead"
        with pytest.raises(TargetError, match=expectation):
            check_at(target, POINTS)

    def test_the_users_own_error_comes_through(self):
        def log_densities(points):
            raise KeyError("no such column")

        target = Target.from_numpy(log_densities, 2, name="box")
        with pytest.raises(TargetError, match="`box` failed: KeyError: 'no such column'") as caught:
            check_at(target, POINTS)
        assert "\n" not in str(caught.value)

    def test_invalid_values(self):
        target = Target.from_numpy(lambda p: np.array([np.nan, np.inf, 1.0]), 2)
        assert target.log_densities(POINTS).tolist() == [-np.inf, -np.inf, 1.0]


class TestCheckAt:
    def test_a_good_target_passes_and_a_few_bad_points_do(self):
        check_at(standard_normal(), POINTS)
        check_at(Target(lambda x: jnp.log(x[0]), 2), POINTS)

    @pytest.mark.parametrize(
        ("function", "message"),
        [
            (lambda x: x, r"must return a scalar for one point of shape \(2,\). Got shape \(2,\)"),
            (lambda x: jnp.sum(x)[None], r"Got shape \(1,\) instead"),
            (lambda x: None, "Got NoneType instead"),
            (lambda x: (0.0, 1.0), "Got tuple instead"),
            (lambda x: 1 / jnp.sum(x**2), r"is \+inf at \[0.0, 0.0\]"),
            (lambda x: jnp.nan * x[0], "is NaN at all 3 starting points"),
            (lambda x: jnp.where(x[0] > 9, 0.0, -jnp.inf), "is zero at all 3 starting points"),
            (lambda x: jnp.where(x[0] > 0, jnp.nan, -jnp.inf), "is zero at all 3"),
        ],
    )
    def test_bad_targets(self, function, message):
        with pytest.raises(TargetError, match=message):
            check_at(Target(function, 2, name="mine"), POINTS)

    def test_a_class_of_the_users_own(self):
        class Vector(AbstractTarget):
            dim: int = 2
            name: str = "vector"

            def log_density(self, x):
                return x

        with pytest.raises(TargetError, match="`vector` must return a scalar"):
            check_at(Vector(), POINTS)


def test_many_parameters_share_one_trace():
    """A model with array fields as log density: its numbers are arguments, not constants."""

    class Model(eqx.Module):
        centre: jax.Array

        def __call__(self, x):
            return -jnp.sum((x - self.centre) ** 2)

    traces = []

    @eqx.filter_jit
    def evaluate(target, x):
        traces.append(None)
        return target.log_density(x)

    values = [evaluate(Target(Model(jnp.full(2, c)), 2), jnp.zeros(2)) for c in (0.0, 1.0)]
    assert [float(v) for v in values] == [0.0, -2.0]
    assert len(traces) == 1
