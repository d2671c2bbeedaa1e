"""What every built-in target must keep, whatever it is.

Statistical checks compare means over independent draws with their true value. They allow 4
standard errors, estimated from the draws: a correct target fails one such comparison with
probability 6e-5. Seeds are fixed, so a test that passes once passes always.
"""

import functools
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc.targets
from detailed_balance import imbalance, standard_errors_from
from salmc.datasets.fetch import find
from salmc.errors import DataError
from salmc.movers.base import check_at
from salmc.target import AbstractTarget
from salmc.targets import TARGETS, Affine, Posterior

DRAWS = 120_000
STANDARD_ERRORS = 4.0


def affine_ring5() -> AbstractTarget:
    return Affine(TARGETS["ring5"].factory(), shift=[30.0, -4.0], scale=[0.1, -7.0], name="affine")


def normal_posterior() -> AbstractTarget:
    data = jnp.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]])
    return Posterior(
        lambda x: -0.5 * jnp.sum(x**2),
        lambda x, datum: -0.5 * jnp.sum((datum - x) ** 2),
        data,
        dim=2,
    )


# Targets that need arguments have no place in the registry; they are listed here.
CASES = {name: entry.factory for name, entry in TARGETS.items()} | {
    "affine": affine_ring5,
    "posterior": normal_posterior,
}
every_target = pytest.mark.parametrize("name", CASES)
# Posteriors of data, which have no exact draws and do not know their moments.
OF_DATA = {"posterior", "heart", "australian", "german"}
sampled_targets = pytest.mark.parametrize("name", [n for n in CASES if n not in OF_DATA])
# How far to integrate, in standard deviations: the banana's second coordinate is a square.
REACH = {"ring": 5, "mog2": 5, "mog6": 5, "ring5": 5, "mog4": 5, "banana": 20, "affine": 5}
MODES = {"mog2": 2, "mog6": 6, "ring5": 5, "mog4": 4, "affine": 5}
# The squares of the funnel's coordinates have a variance of e^18: the spread of a finite sample
# says nothing. tests/targets/test_funnel.py tests the same formula at a smaller scale.
HEAVY_TAILED = {"funnel"}


def made(name: str) -> AbstractTarget:
    """The target; the test is skipped where its data, which do not ship, are not here."""
    if name == "australian":
        try:
            find("australian.csv", download=False)
        except DataError as error:
            if "is not on this machine" not in str(error):
                raise
            pytest.skip(str(error))
    return CASES[name]()


@functools.cache
def case(name: str) -> AbstractTarget:
    return made(name)


@functools.cache
def exact_draws(name: str, seed: int = 0, n: int = DRAWS) -> jax.Array:
    return eqx.filter_jit(lambda target, key: target.sample(key, n))(
        case(name), jax.random.key(seed)
    )


def some_points(name: str) -> jax.Array:
    target = case(name)
    if target.can_sample:
        return exact_draws(name)[:64]
    return jax.random.normal(jax.random.key(5), (64, target.dim))


def test_every_class_of_target_is_under_contract():
    classes = {
        value
        for _, value in inspect.getmembers(salmc.targets, inspect.isclass)
        if issubclass(value, AbstractTarget)
    }
    # Australian is of the same class as Heart, whose data ship with the package.
    tested = {type(factory()) for name, factory in CASES.items() if name != "australian"}
    assert classes == tested


@pytest.mark.parametrize("name", TARGETS)
def test_registry_names_and_explanations(name):
    entry, target = TARGETS[name], case(name)
    assert target.name == name == name.lower()
    assert target.dim == entry.dim
    assert entry.explanation
    assert "\n" not in entry.explanation


@every_target
def test_log_density_is_a_finite_scalar_and_agrees_over_a_batch(name):
    target, points = case(name), some_points(name)
    log_density = eqx.filter_jit(target.log_density)
    single = [log_density(x) for x in points]
    assert {(value.shape, value.dtype.name) for value in single} == {((), "float32")}
    assert np.all(np.isfinite(single))
    batch = eqx.filter_jit(target.log_densities)(points)
    # Sums over up to 1000 data round by √1000 ε = 4e-6; and rounding of x − shift is a change of
    # log p by ε |x| |∇ log p|, in each of a few operations.
    slopes = np.linalg.norm(eqx.filter_jit(target.gradients)(points), axis=1)
    reach = 1 + np.linalg.norm(points, axis=1) * slopes
    allowed = 1e-5 * np.abs(batch) + 8 * np.finfo(np.float32).eps * reach
    assert np.all(np.abs(batch - np.asarray(single)) <= allowed)
    check_at(target, points)


@every_target
def test_two_targets_of_one_shape_share_a_trace(name):
    traces = []

    @eqx.filter_jit
    def evaluate(target: AbstractTarget, x: jax.Array) -> jax.Array:
        traces.append(None)
        return target.log_density(x)

    target, point = case(name), some_points(name)[0]
    moved = jax.tree.map(lambda leaf: leaf * 1.5 if eqx.is_array(leaf) else leaf, target)
    first, second = evaluate(target, point), evaluate(moved, point)
    assert len(traces) == 1
    assert first != second


@every_target
def test_gradient_is_the_slope(name):
    """Central differences in double precision; their own error is of order h² = 1e-10."""
    points = np.asarray(some_points(name)[:16], dtype=np.float64)
    with jax.enable_x64(True):
        # Made anew: the parameters themselves must be of double precision.
        target = made(name)
        log_densities = eqx.filter_jit(target.log_densities)
        step = 1e-5
        slopes = [
            (log_densities(points + step * e) - log_densities(points - step * e)) / (2 * step)
            for e in np.eye(target.dim)
        ]
        gradients = np.asarray(eqx.filter_jit(target.gradients)(points))
    assert gradients.dtype == np.float64
    tolerance = 1e-6 * (1 + np.abs(gradients).max())
    np.testing.assert_allclose(gradients, np.stack(slopes, axis=1), atol=tolerance)


@every_target
def test_gradient_is_finite_at_the_origin_in_single_precision(name):
    target = case(name)
    points = jnp.zeros((64, target.dim))  # as many as elsewhere, which is one program
    assert np.all(np.isfinite(eqx.filter_jit(target.gradients)(points)))


@sampled_targets
def test_draws_repeat_with_the_key_and_differ_without(name):
    target, sample = case(name), eqx.filter_jit(case(name).sample)
    first = sample(jax.random.key(0), 10)
    assert first.shape == (10, target.dim)
    assert np.array_equal(first, sample(jax.random.key(0), 10))
    assert not np.array_equal(first, sample(jax.random.key(1), 10))


@sampled_targets
def test_moments_of_draws(name):
    target, draws = case(name), np.asarray(exact_draws(name))
    assert standard_errors_from(draws, target.mean).max() < STANDARD_ERRORS
    if name not in HEAVY_TAILED:
        squares = (draws - np.asarray(target.mean)) ** 2
        assert standard_errors_from(squares, target.std**2).max() < STANDARD_ERRORS


@sampled_targets
def test_moments_of_the_judged_quantity(name):
    target = case(name)
    values = np.asarray(target.statistic(exact_draws(name)))
    mean, std = (np.asarray(moment) for moment in target.statistic_moments)
    assert mean.shape == std.shape == values.shape[1:]
    assert standard_errors_from(values, mean).max() < STANDARD_ERRORS
    if name not in HEAVY_TAILED:
        assert standard_errors_from((values - mean) ** 2, std**2).max() < STANDARD_ERRORS


@sampled_targets
def test_draws_are_in_detailed_balance_with_the_density(name):
    assert imbalance(case(name), exact_draws(name)) < STANDARD_ERRORS


@sampled_targets
def test_draws_five_percent_too_wide_are_found_out(name):
    """The balance check itself must be able to fail."""
    target = case(name)
    wide = target.mean + 1.05 * (exact_draws(name) - target.mean)
    assert imbalance(target, wide) > STANDARD_ERRORS


@pytest.mark.parametrize("name", REACH)
def test_truth_by_integration_over_the_plane(name):
    """A grid of 1000² points: with four or more per width its error is far below 1e-3."""
    target = case(name)
    mean, std = np.asarray(target.mean, dtype=float), np.asarray(target.std, dtype=float)
    axes = np.linspace(mean - REACH[name] * std, mean + REACH[name] * std, 1000, axis=1)
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    points = jnp.asarray(grid)
    log_density = np.asarray(eqx.filter_jit(target.log_densities)(points), dtype=float)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    np.testing.assert_allclose((weights @ grid - mean) / std, 0.0, atol=1e-3)
    np.testing.assert_allclose(np.sqrt(weights @ (grid - mean) ** 2), std, rtol=1e-3)
    if name in MODES:
        component = np.asarray(eqx.filter_jit(target.component)(points))
        found = np.bincount(component, weights=weights)
        np.testing.assert_allclose(found, target.component_weights, atol=1e-3)


@pytest.mark.parametrize("name", MODES)
def test_modes_of_draws_have_their_weights(name):
    target = case(name)
    component = np.asarray(target.component(exact_draws(name)))
    weights = np.asarray(target.component_weights)
    assert len(weights) == MODES[name]
    np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-6)
    visits = component[:, None] == np.arange(len(weights))
    assert standard_errors_from(visits, weights).max() < STANDARD_ERRORS


@pytest.mark.parametrize("name", sorted(CASES.keys() - MODES.keys()))
def test_other_targets_claim_no_weights(name):
    assert case(name).component_weights is None


@every_target
def test_names_and_own_variables(name):
    target = case(name)
    assert len(set(target.names)) == target.dim
    own = target.constrain(jnp.zeros(target.dim))
    assert own
    assert all(np.all(np.isfinite(value)) for value in own.values())


@every_target
def test_minibatch_is_a_target_of_the_same_class(name):
    target = case(name)
    view = target.minibatch(jax.random.key(0))
    assert type(view) is type(target)
    assert view.dim == target.dim
