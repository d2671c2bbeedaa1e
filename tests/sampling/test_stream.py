"""Draws on disk are those that memory would hold, in parts, whole or cut short by Ctrl-C."""

import os

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from test_sampler import POOL, TARGET, WHITENING, Interrupting

from salmc.errors import OutputError
from salmc.sampling import growing_store, running
from salmc.sampling.sampler import Sampler
from salmc.target import Target
from simple_kernels import Independent

TREE = Target.from_pytree(
    lambda tree: -0.5 * (jnp.sum(tree["weight"] ** 2) + tree["scale"] ** 2),
    {"weight": jnp.zeros(1), "scale": 0.0},
    name="tree",
)
OPTIONS = {"chains": 32, "draws": 1000, "seed": 5, "metropolis": True}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 300 draws, which no block divides."""
    monkeypatch.setattr(growing_store, "PART_BYTES", 300 * 32 * 2 * 4)
    monkeypatch.setattr(running, "KEPT_DRAWS", 100)


def make(target=TARGET):
    return Sampler(Independent(2, scale=1.2), target, WHITENING, POOL)


@pytest.fixture(scope="module")
def in_memory():
    return make().sample(progress=False, **OPTIONS)


def test_the_store_holds_the_draws_of_the_same_seed(tmp_path, in_memory):
    streamed = make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    assert os.listdir(tmp_path) == ["draws.zarr"]
    with xarray.open_datatree(streamed.path, engine="zarr") as tree:
        assert dict(tree["posterior"].sizes) == {"chain": 32, "draw": 1000, "coordinate": 2}
        np.testing.assert_array_equal(tree["posterior"]["x"], in_memory.positions)
        np.testing.assert_array_equal(tree["sample_stats"]["lp"], in_memory.log_density)
        np.testing.assert_array_equal(tree["sample_stats"]["accepted"], in_memory.accepted)
        np.testing.assert_array_equal(tree["posterior"]["draw"], np.arange(1000))
        assert tree["posterior"]["x"].encoding["chunks"] == (32, 300, 2)
        assert tree.attrs["sampling_time"] > 0
        ess = arviz_stats.ess(tree)["x"].values
        np.testing.assert_allclose(ess, arviz_stats.ess(in_memory.to_arviz())["x"].values)


def test_a_black_box_streams_the_draws_that_memory_would_hold(tmp_path):
    target = Target.from_numpy(lambda points: -0.5 * np.sum(points**2, axis=1), 2)
    options = {**OPTIONS, "metropolis": False}
    streamed = make(target).sample_to(tmp_path / "draws.zarr", progress=False, **options)
    held = make(target).sample(progress=False, **options)
    with xarray.open_datatree(streamed.path, engine="zarr") as tree:
        np.testing.assert_allclose(tree["posterior"]["x"], held.positions, rtol=1e-5, atol=1e-6)


def test_the_layout_is_that_of_saved_draws(tmp_path, in_memory):
    make().sample_to(tmp_path / "streamed.zarr", progress=False, **OPTIONS)
    in_memory.save(tmp_path / "saved.zarr")
    trees = [
        xarray.open_datatree(tmp_path / name, engine="zarr")
        for name in ("streamed.zarr", "saved.zarr")
    ]
    for group in ("posterior", "sample_stats"):
        first, second = (tree[group].to_dataset() for tree in trees)
        xarray.testing.assert_equal(first, second)
        assert sorted(first.attrs) == sorted(second.attrs)


def test_figures_in_one_pass_and_a_thinned_part(tmp_path, in_memory):
    streamed = make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    positions = in_memory.positions.astype(np.float64)
    np.testing.assert_allclose(streamed.mean, positions.mean(axis=(0, 1)), atol=1e-6)
    np.testing.assert_allclose(streamed.sd, positions.std(axis=(0, 1)), rtol=1e-6)
    np.testing.assert_allclose(streamed.chain_mean, positions.mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(streamed.chain_sd, positions.std(axis=1, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(streamed.acceptance, in_memory.accepted.mean(axis=1))
    assert np.all((streamed.rhat > 0.99) & (streamed.rhat < 1.02))
    np.testing.assert_array_equal(streamed.thinned.positions, in_memory.positions[:, ::10])
    np.testing.assert_array_equal(streamed.thinned.steps, np.arange(1, 1001, 10))
    assert streamed.thinned.settings["every"] == 10
    assert streamed.thinned.dim == 2
    assert streamed.warnings == ()


def test_the_users_own_variables(tmp_path):
    options = {**OPTIONS, "draws": 700}
    streamed = make(TREE).sample_to(tmp_path / "draws.zarr", progress=False, **options)
    with xarray.open_datatree(streamed.path, engine="zarr") as tree:
        assert tree["posterior"]["weight"].shape == (32, 700, 1)
        drawn = make(TREE).sample(progress=False, **options).positions
        np.testing.assert_array_equal(tree["posterior"]["scale"], drawn[..., 0])
        np.testing.assert_array_equal(tree["posterior"]["weight"], drawn[..., 1:])


@pytest.mark.parametrize("after", [100, 400])
def test_an_interruption_leaves_a_shorter_store(tmp_path, in_memory, after):
    report = Interrupting(after)
    streamed = make().sample_to(tmp_path / "draws.zarr", progress=report, **OPTIONS)
    assert streamed.draws == report.done < 1000
    assert streamed.warnings == (f"Interrupted after {report.done} of 1000 draws.",)
    with xarray.open_datatree(streamed.path, engine="zarr") as tree:
        np.testing.assert_array_equal(tree["posterior"]["x"], in_memory.positions[:, : report.done])
        np.testing.assert_array_equal(tree["posterior"]["draw"], np.arange(report.done))
        assert tree["sample_stats"]["lp"].shape == (32, report.done)
        assert list(tree.attrs["warnings"]) == list(streamed.warnings)


def test_an_interruption_while_writing_leaves_a_shorter_store(tmp_path, in_memory, monkeypatch):
    write, calls = growing_store.GrowingStore._write, []

    def interrupted(self, rows):
        calls.append(rows)
        write(self, rows)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(growing_store.GrowingStore, "_write", interrupted)
    streamed = make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    assert 256 <= streamed.draws < 1000
    with xarray.open_datatree(streamed.path, engine="zarr") as tree:
        np.testing.assert_array_equal(
            tree["posterior"]["x"], in_memory.positions[:, : streamed.draws]
        )
        assert tree["posterior"]["draw"].shape == (streamed.draws,)


def test_nothing_done_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(growing_store.GrowingStore, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(growing_store.GrowingStore, "_write", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "draws.zarr").mkdir()
    (tmp_path / "draws.zarr" / "precious").write_text("")
    monkeypatch.setattr(jax.random, "key", pytest.fail)
    with pytest.raises(OutputError, match="exists already"):
        make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
