"""Pools by NUTS: many dimensions, whatever the condition number."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.errors import NotDifferentiableError
from salmc.movers.nuts import NUTS
from salmc.targets import Gaussian


def test_an_ill_conditioned_gaussian():
    """2048 draws: means err by 1/√2048 = 0.022 sd, sds by 0.016."""
    target = Gaussian.with_condition_number(35, 1e6)
    filled = NUTS(target).fill(jax.random.key(0), 2048)
    assert filled.points.shape == (2048, 35)
    assert not filled.warnings
    errors = (np.mean(np.asarray(filled.points), axis=0) - target.mean) / target.std
    assert np.max(np.abs(errors)) < 0.12
    ratios = np.std(np.asarray(filled.points), axis=0) / target.std
    assert np.all(np.abs(ratios - 1) < 0.1)
    assert filled.covariance is not None


def test_it_needs_a_gradient():
    with pytest.raises(NotDifferentiableError):
        NUTS(salmc.Target.from_numpy(lambda x: -np.sum(x**2, axis=1), dim=40))


def test_without_a_maximum_it_goes_on():
    target = salmc.Target(lambda x: -jnp.sum(jnp.abs(x)), dim=3)
    points = np.asarray(NUTS(target).fill(jax.random.key(0), 1024).points)
    assert np.all(np.abs(points.std(axis=0) / np.sqrt(2) - 1) < 0.25)
