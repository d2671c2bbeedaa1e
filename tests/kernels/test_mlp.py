"""The paper's generator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError
from salmc.kernels import MLPKernel


@eqx.filter_jit
def generate(kernel, points, given):
    return kernel.generate(points, given)


@eqx.filter_jit
def propose(kernel, points, given):
    return kernel.propose(points, given)


def start(n, dim, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, dim)), dtype=float)


def noise(kernel, n, seed=1):
    return start(n, kernel.noise_dim, seed)


@pytest.mark.parametrize("dim", [1, 2, 10])
@pytest.mark.parametrize("noise_scale", [1.0, 5.0])
def test_starts_near_the_standard_normal(dim, noise_scale):
    kernel = MLPKernel(jax.random.key(0), dim, noise_scale=noise_scale)
    new = np.asarray(propose(kernel, start(20_000, dim), noise(kernel, 20_000)).points)
    # The network starts small, not at zero: it adds about 0.1 √2 of the size of its inputs.
    np.testing.assert_allclose(np.mean(new, axis=0), 0.0, atol=0.15 * noise_scale)
    np.testing.assert_allclose(np.std(new, axis=0), 1.0, atol=0.2 * noise_scale)


def test_is_the_formula():
    kernel = MLPKernel(jax.random.key(0), 2, width=8, depth=2, extra_noise=1, components=0)
    x, given = start(4, 2, 1), start(4, 3, 2)
    hidden = np.concatenate([x, given], axis=1)
    *inner, last = zip(kernel.network.weights, kernel.network.biases, strict=True)
    for weight, bias in inner:
        hidden = hidden @ np.asarray(weight).T + np.asarray(bias)[:, 0]
        hidden = hidden / (1 + np.exp(-hidden))
    expected = hidden @ np.asarray(last[0]).T + np.asarray(last[1])[:, 0] + given[:, :2]
    np.testing.assert_allclose(generate(kernel, x, given), expected, atol=1e-5)
    np.testing.assert_allclose(generate(kernel, x[0], given[0]), expected[0], atol=1e-5)


def test_without_noise_the_chain_is_deterministic_and_looks_at_the_state():
    kernel = MLPKernel(jax.random.key(0), 2)
    x, still = start(6, 2), jnp.zeros((6, kernel.noise_dim))
    np.testing.assert_array_equal(generate(kernel, x, still), generate(kernel, x, still))
    assert not np.allclose(generate(kernel, x, still), generate(kernel, x + 1, still))


def test_noise_has_its_dimension_and_scale():
    kernel = MLPKernel(jax.random.key(0), 3, extra_noise=4, noise_scale=5.0)
    assert kernel.noise_dim == 8
    assert MLPKernel(jax.random.key(0), 3, extra_noise=4, components=0).noise_dim == 7
    x, given = start(50, 3), noise(kernel, 50)
    np.testing.assert_array_equal(kernel.propose(x, given).points, kernel.generate(x, 5.0 * given))
    assert kernel.propose(x, given).log_correction is None


def test_calibration_is_an_affine_map_of_the_output():
    kernel = MLPKernel(jax.random.key(0), 2)
    matrix, shift = jnp.array([[2.0, 1.0], [0.0, 0.5]]), jnp.array([1.0, -3.0])
    calibrated = kernel.with_calibration((matrix, shift))
    x, given = start(50, 2), noise(kernel, 50)
    expected = np.asarray(propose(kernel, x, given).points) @ np.asarray(matrix).T + shift
    # Sums of four terms of size 10, rounded: 4 · 10 · 6e-8.
    np.testing.assert_allclose(propose(calibrated, x, given).points, expected, atol=1e-5)


def test_training_leaves_the_calibration_alone_and_reaches_everything_else():
    kernel = MLPKernel(jax.random.key(0), 2)
    x, given = start(50, 2), noise(kernel, 50)
    loss = eqx.filter_grad(lambda kernel: jnp.sum(kernel.generate(x, given) ** 2))
    gradient = eqx.filter_jit(loss)(kernel)
    assert np.all(gradient.calibration_matrix == 0)
    assert np.all(gradient.calibration_shift == 0)
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(gradient.picked))
    for leaf in jax.tree.leaves((gradient.network, gradient.noise_matrix)):
        assert np.any(leaf != 0)


@pytest.mark.parametrize(("depth", "components"), [(1, 0), (3, 0), (1, 4), (3, 4)])
def test_forward_passes_are_proposals_one_after_the_other(depth, components):
    kernel = MLPKernel(
        jax.random.key(0), 3, depth=depth, width=16, noise_scale=2.0, components=components
    )
    generator = np.random.default_rng(0)
    kernel = jax.tree.map(
        lambda leaf: leaf + jnp.asarray(generator.normal(scale=0.3, size=leaf.shape), leaf.dtype),
        kernel,
    )
    given, points = start(4 * 5, kernel.noise_dim, 1).reshape(4, 5, -1), start(5, 3)

    @eqx.filter_jit
    def passes(kernel, points):
        inputs, step = kernel.forward_passes(given)
        return jax.lax.scan(lambda x, now: (step(now, x),) * 2, points, inputs)[1]

    for i, found in enumerate(passes(kernel, points)):
        expected = propose(kernel, points, given[i]).points
        points = found
        np.testing.assert_allclose(points, expected, rtol=1e-4, atol=1e-4)


def test_three_sets_of_weights_share_one_trace():
    traces = []

    @eqx.filter_jit
    def traced(kernel, points, given):
        traces.append(None)
        return kernel.propose(points, given)

    for seed in range(3):
        kernel = MLPKernel(jax.random.key(seed), 2)
        traced(kernel, start(5, 2), noise(kernel, 5))
    assert len(traces) == 1


def test_is_rebuilt_from_its_description():
    kernel = MLPKernel(jax.random.key(3), 2, width=8, depth=1, extra_noise=0, noise_scale=2.0)
    rebuilt = MLPKernel.from_description(kernel.description())
    assert rebuilt.description() == kernel.description()
    assert jax.tree.structure(rebuilt) == jax.tree.structure(kernel)
    assert [leaf.shape for leaf in jax.tree.leaves(rebuilt)] == [
        leaf.shape for leaf in jax.tree.leaves(kernel)
    ]


def two_places(components=4):
    """N((−10, 0), I / 100) of weight 0.2 and N((10, 0), …) of weight 0.8, correlated."""
    factors = np.array([0.1 * np.eye(2), [[0.1, 0.0], [0.3, 0.4]]])
    kernel = MLPKernel(jax.random.key(0), 2, components=components, noise_scale=2.0)
    return kernel.placed_at(np.array([0.2, 0.8]), np.array([[-10.0, 0.0], [10.0, 0.0]]), factors)


def test_no_draw_is_between_components_and_each_is_where_it_was_placed():
    kernel, count = two_places(), 20_000
    new = np.asarray(propose(kernel, start(count, 2), noise(kernel, count)).points)
    assert np.min(np.abs(new[:, 0])) > 9.0
    left, right = new[new[:, 0] < 0], new[new[:, 0] > 0]
    # Four standard errors of a share of 0.2: 4 √(0.16 / 20000).
    assert abs(len(left) / count - 0.2) < 0.0115
    np.testing.assert_allclose(np.mean(left, axis=0), [-10.0, 0.0], atol=0.02)
    np.testing.assert_allclose(np.std(left, axis=0), 0.1, atol=0.02)
    np.testing.assert_allclose(np.mean(right, axis=0), [10.0, 0.0], atol=0.05)
    np.testing.assert_allclose(np.cov(right.T), [[0.01, 0.03], [0.03, 0.25]], atol=0.03)


def test_components_that_are_not_in_use_are_never_picked():
    kernel = two_places()
    assert kernel.picked.used == 2
    assert not kernel.connected
    ends = kernel.picked.pick(jnp.array([-40.0, -0.85, -0.83, 6.0, 40.0]))
    np.testing.assert_array_equal(ends, [0, 0, 1, 1, 1])
    assert MLPKernel(jax.random.key(0), 2).connected


def test_a_description_from_before_there_were_components_has_none():
    before = {"dim": 2, "width": 8, "depth": 1, "extra_noise": 2, "noise_scale": 1.0}
    kernel = MLPKernel.from_description(before)
    assert kernel.picked is None
    assert [leaf.shape for leaf in jax.tree.leaves(kernel)] == [
        (8, 6),
        (2, 8),
        (8, 1),
        (2, 1),
        (2, 4),
        (2, 2),
        (2,),
    ]


@pytest.mark.parametrize(
    "options",
    [{"extra_noise": -1}, {"noise_scale": 0.0}, {"width": 0}, {"components": -1}],
)
def test_bad_options_are_met_at_the_door(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        MLPKernel(jax.random.key(0), 2, **options)
