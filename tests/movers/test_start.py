"""The search for a start: location and scale within what particles can make up for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.movers.start import find_location, find_start
from salmc.targets import Affine, Banana, Gaussian, Mog2, Mog6, Ring5

TARGETS = [Mog2(), Mog6(), Ring5(), Banana(), Gaussian.with_condition_number(20, 1000.0)]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (50.0, 0.01), (-1000.0, 1.0)])
def test_finds_location_and_scale(target, shift, scale):
    target = Affine(target, shift, scale)
    location = find_location(target, jax.random.key(0))
    deviation = np.linalg.norm(np.asarray(location.cholesky), axis=1)
    # Tempered moments are not the target's: within a sd and a factor of two is what is needed.
    assert np.max(np.abs(location.mean - target.mean) / target.std) < 1.0
    assert np.all((deviation / target.std > 0.5) & (deviation / target.std < 2.5))


def test_particles_of_both_modes_are_near_by():
    start = np.asarray(find_start(Mog2(), jax.random.key(1), 400))
    assert 0.25 < np.mean(start[:, 0] > 0) < 0.75


def test_zero_density_on_a_half_line():
    target = salmc.Target(lambda x: jnp.where(x[0] > 3.0, -(x[0] - 3.0), -jnp.inf), dim=1)
    location = find_location(target, jax.random.key(0))
    assert 2.0 < float(location.mean[0]) < 6.0


def test_black_box():
    target = salmc.Target.from_numpy(lambda x: -0.5 * np.sum((x - 7) ** 2, axis=1), dim=3)
    location = find_location(target, jax.random.key(0))
    assert np.allclose(location.mean, 7.0, atol=0.3)
