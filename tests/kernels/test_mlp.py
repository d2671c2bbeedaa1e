"""The paper's generator."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError
from salmc.kernels import MLPKernel


def start(n, dim, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(n, dim)), dtype=float)


@pytest.mark.parametrize("dim", [1, 2, 10])
@pytest.mark.parametrize("noise_scale", [1.0, 5.0])
def test_starts_near_the_standard_normal(dim, noise_scale):
    kernel = MLPKernel(jax.random.key(0), dim, noise_scale=noise_scale)
    new = np.asarray(kernel.propose_batch(jax.random.key(1), start(20_000, dim)))
    # The network starts small, not at zero: it adds about 0.1 √2 of the size of its inputs.
    np.testing.assert_allclose(np.mean(new, axis=0), 0.0, atol=0.15 * noise_scale)
    np.testing.assert_allclose(np.std(new, axis=0), 1.0, atol=0.2 * noise_scale)


def test_is_the_formula():
    kernel = MLPKernel(jax.random.key(0), 2, width=8, depth=2, extra_noise=1)
    x, noise = start(4, 2, 1), start(4, 3, 2)
    hidden = np.concatenate([x, noise], axis=1)
    *inner, last = zip(kernel.network.weights, kernel.network.biases, strict=True)
    for weight, bias in inner:
        hidden = hidden @ np.asarray(weight).T + np.asarray(bias)[:, 0]
        hidden = hidden / (1 + np.exp(-hidden))
    expected = hidden @ np.asarray(last[0]).T + np.asarray(last[1])[:, 0] + noise[:, :2]
    np.testing.assert_allclose(kernel.generate(x, noise), expected, atol=1e-5)
    np.testing.assert_allclose(kernel.generate(x[0], noise[0]), expected[0], atol=1e-5)


def test_without_noise_the_chain_is_deterministic_and_looks_at_the_state():
    kernel = MLPKernel(jax.random.key(0), 2)
    x, still = start(6, 2), jnp.zeros((6, kernel.noise_dim))
    np.testing.assert_array_equal(kernel.generate(x, still), kernel.generate(x, still))
    assert not np.allclose(kernel.generate(x, still), kernel.generate(x + 1, still))


def test_noise_has_its_dimension_and_scale():
    kernel = MLPKernel(jax.random.key(0), 3, extra_noise=4, noise_scale=5.0)
    noise = kernel.sample_noise(jax.random.key(1), 20_000)
    assert noise.shape == (20_000, kernel.noise_dim) == (20_000, 7)
    # Standard error of a standard deviation from 20 000 draws: 0.5 %.
    np.testing.assert_allclose(np.std(noise, axis=0), 5.0, rtol=0.025)


def test_calibration_is_an_affine_map_of_the_output():
    kernel = MLPKernel(jax.random.key(0), 2)
    matrix, shift = jnp.array([[2.0, 1.0], [0.0, 0.5]]), jnp.array([1.0, -3.0])
    calibrated = eqx.tree_at(
        lambda kernel: (kernel.calibration_matrix, kernel.calibration_shift),
        kernel,
        (matrix, shift),
    )
    x, key = start(50, 2), jax.random.key(1)
    expected = np.asarray(kernel.propose_batch(key, x)) @ np.asarray(matrix).T + np.asarray(shift)
    np.testing.assert_allclose(calibrated.propose_batch(key, x), expected, atol=1e-5)


def test_training_leaves_the_calibration_alone_and_reaches_everything_else():
    kernel = MLPKernel(jax.random.key(0), 2)
    x, noise = start(50, 2), kernel.sample_noise(jax.random.key(1), 50)
    gradient = eqx.filter_grad(lambda kernel: jnp.sum(kernel.generate(x, noise) ** 2))(kernel)
    assert np.all(gradient.calibration_matrix == 0)
    assert np.all(gradient.calibration_shift == 0)
    for leaf in jax.tree.leaves((gradient.network, gradient.noise_matrix)):
        assert np.any(leaf != 0)


def test_one_point_and_batches_agree():
    kernel, key = MLPKernel(jax.random.key(0), 2), jax.random.key(1)
    x = start(1, 2)
    np.testing.assert_array_equal(kernel.propose(key, x[0]), kernel.propose_batch(key, x)[0])


@pytest.mark.parametrize("depth", [1, 3])
def test_forward_passes_are_proposals_one_after_the_other(depth):
    kernel = MLPKernel(jax.random.key(0), 3, depth=depth, width=16, noise_scale=2.0)
    generator = np.random.default_rng(0)
    kernel = jax.tree.map(
        lambda leaf: leaf + jnp.asarray(generator.normal(scale=0.3, size=leaf.shape), leaf.dtype),
        kernel,
    )
    keys, points = jax.random.split(jax.random.key(1), 4), start(5, 3)
    inputs, step = kernel.forward_passes(keys, 5)
    for i, key in enumerate(keys):
        expected = kernel.propose_batch(key, points)
        points = step(inputs[i], points)
        np.testing.assert_allclose(points, expected, rtol=1e-4, atol=1e-4)


def test_three_sets_of_weights_share_one_trace():
    traces = []

    @eqx.filter_jit
    def propose(kernel, key, points):
        traces.append(None)
        return kernel.propose_batch(key, points)

    for seed in range(3):
        propose(MLPKernel(jax.random.key(seed), 2), jax.random.key(0), start(5, 2))
    assert len(traces) == 1


def test_is_rebuilt_from_its_description():
    kernel = MLPKernel(jax.random.key(3), 2, width=8, depth=1, extra_noise=0, noise_scale=2.0)
    rebuilt = MLPKernel.from_description(kernel.description())
    assert rebuilt.description() == kernel.description()
    assert jax.tree.structure(rebuilt) == jax.tree.structure(kernel)
    assert [leaf.shape for leaf in jax.tree.leaves(rebuilt)] == [
        leaf.shape for leaf in jax.tree.leaves(kernel)
    ]


@pytest.mark.parametrize("options", [{"extra_noise": -1}, {"noise_scale": 0.0}, {"width": 0}])
def test_bad_options_are_met_at_the_door(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        MLPKernel(jax.random.key(0), 2, **options)
