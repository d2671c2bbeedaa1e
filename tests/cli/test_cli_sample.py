"""`salmc sample`: a run folder of a saved kernel's draws, small or streamed."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

import salmc.kernels
from command import call
from salmc.kernels.layers import Whitening
from salmc.sampling.files.folder import open_run
from salmc.sampling.sampler import Sampler
from salmc.target import Target
from salmc.targets import Mog2
from simple_kernels import SIMPLE, Implicit, Independent

TARGET = Mog2()
POOL = TARGET.sample(jax.random.key(0), 200)
QUICK = ["--chains", "8", "--draws", "128", "--no-plots", "--out", "out"]
OWN = """
import jax.numpy as jnp, salmc.target
target = salmc.target.Target(lambda x: -0.5 * jnp.sum(x**2), 2, name="own")
"""


@pytest.fixture(autouse=True)
def in_a_folder_with_kernels(tmp_path, monkeypatch):
    monkeypatch.setattr(salmc.kernels, "KERNELS", {**salmc.kernels.KERNELS, **SIMPLE})
    monkeypatch.chdir(tmp_path)
    whitening = Whitening.fit(POOL)
    Sampler(Independent(2, scale=1.2), TARGET, whitening, POOL).save("kernel.salmc")
    own = Target(lambda x: -0.5 * jnp.sum(x**2), 2, name="own")
    Sampler(Implicit(2), own, whitening, POOL).save("own.salmc")
    (tmp_path / "model.py").write_text(OWN)


def test_a_run_folder_that_opens_again():
    result = call("sample", "kernel.salmc", "--tries", "2", "--seed", "3", *QUICK)
    assert result.exit_code == 0, result.output
    run = open_run("out")
    assert run.draws.positions.shape == (8, 128, 2)
    assert run.draws.target.name == "mog2"
    assert run.settings["settings"]["exact"] is True
    assert run.settings["settings"]["tries"] == 2
    assert run.diagnostics["verdict"]["sentences"][0] in result.stdout


@pytest.mark.parametrize(
    ("words", "exact"),
    [
        (["kernel.salmc"], True),
        (["kernel.salmc", "--no-metropolis"], False),
        (["own.salmc", "--target", "model.py:target"], False),
    ],
)
def test_draws_are_exact_where_the_kernel_can(words, exact):
    result = call("sample", *words, *QUICK)
    assert result.exit_code == 0, result.output
    assert open_run("out").settings["settings"]["exact"] is exact


def test_draws_that_exceed_memory_are_streamed(monkeypatch):
    # By its module: in `salmc.cli`, `sample` is the command.
    monkeypatch.setattr(importlib.import_module("salmc.cli.sample"), "MEMORY_LIMIT", 1000)
    options = [*QUICK[:2], "--draws", "4_096", *QUICK[4:]]
    result = call("sample", "kernel.salmc", *options)
    assert result.exit_code == 0, result.output
    assert "All 4,096 draws of each chain are in out/all-draws.zarr" in result.stdout
    run = open_run("out")
    assert run.draws.positions.shape == (8, 1366, 2)  # every third
    everything = run.settings["settings"]["all_draws"]
    with xarray.open_datatree("out/all-draws.zarr", engine="zarr") as tree:
        positions = tree["posterior"]["x"].values
    assert positions.shape == (8, 4096, 2)
    np.testing.assert_array_equal(positions[:, ::3], run.draws.positions)
    np.testing.assert_allclose(everything["mean"], positions.mean(axis=(0, 1)), atol=1e-5)
    assert call("show", "out").exit_code == 0


def test_a_target_of_ones_own():
    refused = call("sample", "own.salmc", "--metropolis", *QUICK)
    assert refused.exit_code == 2
    assert "needs the log density" in refused.stderr
    told = call("sample", "own.salmc", "--metropolis", "--target", "model.py:target", *QUICK)
    assert told.exit_code == 0, told.output
    assert "not exact" in told.stdout
    assert open_run("out").settings["target_spec"] == "model.py:target"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["absent.salmc"], "absent.salmc does not exist"),
        (["model.py"], "not a kernel file"),
        (["kernel.salmc", "--draws", "0"], "The `draws` argument"),
        (["kernel.salmc", "--no-metropolis", "--tries", "2"], "1 without a Metropolis step"),
        (["kernel.salmc", "--start", "elsewhere"], "The `start` argument"),
        (["own.salmc", "--metropolis", "--tries", "2", "--target", "mog2"], "The `tries` argument"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, words, sentence):
    before = sorted(tmp_path.iterdir())
    result = call("sample", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output
    assert [entry for entry in sorted(tmp_path.iterdir()) if entry.name != "runs"] == before
