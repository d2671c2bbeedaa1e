import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError, NotDifferentiableError
from salmc.target import Target
from salmc.targets import Affine, Gaussian, Mog2, Posterior, Ring5


def test_an_affine_gaussian_is_a_gaussian():
    covariance = np.array([[2.0, -0.7], [-0.7, 0.5]])
    scale, shift = np.array([3.0, -0.2]), np.array([100.0, 1.0])
    changed = Affine(Gaussian([1.0, -3.0], covariance), shift, scale)
    direct = Gaussian(shift + scale * [1.0, -3.0], np.outer(scale, scale) * covariance)
    points = direct.sample(jax.random.key(0), 20)
    np.testing.assert_allclose(
        changed.log_densities(points), direct.log_densities(points), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(changed.mean, direct.mean, rtol=1e-6)
    np.testing.assert_allclose(changed.std, direct.std, rtol=1e-6)


def test_a_scalar_serves_all_coordinates():
    changed = Affine(Mog2(), 2.0, 3.0)
    np.testing.assert_allclose(changed.mean, [2.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(changed.std, 3 * Mog2().std, rtol=1e-6)  # ε = 1.2e-7
    assert changed.name == "mog2"
    assert Affine(Mog2(), name="other").name == "other"


def test_statistic_and_modes_are_those_of_the_target_within():
    inner = Ring5()
    changed = Affine(inner, [1.0, -2.0], [0.1, 10.0])
    draws = inner.sample(jax.random.key(0), 50)
    moved = changed.forward(draws)
    np.testing.assert_array_equal(changed.sample(jax.random.key(0), 50), moved)
    np.testing.assert_allclose(changed.inverse(moved), draws, atol=1e-5)
    np.testing.assert_allclose(changed.statistic(moved), inner.statistic(draws), atol=1e-5)
    np.testing.assert_array_equal(changed.statistic_moments.std, inner.statistic_moments.std)
    np.testing.assert_array_equal(changed.component(moved), inner.component(draws))
    np.testing.assert_array_equal(changed.component_weights, inner.component_weights)


def test_what_the_inner_target_cannot_do():
    box = Target.from_numpy(lambda points: -np.sum(points**2, axis=1), 2, name="box")
    changed = Affine(box, 1.0, 2.0)
    assert changed.mean is None
    assert changed.std is None
    assert changed.statistic_moments is None
    assert not changed.can_sample
    with pytest.raises(NotDifferentiableError, match="`box`"):
        changed.gradients(jnp.zeros((1, 2)))
    expected = -2 - 2 * np.log(2)
    np.testing.assert_allclose(changed.log_densities(jnp.full((1, 2), 3.0)), expected, rtol=1e-6)


def test_own_variables_and_names_come_from_within():
    tree = Target.from_pytree(lambda t: -(t["a"] ** 2) - t["b"] ** 2, {"a": 0.0, "b": 0.0})
    changed = Affine(tree, [1.0, 2.0], [10.0, 100.0])
    assert changed.names == ("a", "b")
    values = changed.constrain(jnp.array([21.0, 302.0]))
    assert [float(values[name]) for name in ("a", "b")] == [2.0, 3.0]


def test_minibatches_of_the_target_within():
    inner = Posterior(
        lambda x: 0.0 * x[0], lambda x, y: -((x[0] - y) ** 2), jnp.arange(10.0), dim=1, batch_size=2
    )
    view = Affine(inner, 1.0, 2.0).minibatch(jax.random.key(3))
    x = jnp.array([5.0])
    expected = inner.minibatch(jax.random.key(3)).log_density(jnp.array([2.0])) - np.log(2)
    np.testing.assert_allclose(view.log_density(x), expected, rtol=1e-6)


def test_scale_can_be_traced():
    value = jax.jit(lambda s: Affine(Mog2(), 0.0, s).log_density(jnp.zeros(2)))(2.0)
    expected = Affine(Mog2(), 0.0, 2.0).log_density(jnp.zeros(2))
    np.testing.assert_allclose(value, expected, rtol=2e-6)  # a dozen roundings of ε = 1.2e-7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.0}, "`scale` argument must be other than zero"),
        ({"scale": [1.0, 0.0]}, "`scale` argument must be other than zero"),
        ({"scale": [1.0, 1.0, 1.0]}, r"`scale` argument must be a number or .* shape \(2,\)"),
        ({"shift": np.inf}, "`shift` argument must be a finite number"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ArgumentError, match=message):
        Affine(Mog2(), **options)
