"""Evidence and weights: known log Z, errors that hold, and refusals."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.sampling.importance import limit_of, smoothed


def gaussian(dim, shift=0.0):
    """N(1, I) times e^shift: log Z = (dim/2) log 2π + shift."""
    return salmc.Target(lambda x: shift - 0.5 * jnp.sum((x - 1.0) ** 2), dim)


def sampler_of(target, scale):
    """An untrained flow: about N(0, I), whitened by a scale that is not the target's."""
    dim = target.dim
    sizes = {"layers": 1, "width": 4, "knots": 4, "radial_knots": 4}
    kernel = salmc.kernels.FlowKernel(jax.random.key(0), dim=dim, **sizes)
    whitening = salmc.kernels.Whitening(
        jnp.full(dim, 1.0), jnp.eye(dim) / scale, jnp.eye(dim) * scale
    )
    return salmc.Sampler(kernel, target, whitening, np.ones((1, dim)))


# Fewest and most; those between with the long tests.
@pytest.fixture(scope="module", params=[2, pytest.param(10, marks=pytest.mark.slow), 25])
def case(request):
    target = gaussian(request.param, shift=3.0)
    truth = 0.5 * request.param * math.log(2 * math.pi) + 3.0
    sampler = sampler_of(target, 1.25)
    return truth, sampler.sample(chains=8, draws=500, progress=False)


def test_bridge_sampling_finds_the_evidence(case):
    truth, draws = case
    found = draws.log_evidence(n=4000)
    assert found.method == "bridge"
    assert found.trustworthy
    assert 0 < found.standard_error < 0.1
    assert abs(found.value - truth) < 4 * found.standard_error
    assert f"{found.value:.3f}" in str(found)


def test_importance_sampling_finds_the_evidence(case):
    truth, draws = case
    forward = draws.sampler.sample(chains=4, draws=50, metropolis=False, progress=False)
    found = forward.log_evidence(n=4000)
    assert found.method == "importance"
    assert abs(found.value - truth) < 4 * found.standard_error


def test_the_error_is_the_error():
    """z-scores over 40 seeds have a mean square of 1, within four standard errors, √(2/40) each."""
    target = gaussian(2)
    draws = sampler_of(target, 1.25).sample(chains=8, draws=200, metropolis=False, progress=False)
    truth = math.log(2 * math.pi)
    found = [draws.log_evidence(n=1000, seed=seed) for seed in range(40)]
    z = np.array([(one.value - truth) / one.standard_error for one in found])
    assert 0.3 < np.mean(z**2) < 1 + 4 * math.sqrt(2 / 40)


def test_too_narrow_a_kernel_is_refused():
    draws = sampler_of(gaussian(10), 0.3).sample(chains=8, draws=100, progress=False)
    found = draws.log_evidence(n=2000)
    assert not found.trustworthy
    assert math.isnan(found.value)
    assert "Pareto k̂" in str(found)
    weighted = draws.sampler.importance_sample(2000)
    assert any("mean nothing" in warning for warning in weighted.warnings)


def test_bounds_do_not_change_the_evidence():
    """x > 0 with density e^−x, twice: Z = 1, though q is over log x."""
    target = salmc.Target(lambda x: -jnp.sum(x), 2, bounds=[(0, None), (0, None)])
    sampler = sampler_of(target, 1.6)
    found = sampler.sample(chains=8, draws=500, progress=False).log_evidence(n=4000)
    assert abs(found.value) < 4 * found.standard_error


def test_weights_are_right():
    weighted = sampler_of(gaussian(2), 1.4).importance_sample(4000, seed=1)
    assert weighted.weights.sum() == pytest.approx(1.0)
    assert 1000 < weighted.effective < 4000
    error = 1 / math.sqrt(weighted.effective)
    assert np.all(np.abs(weighted.mean() - 1.0) < 4 * error)
    assert np.all(np.abs(weighted.sd() - 1.0) < 4 * error)
    again = weighted.resample(2000)
    assert again.positions.shape == (1, 2000, 2)
    assert np.all(np.abs(again.positions[0].mean(axis=0) - weighted.mean()) < 0.1)
    assert again.to_arviz().posterior.x.shape == (1, 2000, 2)


def test_means_are_of_the_users_variables():
    """log τ ~ N(1, 1) by its exponential: E τ = e^1.5, with a standard error of a few percent."""
    target = salmc.Target(
        lambda x: -0.5 * jnp.sum((x - 1.0) ** 2),
        2,
        constrain=lambda x: {"tau": jnp.exp(x[0]), "both": jnp.stack([x[1], -x[1]])},
    )
    weighted = sampler_of(target, 1.4).importance_sample(4000)
    assert weighted.names == ("tau", "both[0]", "both[1]")
    error = math.sqrt(math.exp(3.0) * (math.e - 1.0) * 2.0 / weighted.effective)
    assert weighted.mean()[0] == pytest.approx(math.exp(1.5), abs=4 * error)
    assert weighted.mean()[1:] == pytest.approx([1.0, -1.0], abs=0.1)
    assert weighted.sd()[1:] == pytest.approx([1.0, 1.0], abs=0.1)


def test_equal_weights_and_zero_ones():
    weights, shape = smoothed(np.array([0.5, 0.5, -np.inf, 0.5]))
    np.testing.assert_allclose(np.exp(weights), [1 / 3, 1 / 3, 0, 1 / 3])
    assert shape == -math.inf
    assert limit_of(10**6) == 0.7
    assert limit_of(100) == 0.5


def test_who_cannot_be_weighted():
    dim = 2
    kernel = salmc.kernels.MLPKernel(jax.random.key(0), dim)
    whitening = salmc.kernels.Whitening.identity(dim)
    implicit = salmc.Sampler(kernel, gaussian(dim), whitening, np.zeros((1, dim)))
    with pytest.raises(salmc.ArgumentError, match="kernel of known density"):
        implicit.importance_sample()
    lost = salmc.Sampler(sampler_of(gaussian(dim), 1.0).kernel, None, whitening, np.zeros((1, dim)))
    with pytest.raises(salmc.TargetError, match="loaded without its target"):
        lost.importance_sample()
    nowhere = sampler_of(salmc.Target(lambda x: jnp.sum(x) * 0 - jnp.inf, dim), 1.0)
    with pytest.raises(salmc.TargetError, match="zero or NaN at all"):
        nowhere.importance_sample()
    plain = salmc.Draws(np.zeros((2, 5, 2)), None, 1.0)
    with pytest.raises(salmc.ArgumentError, match="`sampler` argument"):
        plain.log_evidence()


def test_weights_that_are_equal_in_their_tail_are_no_heavy_ones():
    """Bounded weights, of which the largest thousand are one number: no fit, and no refusal."""
    ratio = np.concatenate([np.zeros(1000), -np.random.default_rng(0).exponential(size=1000)])
    assert smoothed(ratio)[1] < 0.5
