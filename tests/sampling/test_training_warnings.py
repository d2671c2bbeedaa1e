"""What went wrong in training, and what it saw, goes with the draws and with the file."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc import kernels
from salmc.kernels.layers import Whitening
from salmc.sampling.files.saved import load
from salmc.sampling.sampler import Sampler
from salmc.targets import Gaussian
from simple_kernels import Independent

TARGET = Gaussian([1.0, -2.0], [[1.0, 0.8], [0.8, 2.0]])
POOL = np.asarray(TARGET.sample(jax.random.key(0), 5000))
QUICK = {"chains": 8, "draws": 64, "progress": False}


@pytest.fixture
def sampler():
    whitening = Whitening.fit(jnp.asarray(POOL))
    return Sampler(Independent(2), TARGET, whitening, POOL, warnings=("Training diverged.",))


def test_draws_carry_them(sampler, tmp_path):
    draws = sampler.sample(**QUICK)
    assert draws.warnings == ("Training diverged.",)
    verdict = draws.summary(hunt=False).verdict
    assert not verdict.trustworthy
    assert "Training diverged." in verdict.sentences
    streamed = sampler.sample_to(tmp_path / "draws.zarr", **QUICK)
    assert streamed.warnings == streamed.thinned.warnings == ("Training diverged.",)
    assert streamed.thinned.seen is not None


def test_the_file_keeps_them(sampler, tmp_path, monkeypatch):
    monkeypatch.setitem(kernels.KERNELS, Independent.name, Independent)
    sampler.save(tmp_path / "kernel.salmc")
    assert load(tmp_path / "kernel.salmc", TARGET).warnings == ("Training diverged.",)


def test_draws_know_what_training_saw(sampler):
    draws = sampler.sample(**QUICK)
    assert draws.seen.shape == (4000, 2)
    assert {tuple(row) for row in draws.seen} <= {tuple(row) for row in POOL}
    narrow = dataclasses.replace(sampler, pool=np.concatenate([POOL, POOL[:500] + 50]))
    assert narrow.sample(**QUICK).summary(hunt=False).evidence.missed > 0.05
