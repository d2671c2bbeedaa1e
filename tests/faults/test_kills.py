"""Processes that are killed, told to end, or run out of disk, at random moments of their work.

Each script below does one kind of work and may be started again and again. What it has on disk must
be whole after every kill, and the end the same as of a process that was never killed.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray

import salmc
from salmc.sampling.files.folder import open_run

_HOLD = """
import resource, signal, sys, jax, jax.numpy as jnp, numpy as np, salmc
place, mode, count = sys.argv[1:]
if mode == "limited":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
"""

STREAM = f"""{_HOLD}
from salmc.sampling import executor
from salmc.sampling.files import growing_store
growing_store.PART_BYTES, executor.BLOCK_PROPOSALS = 2**14, 2**10
kernel = salmc.kernels.FlowKernel(jax.random.key(0), 2, layers=1, width=4, knots=4, radial_knots=4)
sampler = salmc.Sampler(kernel, target, salmc.kernels.Whitening.identity(2), np.zeros((1, 2)))
try:
    sampler.sample_to(place, chains=16, draws=int(count), progress=False, resume=True)
except salmc.SalmcError as error:
    sys.exit(str(error))
"""

TRAIN = f"""{_HOLD}
from salmc.learning import LearningSettings, sal_mc
settings = LearningSettings(steps=int(count), batch=32, pool_size=128, chunk=20,
                            mixture_components=2, checkpoint_every=1)
kernel = salmc.kernels.MLPKernel(jax.random.key(0), 2, width=16, depth=1)
checkpoint = place + "/run.checkpoint"
learned = sal_mc(target, kernel, settings=settings, checkpoint=checkpoint, resume=True,
                 progress=False)
print(*learned.warnings)
if mode != "disk":
    np.savez(place + "/learned.npz", *map(np.asarray, jax.tree.leaves(learned.kernel)),
             learned.pool)
"""

WRITE = f"""{_HOLD}
from salmc.sampling.files.folder import write_run
kernel = salmc.kernels.FlowKernel(jax.random.key(0), 2, layers=2, width=32, knots=8, radial_knots=6)
try:
    for turn in range(int(count)):
        pool = np.full((2000, 2), turn, np.float32)
        sampler = salmc.Sampler(kernel, target, salmc.kernels.Whitening.identity(2), pool)
        sampler.save(place + "/kernel.salmc")
        positions = np.full((8, 5000, 2), turn, np.float32)
        draws = salmc.Draws(positions, None, seconds=1.0, kind="chains",
                            method="made")
        write_run(draws, place + "/run", overwrite=True)
except salmc.SalmcError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def start():
    """Starts a script in a process of its own; what still runs at the end of a test is ended."""
    started = []

    def begin(script, place, count, mode="free"):
        command = [sys.executable, "-c", script, str(place), mode, str(count)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, **pipes))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def finished(process):
    """Exit code and all that was said."""
    told = "".join(process.communicate(timeout=500))
    return process.returncode, told


def killed(process, number, file, delay):
    """Send a signal a while after a file has changed; whether the process ended by it."""

    def state():
        return file.stat().st_mtime_ns if file.exists() else None

    before, deadline = state(), time.monotonic() + 240
    while state() in (before, None) and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    time.sleep(delay)
    process.send_signal(number)
    code, told = finished(process)
    assert code == -number or code == 0 or "nothing to go on from" in told, told
    return code == -number


def read(place):
    """The draws, by the user's own reader; all arrays must be of one length."""
    with xarray.open_datatree(place, engine="zarr") as tree:
        draws = tree["posterior"].sizes["draw"]
        assert tree["sample_stats"]["lp"].shape == (16, draws)
        np.testing.assert_array_equal(tree["posterior"]["draw"], np.arange(draws))
        return tree["posterior"]["x"].values


def left_behind(folder):
    return [file for file in folder.rglob("*") if "partial" in file.name or ".tmp-" in file.name]


KILLS = {signal.SIGKILL: 8, signal.SIGTERM: 4}
"""Of each kind of work; each takes the seconds that a process takes to begin."""


def delays(number, longest):
    return np.random.default_rng(int(number)).uniform(0.0, longest, KILLS[number])


SIGNALS = pytest.mark.parametrize("number", KILLS)


@pytest.mark.slow
@SIGNALS
def test_streams_go_on_bit_for_bit(tmp_path, start, number):
    """Killed again and again: every finished part is readable, and the whole is the whole."""
    place, draws, kills, before = tmp_path / "killed.zarr", 20_000, 0, 0
    for delay in delays(number, 0.6):
        kills += killed(start(STREAM, place, draws), number, place / ".zmetadata", delay)
        found = read(place).shape[1]
        assert os.listdir(tmp_path) == ["killed.zarr"]
        assert before < found <= draws or found == draws
        before = found
    assert kills >= 0.7 * KILLS[number], f"only {kills} kills came before the end"
    code, told = finished(start(STREAM, place, draws))
    assert code == 0 or "nothing to go on from" in told, told
    assert finished(start(STREAM, tmp_path / "whole.zarr", draws)) == (0, "")
    np.testing.assert_array_equal(read(place), read(tmp_path / "whole.zarr"))
    assert left_behind(tmp_path) == []


@pytest.mark.slow
@SIGNALS
def test_training_goes_on_bit_for_bit(tmp_path, start, number):
    folders, steps, kills = (tmp_path / "killed", tmp_path / "whole"), 4000, 0
    for folder in folders:
        folder.mkdir()
    for delay in delays(number, 0.4):
        process = start(TRAIN, folders[0], steps)
        kills += killed(process, number, folders[0] / "run.checkpoint", delay)
    assert kills >= 0.7 * KILLS[number], f"only {kills} kills came before the end"
    for folder in folders:
        code, told = finished(start(TRAIN, folder, steps))
        assert code == 0, told
    with np.load(folders[0] / "learned.npz") as one, np.load(folders[1] / "learned.npz") as other:
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.slow
@SIGNALS
def test_files_and_folders_are_there_in_full(tmp_path, start, number):
    """A kernel and a run folder that are written again and again: the last or the one before."""
    for delay in delays(number, 0.5):
        assert killed(start(WRITE, tmp_path, 10**6), number, tmp_path / "run", delay)
        pool = np.asarray(salmc.load(tmp_path / "kernel.salmc").pool)
        draws = open_run(tmp_path / "run").draws.positions
        assert pool.shape == (2000, 2)
        assert draws.shape == (8, 5000, 2)
        assert np.ptp(pool) == 0.0
        assert np.ptp(draws) == 0.0
        assert pool[0, 0] - draws[0, 0, 0] in (0.0, 1.0)
    # What kills left behind is removed by the next writer, once it is old enough to be nobody's.
    for file in left_behind(tmp_path):
        os.utime(file, (0, 0))
    assert finished(start(WRITE, tmp_path, 1))[0] == 0
    assert sorted(os.listdir(tmp_path)) == ["kernel.salmc", "run"]


@pytest.mark.slow
def test_a_second_stream_is_refused_and_the_first_is_whole(tmp_path, start):
    place = tmp_path / "draws.zarr"
    first = start(STREAM, place, 80_000)
    while not (place / ".zmetadata").exists():
        assert first.poll() is None, finished(first)
        time.sleep(0.005)
    code, told = finished(start(STREAM, place, 80_000))
    assert (code, told.strip()) == (
        1,
        f"Another run is writing to {place}. Wait until it has ended, or choose another place.",
    )
    assert finished(first) == (0, "")
    assert read(place).shape[1] == 80_000


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
def test_a_stream_onto_a_disk_that_fills(tmp_path, start, small_disk):
    code, told = finished(start(STREAM, small_disk / "draws.zarr", 40_000))
    assert code == 1
    assert "No space left on device" in told
    assert "draws of each chain are safe" in told
    assert "Traceback" not in told
    found = read(small_disk / "draws.zarr")
    # There is room elsewhere: it goes on there.
    shutil.copytree(small_disk / "draws.zarr", tmp_path / "draws.zarr")
    assert finished(start(STREAM, tmp_path / "draws.zarr", 40_000)) == (0, "")
    whole = read(tmp_path / "draws.zarr")
    assert whole.shape[1] == 40_000
    np.testing.assert_array_equal(whole[:, : found.shape[1]], found)


@pytest.mark.slow
def test_saving_to_a_disk_that_fills(start, small_disk):
    """Half of a file that is there already is nothing: the old one stays, and no trace is left."""
    assert finished(start(WRITE, small_disk, 1))[0] == 0
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 20_000))
    code, told = finished(start(WRITE, small_disk, 2))
    assert code == 1
    assert "No space left on device" in told
    assert "Traceback" not in told
    assert sorted(os.listdir(small_disk)) == ["filler", "kernel.salmc", "run"]
    assert np.all(np.asarray(salmc.load(small_disk / "kernel.salmc").pool) == 0.0)
    assert np.all(open_run(small_disk / "run").draws.positions == 0.0)


@pytest.mark.slow
def test_training_goes_on_when_its_checkpoint_cannot_be_written(start, small_disk):
    (small_disk / "filler").write_bytes(bytes(shutil.disk_usage(small_disk).free - 5_000))
    code, told = finished(start(TRAIN, small_disk, 200, "disk"))
    assert code == 0, told
    assert "The checkpoint could not be written" in told
    assert os.listdir(small_disk) == ["filler"]


@pytest.mark.slow
def test_files_that_may_not_grow(tmp_path, start):
    """A limit on the size of files stands for a full disk where none can be mounted."""
    code, told = finished(start(STREAM, tmp_path / "draws.zarr", 40_000, "limited"))
    assert code == 1, told
    assert "Cannot write" in told
    assert "Traceback" not in told
