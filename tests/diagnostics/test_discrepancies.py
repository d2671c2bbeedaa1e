"""MMD, KSD and the invariance test against closed forms and their own nulls."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.diagnostics import (
    fit_density,
    gradient_free_ksd_squared,
    invariance_test,
    ksd_squared,
    median_bandwidth,
    mmd_floor,
    mmd_squared,
    mode_weights,
    moment_errors,
)
from salmc.errors import ArgumentError
from salmc.target import Target


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@functools.cache  # one target, one compilation
def gaussian(dim):
    return Target(lambda x: -0.5 * jnp.sum(x**2), dim)


def test_mmd_of_shifted_gaussians():
    """E κ = (h/(h + 4))^{d/2} exp(−|δ|²/(h + 4)) for two points of N(0, I), N(δ, I).

    So MMD² = 2 (h/(h+4))^{d/2} (1 − exp(−|δ|²/(h+4))) = 0.1105 here; its standard deviation over
    samples of 2000 is about 4·sd(κ)/√2000 ≈ 0.005.
    """
    x, y = normal(0, 2000, 2) + np.array([1.0, 0.0]), normal(1, 2000, 2)
    h = 4.0
    expected = 2 * (h / (h + 4)) * (1 - np.exp(-1.0 / (h + 4)))
    assert mmd_squared(x, y, h) == pytest.approx(expected, abs=0.015)


def test_mmd_in_blocks_equals_the_sums_written_out(monkeypatch):
    import salmc.diagnostics.point_sets as arrays

    x, y = normal(0, 37, 3), normal(1, 23, 3) + 100.0
    h = median_bandwidth(y)
    k = lambda a, b: np.exp(-np.sum((a[:, None] - b) ** 2, axis=-1) / h)  # noqa: E731
    expected = (k(x, x).sum() - 37) / (37 * 36) + (k(y, y).sum() - 23) / (23 * 22)
    expected -= 2 * k(x, y).mean()
    monkeypatch.setattr(arrays, "_BLOCK_ENTRIES", 100)
    assert mmd_squared(x, y) == pytest.approx(expected, abs=1e-12)


def test_mmd_floor_is_the_quantile_of_exact_against_exact():
    """Of 200 pairs of exact samples 5 % exceed the floor: binomial, 10 ± 3.1, four sd allowed."""
    reference = normal(0, 2000, 2)
    h = median_bandwidth(reference)
    floor = mmd_floor(reference, 100, 200, h)
    values = [
        mmd_squared(normal(2 * i + 5, 100, 2), normal(2 * i + 6, 200, 2), h) for i in range(200)
    ]
    assert 1 <= np.sum(np.array(values) > floor) <= 22
    # Unbiased: the mean is zero within four standard errors.
    assert abs(np.mean(values)) < 4 * np.std(values) / np.sqrt(200)


def test_ksd_equals_the_sum_written_out():
    """The Stein kernel by automatic differentiation, pair by pair."""
    import jax

    x, c = normal(0, 6, 3), 0.7
    scores = -(x**3)

    def kernel(a, b):
        return (c**2 + jnp.sum((a - b) ** 2)) ** -0.5

    total = 0.0
    for i in range(6):
        for j in range(6):
            a, b = jnp.asarray(x[i]), jnp.asarray(x[j])
            mixed = jax.jacfwd(jax.grad(kernel, 0), 1)(a, b)
            total += scores[i] @ scores[j] * kernel(a, b) + jnp.trace(mixed)
            total += scores[i] @ jax.grad(kernel, 1)(a, b) + scores[j] @ jax.grad(kernel, 0)(a, b)
    found = ksd_squared(x, scores, statistic="v", scale=np.ones(3), length=c, bootstrap=0)
    assert found.value == pytest.approx(float(total) / 36, rel=1e-4)
    assert np.isnan(found.floor)


def test_ksd_of_exact_draws_has_mean_zero_and_level_five_percent():
    """60 samples: mean within four standard errors of 0; at most 9 above the floor (3 ± 1.7)."""
    results = []
    for i in range(60):
        x = normal(i, 100, 2)
        results.append(ksd_squared(x, -x, length=1.0, scale=np.ones(2), bootstrap=200, seed=i))
    values = np.array([r.value for r in results])
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(60)
    assert sum(r.above for r in results) <= 9


@pytest.mark.parametrize("wrong", ["shifted", "narrow", "wide", "collapsed"])
def test_ksd_sees_wrong_samples(wrong):
    z = normal(0, 500, 2)
    x = {"shifted": z + 0.4, "narrow": 0.7 * z, "wide": 1.5 * z, "collapsed": 1e-3 * z}[wrong]
    assert ksd_squared(x, -x).ratio > 2


def test_ksd_does_not_depend_on_units():
    x = normal(0, 100, 2)
    units = np.array([1e-3, 1e4])
    one, other = ksd_squared(x, -x), ksd_squared(x * units + 7.0, -x / units)
    assert other.value == pytest.approx(one.value, rel=1e-6)


def test_gradient_free_ksd_with_the_target_as_reference_is_ksd():
    """If q = p, all weights are equal and the score is that of p."""
    x = normal(0, 50, 2)
    q = fit_density(normal(1, 1000, 2))
    assert len(q.centres) == 1  # one Gaussian is likelier than a kernel density estimate
    log_q, scores = q.log_density_and_score(x)
    found = gradient_free_ksd_squared(x, log_q + 12.3, reference=q)
    expected = ksd_squared(x, scores, statistic="v", scale=q.scale, length=q.length)
    assert found.value == pytest.approx(expected.value, rel=1e-6)


def test_gradient_free_ksd_level_on_exact_draws():
    """40 samples with their own q: at most 7 above the 95 % floor (2 ± 1.4)."""
    results = []
    for i in range(40):
        x = normal(i, 100, 2)
        results.append(gradient_free_ksd_squared(x, -0.5 * np.sum(x**2, axis=1), seed=i))
    assert sum(r.above for r in results) <= 7


def test_gradient_free_ksd_of_zero_density():
    x = normal(0, 20, 2)
    assert gradient_free_ksd_squared(x, np.full(20, -np.inf)).value == np.inf
    some = np.where(np.arange(20) < 3, np.nan, -0.5 * np.sum(x**2, axis=1))
    assert np.isfinite(gradient_free_ksd_squared(x, some).value)


@pytest.mark.parametrize("dim", [1, 2, 25])
def test_invariance_of_exact_draws(dim):
    """Level 1e-3 for each of 5 fixed seeds: one such test in 200 would fail by chance."""
    for seed in range(5):
        assert invariance_test(gaussian(dim), normal(seed, 300, dim), seed=seed).p_value > 1e-3


@pytest.mark.parametrize(
    ("change", "ratio"),
    [(lambda z: 0.6 * z, 1.1), (lambda z: 1e-3 * z, 2.0), (lambda z: 0.0 * z, 2.0)],
    ids=["sd ratio 0.6", "collapsed", "one point"],
)
@pytest.mark.parametrize("dim", [2, 25])
def test_invariance_sees_narrow_clouds(change, ratio, dim):
    test = invariance_test(gaussian(dim), change(normal(0, 300, dim)))
    assert test.p_value < 1e-3
    assert np.median(test.spread_ratio) > ratio


def test_invariance_sees_a_shift():
    test = invariance_test(gaussian(3), normal(0, 300, 3) + np.array([1.0, 0.0, 0.0]))
    assert test.p_value < 1e-3
    assert test.shift[0] < -0.5


def test_moment_errors():
    points = np.array([[0.0, 0.0], [2.0, 4.0]])
    found = moment_errors(points, np.array([0.0, 2.0]), np.array([1.0, 4.0]))
    assert found.mean_mse == pytest.approx(0.5)  # (1² + 0²)/2
    assert found.variance_mse == pytest.approx((0**2 + 12**2) / 2)
    np.testing.assert_allclose(found.mean_error, [1.0, 0.0])
    np.testing.assert_allclose(found.sd_ratio, [1.0, 0.5])


def test_mode_weights():
    found = mode_weights(np.array([0, 0, 0, 1]), np.array([0.5, 0.25, 0.25]))
    np.testing.assert_allclose(found.weights, [0.75, 0.25, 0.0])
    assert found.largest_error == pytest.approx(0.25)
    assert found.missing == 1
    with pytest.raises(ArgumentError, match="`labels`"):
        mode_weights(np.array([3]), np.array([0.5, 0.5]))


def test_wrong_input_is_met_at_the_door():
    x = normal(0, 10, 2)
    with pytest.raises(ArgumentError, match="finite"):
        mmd_squared(np.where(x > 1, np.nan, x), x)
    with pytest.raises(ArgumentError, match="coincide"):
        mmd_squared(x, np.zeros((10, 2)))
    with pytest.raises(ArgumentError, match="`bandwidth`"):
        mmd_squared(x, x, -1.0)


def test_jax_arrays_are_taken():
    x = jnp.asarray(normal(0, 30, 2))
    assert np.isfinite(ksd_squared(x, -x).value)
    assert np.isfinite(mmd_squared(x, x + 1.0))
    assert np.isfinite(gradient_free_ksd_squared(x, -0.5 * jnp.sum(x**2, axis=1)).value)
