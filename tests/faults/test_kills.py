"""Processes that are killed, told to end, or run out of disk while draws are streamed."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray

_SCRIPT = """
import resource, signal, sys, jax, jax.numpy as jnp, numpy as np, salmc
from salmc.sampling import executor, growing_store
growing_store.PART_BYTES, executor.BLOCK_PROPOSALS = 2**14, 2**10
if sys.argv[2] == "limited":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
kernel = salmc.kernels.FlowKernel(jax.random.key(0), 2, layers=1, width=4, knots=4)
target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
sampler = salmc.Sampler(kernel, target, salmc.kernels.Whitening.identity(2), np.zeros((1, 2)))
try:
    sampler.sample_to(sys.argv[1], chains=16, draws=int(sys.argv[3]), progress=False, resume=True)
except salmc.SalmcError as error:
    sys.exit(str(error))
"""


def start(place, draws, mode="free"):
    command = [sys.executable, "-c", _SCRIPT, str(place), mode, str(draws)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def read(place):
    """The draws, by the user's own reader; all arrays must be of one length."""
    with xarray.open_datatree(place, engine="zarr") as tree:
        draws = tree["posterior"].sizes["draw"]
        assert tree["sample_stats"]["lp"].shape == (16, draws)
        np.testing.assert_array_equal(tree["posterior"]["draw"], np.arange(draws))
        return tree["posterior"]["x"].values


def wait_for(file, process):
    deadline = time.monotonic() + 120
    while not file.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def killed_and_resumed(tmp_path, draws, delays, number):
    """Draws of a stream that is killed again and again, and of one that never was."""
    place = tmp_path / "killed.zarr"
    for delay in delays:
        process = start(place, draws)
        wait_for(place / ".zmetadata", process)
        time.sleep(delay)
        process.send_signal(number)
        process.communicate(timeout=120)
        found = read(place)
        assert os.listdir(tmp_path) == ["killed.zarr"]
        if process.returncode == 0:
            break
        assert process.returncode == -number
        assert 0 < found.shape[1] < draws
    last = start(place, draws)
    _, told = last.communicate(timeout=240)
    assert last.returncode == 0 or "nothing to go on from" in told, told
    whole = start(tmp_path / "whole.zarr", draws)
    assert whole.wait(240) == 0
    np.testing.assert_array_equal(read(place), read(tmp_path / "whole.zarr"))
    assert not [file for file in place.rglob("*") if "partial" in file.name or "tmp-" in file.name]


@pytest.mark.slow
def test_a_stream_that_is_killed_goes_on_bit_for_bit(tmp_path):
    killed_and_resumed(tmp_path, 40_000, [0.05], signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_kills_at_random_moments(tmp_path, number):
    delays = np.random.default_rng(int(number)).uniform(0.0, 1.0, 12)
    killed_and_resumed(tmp_path, 400_000, delays, number)


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_small_disk_that_fills(tmp_path, small_disk):
    process = start(small_disk / "draws.zarr", 40_000)
    _, told = process.communicate(timeout=240)
    assert process.returncode == 1
    assert "No space left on device" in told
    assert "draws of each chain are safe" in told
    assert "Traceback" not in told
    found = read(small_disk / "draws.zarr")
    # There is room elsewhere: it goes on there.
    shutil.copytree(small_disk / "draws.zarr", tmp_path / "draws.zarr")
    again = start(tmp_path / "draws.zarr", 40_000)
    assert again.wait(240) == 0
    whole = read(tmp_path / "draws.zarr")
    assert whole.shape[1] == 40_000
    np.testing.assert_array_equal(whole[:, : found.shape[1]], found)


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path):
    """A limit on the size of files stands for a full disk where none can be mounted."""
    process = start(tmp_path / "draws.zarr", 40_000, "limited")
    _, told = process.communicate(timeout=240)
    assert process.returncode == 1, told
    assert "Cannot write" in told
    assert "Traceback" not in told
