"""Modes that a cloud lacks are found before anything is learned from it."""

import jax
import jax.numpy as jnp
import numpy as np

import salmc
from salmc.answers.hunted import missed_modes, with_missed_modes
from salmc.diagnostics.hunt.landings import landings
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity

MEANS = 6.0 * np.random.default_rng(20).normal(size=(4, 8))
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
SCALES = np.array([1.0, 0.8, 1.2, 0.9])


def log_density(x):
    squares = jnp.sum((x - MEANS) ** 2, axis=1) / SCALES**2
    return jax.nn.logsumexp(jnp.log(WEIGHTS) - 8 * jnp.log(SCALES) - 0.5 * squares)


TARGET = salmc.Target(log_density, 8)


def first_mode(count=1500):
    return MEANS[0] + np.random.default_rng(0).normal(size=(count, 8))


def nearest(points):
    return np.argmin(np.sum((points[:, None] - MEANS) ** 2, axis=2), axis=1)


def test_landings_are_at_every_mode():
    cloud = first_mode()
    density = HostDensity(TARGET, cloud[0])
    found = landings(density, cloud, Frame.of(cloud), np.random.default_rng(0))
    distances = np.linalg.norm(found[:, None] - MEANS, axis=2)
    assert np.all(np.min(distances, axis=0) < 0.5)


def test_without_a_gradient_nothing_lands():
    cloud = first_mode(100)
    black_box = salmc.Target.from_numpy(lambda x: -0.5 * np.sum(x**2, axis=1), 8)
    density = HostDensity(black_box, cloud[0])
    assert not len(landings(density, cloud, Frame.of(cloud), np.random.default_rng(0)))


def test_modes_that_a_cloud_lacks_are_told_with_their_shares():
    missed = missed_modes(TARGET, first_mode(), 0)
    found = dict(zip(nearest(missed.positions), missed.shares, strict=True))
    assert set(found) == {1, 2, 3}
    for mode, share in found.items():
        assert abs(share - 0.9 * WEIGHTS[mode]) < 0.03  # of the inner nine tenths of the mode
    assert missed.evaluations > 0
    # Factors are triangular and as wide as the modes.
    for mode, factor in zip(nearest(missed.positions), missed.factors, strict=True):
        np.testing.assert_allclose(factor, np.tril(factor))
        np.testing.assert_allclose(np.diag(factor), SCALES[mode], rtol=0.1)


def test_a_whole_cloud_lacks_nothing():
    generator = np.random.default_rng(1)
    which = generator.choice(4, 1500, p=WEIGHTS)
    cloud = MEANS[which] + SCALES[which, None] * generator.normal(size=(1500, 8))
    assert not len(missed_modes(TARGET, cloud, 0).shares)


def test_a_pool_gets_them_at_their_own_weights():
    points = jnp.asarray(first_mode(4000), dtype=float)
    values = TARGET.log_densities(points)
    points, values = with_missed_modes(TARGET, jax.random.key(0), points, values)
    shares = np.bincount(nearest(np.asarray(points)), minlength=4) / len(points)
    # Binomial errors are below 0.008; twenty sweeps leave a little more.
    np.testing.assert_allclose(shares, WEIGHTS, atol=0.04)
    np.testing.assert_allclose(values, TARGET.log_densities(points), rtol=1e-4)
