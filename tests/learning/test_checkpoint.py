"""A run that is killed goes on to the same kernel, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from salmc.errors import OutputError
from salmc.learning import al_mc, sal_mc


def _equal(one, other):
    for a, b in zip(jax.tree.leaves(one.kernel), jax.tree.leaves(other.kernel), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.pool, other.pool)
    np.testing.assert_array_equal(one.pool_log_density, other.pool_log_density)
    assert json.dumps(one.history) == json.dumps(other.history)


@pytest.mark.parametrize("kind", ["flow", "mlp"])
def test_resume_is_exact(request, two_modes, tmp_path, kind, power_cut):
    kernel = request.getfixturevalue(kind)
    settings = request.getfixturevalue(f"{kind}_settings").replace(checkpoint_every=1)
    whole = sal_mc(two_modes, kernel, settings=settings, progress=False)
    place = tmp_path / "run.checkpoint"
    options = {"settings": settings, "checkpoint": place}
    with pytest.raises(RuntimeError, match="power cut"):
        sal_mc(two_modes, kernel, progress=power_cut, **options)
    assert place.exists()
    resumed = sal_mc(two_modes, kernel, progress=False, resume=True, **options)
    _equal(whole, resumed)
    again = sal_mc(two_modes, kernel, progress=False, resume=True, **options)
    _equal(whole, again)


def test_resume_of_given_samples(tmp_path, mlp, mlp_settings, power_cut):
    samples = np.random.default_rng(0).normal(size=(200, 2))
    settings = mlp_settings.replace(checkpoint_every=1)
    whole = al_mc(samples, mlp, settings=settings, progress=False)
    options = {"settings": settings, "checkpoint": tmp_path / "run.checkpoint"}
    with pytest.raises(RuntimeError, match="power cut"):
        al_mc(samples, mlp, progress=power_cut, **options)
    _equal(whole, al_mc(samples, mlp, progress=False, resume=True, **options))
    with pytest.raises(OutputError, match="samples differ"):
        al_mc(samples + 1, mlp, progress=False, resume=True, **options)


def test_resume_without_a_checkpoint_begins(two_modes, flow, flow_settings, tmp_path):
    place = tmp_path / "not-there-yet"
    options = {"settings": flow_settings, "checkpoint": place, "resume": True}
    assert sal_mc(two_modes, flow, progress=False, **options).history["step"][-1] == 60


def test_checkpoints_of_others_and_damaged_ones(two_modes, flow, flow_settings, tmp_path):
    place = tmp_path / "run.checkpoint"
    options = {"checkpoint": place, "progress": False}
    settings = flow_settings.replace(checkpoint_every=1)
    sal_mc(two_modes, flow, settings=settings, **options)
    with pytest.raises(OutputError, match="another run: seed differ"):
        sal_mc(two_modes, flow, settings=settings, seed=1, resume=True, **options)
    place.write_bytes(place.read_bytes()[:1000])
    with pytest.raises(OutputError, match="cannot be read"):
        sal_mc(two_modes, flow, settings=settings, resume=True, **options)


_SCRIPT = """
import sys, jax, numpy as np, salmc
from salmc.kernels import MLPKernel
from salmc.learning import LearningSettings, sal_mc
settings = LearningSettings(steps=int(sys.argv[2]), batch=32, pool_size=128, chunk=20,
                            mixture_components=2, checkpoint_every=1)
target = salmc.Target(lambda x: -0.5 * (x**2).sum(), dim=2)
kernel = MLPKernel(jax.random.key(0), 2, width=16, depth=1)
place = None if sys.argv[1] == "-" else sys.argv[1]
learned = sal_mc(target, kernel, settings=settings, checkpoint=place, resume=place is not None,
                 progress=False)
np.savez(sys.argv[3], *map(np.asarray, jax.tree.leaves(learned.kernel)), learned.pool)
"""


@pytest.mark.slow
def test_killed_process(tmp_path):
    """kill -9 in the middle of training; the resumed run ends as the whole one."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    steps = "3000"

    def start(place, output):
        command = [sys.executable, "-c", _SCRIPT, str(place), steps, str(tmp_path / output)]
        return subprocess.Popen(command, env=environment)

    whole = start("-", "whole.npz")
    place = tmp_path / "run.checkpoint"
    killed = start(place, "killed.npz")
    deadline = time.monotonic() + 120
    while not place.exists() and killed.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert place.exists()
    assert not (tmp_path / "killed.npz").exists()
    assert start(place, "resumed.npz").wait(120) == 0
    assert whole.wait(120) == 0
    with np.load(tmp_path / "whole.npz") as one, np.load(tmp_path / "resumed.npz") as other:
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name])
