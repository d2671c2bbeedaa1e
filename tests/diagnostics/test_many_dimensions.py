"""Tests of draws in many dimensions, where a sample knows its own covariance too well."""

import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.diagnostics.invariance import invariance_test
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.stein import stein_tests

DIM, COUNT = 200, 1000


def exact(seed):
    return np.random.default_rng(seed).normal(size=(COUNT, DIM))


def normal(x):
    return -0.5 * jnp.sum(x**2)


@pytest.mark.parametrize("seed", range(3))
def test_exact_draws_are_no_surprise(seed):
    points = exact(seed)
    assert stein_tests(points, -points, Frame.of(points)).p_value > 1e-3
    assert invariance_test(salmc.Target(normal, dim=DIM), points, seed=seed).p_value > 1e-3


def test_draws_that_are_too_wide_are():
    points = 1.03 * exact(4)
    assert stein_tests(points, -points, Frame.of(points)).p_value < 1e-9
    points = 1.2 * exact(5)
    assert invariance_test(salmc.Target(normal, dim=DIM), points).p_value < 1e-9


def test_one_direction_that_is_too_narrow_is_seen():
    """By 30 %, along a diagonal of 30 coordinates, where each is 1 % too narrow."""
    generator = np.random.default_rng(6)
    points = generator.normal(size=(3000, 30))
    axis = np.full(30, 30**-0.5)
    points -= 0.3 * (points @ axis)[:, None] * axis
    assert stein_tests(points, -points, Frame.of(points)).p_value < 1e-9
