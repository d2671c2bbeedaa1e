"""The log density of draws, which forward passes leave to who asks for it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from salmc.kernels.layers import Whitening
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler
from salmc.target import Target
from simple_kernels import Independent

POSITIONS = np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32)
EXPECTED = -0.5 * np.sum(POSITIONS**2, axis=2)


def counted():
    """A black box, and the number of points it has seen so far."""
    seen = [0]

    def log_density(points):
        seen[0] += len(points)
        return -0.5 * np.sum(np.asarray(points) ** 2, axis=1)

    return Target.from_numpy(log_density, 2), seen


def test_forward_passes_do_not_call_the_target():
    target, seen = counted()
    pool = np.asarray(jax.random.normal(jax.random.key(0), (100, 2)))
    sampler = Sampler(Independent(2), target, Whitening.fit(jnp.asarray(pool)), pool)
    draws = sampler.sample(chains=4, draws=64, metropolis=False, progress=False)
    assert draws.log_density is None
    assert seen[0] == 0
    expected = -0.5 * np.sum(draws.positions**2, axis=2)
    np.testing.assert_allclose(draws.evaluated().log_density, expected, rtol=1e-5, atol=1e-5)


def test_is_computed_when_asked_for_and_a_copy_computes_nothing(tmp_path):
    target, seen = counted()
    draws = Draws(POSITIONS, None, seconds=1.0, target=target)
    copy = dataclasses.replace(draws, seconds=2.0)
    assert copy.log_density is None
    assert Draws.load(copy.save(tmp_path / "draws.zarr")).log_density is None
    assert seen[0] == 0
    known = draws.evaluated()
    np.testing.assert_allclose(known.log_density, EXPECTED, rtol=1e-5)
    asked = seen[0]
    assert known.evaluated() is known
    assert dataclasses.replace(known, seconds=2.0).log_density is known.log_density
    assert seen[0] == asked >= 15


def test_batches_cover_every_draw_once(monkeypatch):
    monkeypatch.setattr("salmc.sampling.draws._BATCH", 4)
    target, _ = counted()
    draws = Draws(POSITIONS, None, seconds=1.0, target=target).evaluated()
    np.testing.assert_allclose(draws.log_density, EXPECTED, rtol=1e-5)


def test_what_is_given_stays():
    target, seen = counted()
    draws = Draws(POSITIONS, np.ones((3, 5)), seconds=1.0, target=target)
    copy = dataclasses.replace(draws, seconds=2.0)
    assert np.all(copy.log_density == 1)
    assert seen[0] == 0


def test_without_a_target_it_is_not_known():
    assert np.all(np.isnan(Draws(POSITIONS, None, seconds=1.0).evaluated().log_density))


def test_a_target_that_fails_leaves_a_warning_and_the_draws(monkeypatch, tmp_path):
    monkeypatch.setattr("salmc.sampling.draws._BATCH", 5)
    calls = []

    def fail(points):
        calls.append(None)
        if len(calls) > 1:
            raise RuntimeError("the telescope is closed")
        return -0.5 * np.sum(np.asarray(points) ** 2, axis=1)

    draws = Draws(POSITIONS, None, seconds=1.0, target=Target.from_numpy(fail, 2))
    draws = draws.evaluated()
    np.testing.assert_allclose(draws.log_density[0], EXPECTED[0], rtol=1e-5)
    assert np.all(np.isnan(draws.log_density[1:]))
    (told,) = draws.warnings
    assert told.startswith("The target failed at 5 of 15 draws: ")
    assert "the telescope is closed" in told
    loaded = Draws.load(draws.save(tmp_path / "draws.zarr"))
    assert loaded.warnings == draws.warnings == dataclasses.replace(draws, seconds=2.0).warnings


def test_draws_where_the_density_is_zero_are_told_in_the_summary():
    half = Target(lambda x: jnp.where(x[0] > 0, -0.5 * jnp.sum(x**2), -jnp.inf), 2, name="half")
    positions = np.random.default_rng(1).normal(size=(4, 100, 2))
    positions[:, :, 0] = np.abs(positions[:, :, 0])
    positions[0, :40, 0] *= -1
    told = Draws(positions, None, seconds=1.0, target=half).summary()
    assert not told.verdict.trustworthy
    assert "0.1 of the draws are where the density is zero" in str(told)


def test_a_summary_of_draws_whose_target_fails_tells_the_rest():
    def fail(points):
        raise RuntimeError("the telescope is closed")

    positions = np.random.default_rng(1).normal(size=(4, 100, 2))
    draws = Draws(positions, None, seconds=1.0, target=Target.from_numpy(fail, 2))
    told = draws.summary()
    assert not told.verdict.trustworthy
    assert "when the draws were compared with it" in str(told)
    assert "the telescope is closed" in str(told)
    assert told.evidence.ksd is None
    assert told.evidence.coordinates[0].ess_bulk > 200
