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
from salmc.progress import SilentReporter
from salmc.sampling import executor, running
from salmc.sampling.files import growing_store
from salmc.sampling.files.lock import locked_folder
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
    """Parts of 300 draws, of which whole blocks are made."""
    monkeypatch.setattr(growing_store, "PART_BYTES", 300 * 32 * 2 * 4)
    monkeypatch.setattr(executor, "BLOCK_PROPOSALS", 16 * 64)
    monkeypatch.setattr(running, "KEPT_DRAWS", 100)


def make(target=TARGET):
    return Sampler(Independent(2, scale=1.2), target, WHITENING, POOL)


@pytest.fixture(scope="module")
def in_memory():
    return make().sample(progress=False, **OPTIONS)


def check(place, in_memory, draws=None):
    """A folder that was left behind holds a beginning of the draws, in all of its arrays."""
    with xarray.open_datatree(place, engine="zarr") as tree:
        draws = tree["posterior"].sizes["draw"] if draws is None else draws
        assert draws > 0
        np.testing.assert_array_equal(tree["posterior"]["x"], in_memory.positions[:, :draws])
        np.testing.assert_array_equal(tree["posterior"]["draw"], np.arange(draws))
        np.testing.assert_array_equal(tree["sample_stats"]["lp"], in_memory.log_density[:, :draws])
        accepted = tree["sample_stats"]["accepted"]
        np.testing.assert_array_equal(accepted, in_memory.accepted[:, :draws])


def going_on_gives_the_whole(place, in_memory):
    whole = make().sample_to(place.with_name("whole.zarr"), progress=False, **OPTIONS)
    resumed = make().sample_to(place, progress=False, resume=True, **OPTIONS)
    check(place, in_memory, 1000)
    for name in ("mean", "sd", "chain_mean", "chain_sd", "rhat", "acceptance", "draws", "warnings"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(whole, name))
    np.testing.assert_array_equal(resumed.thinned.positions, whole.thinned.positions)
    np.testing.assert_array_equal(resumed.thinned.steps, whole.thinned.steps)
    files = [
        sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))
        for folder in (place, whole.path)
    ]
    assert files[0] == files[1]


def test_the_store_holds_the_draws_of_the_same_seed(tmp_path, in_memory):
    streamed = make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    assert os.listdir(tmp_path) == ["draws.zarr"]
    with xarray.open_datatree(streamed.path, engine="zarr") as tree:
        assert dict(tree["posterior"].sizes) == {"chain": 32, "draw": 1000, "coordinate": 2}
        np.testing.assert_array_equal(tree["posterior"]["x"], in_memory.positions)
        np.testing.assert_array_equal(tree["sample_stats"]["lp"], in_memory.log_density)
        np.testing.assert_array_equal(tree["sample_stats"]["accepted"], in_memory.accepted)
        np.testing.assert_array_equal(tree["posterior"]["draw"], np.arange(1000))
        assert tree["posterior"]["x"].encoding["chunks"] == (32, 256, 2)
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


@pytest.mark.parametrize("step", ["_append", "_commit", "_flush"])
def test_an_interruption_while_writing_leaves_a_shorter_store(
    tmp_path, in_memory, monkeypatch, step
):
    """Ctrl-C in the middle of a part: it is written again, and nothing of it is there twice."""
    original, calls = getattr(growing_store.GrowingStore, step), []

    def interrupted(self, *given):
        calls.append(given)
        original(self, *given)
        if len(calls) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(growing_store.GrowingStore, step, interrupted)
    place = tmp_path / "draws.zarr"
    streamed = make().sample_to(place, progress=False, **OPTIONS)
    assert 256 <= streamed.draws < 1000
    check(place, in_memory, streamed.draws)
    np.testing.assert_allclose(
        streamed.mean, in_memory.positions[:, : streamed.draws].mean(axis=(0, 1)), atol=1e-5
    )
    going_on_gives_the_whole(place, in_memory)


def test_nothing_done_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(growing_store.GrowingStore, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["_begin", "_append", "_commit"])
def test_a_full_disk_leaves_the_finished_parts(tmp_path, in_memory, monkeypatch, step):
    original, calls = getattr(growing_store.GrowingStore, step), []

    def fail(self, *given):
        calls.append(given)
        original(self, *given)
        if step == "_begin" or len(calls) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(growing_store.GrowingStore, step, fail)
    place = tmp_path / "draws.zarr"
    with pytest.raises(OutputError, match="No space left on device") as caught:
        make().sample_to(place, progress=False, **OPTIONS)
    if step == "_begin":
        assert os.listdir(tmp_path) == []
        return
    assert os.listdir(tmp_path) == ["draws.zarr"]
    assert "draws of each chain are safe" in str(caught.value)
    monkeypatch.setattr(growing_store.GrowingStore, step, original)
    check(place, in_memory)
    going_on_gives_the_whole(place, in_memory)


class _PowerCut(SilentReporter):
    """An error that nothing catches, after so many draws."""

    def __init__(self, after):
        self.left = after

    def advance(self, steps, **figures):
        self.left -= steps
        if self.left <= 0:
            raise RuntimeError("power cut")


def test_a_stream_goes_on_where_it_was(tmp_path, in_memory):
    """Twice cut short: draws, figures and thinned part are those of a stream that never was."""
    place = tmp_path / "draws.zarr"
    for after in (400, 300):
        with pytest.raises(RuntimeError, match="power cut"):
            make().sample_to(place, progress=_PowerCut(after), resume=True, **OPTIONS)
    check(place, in_memory)
    going_on_gives_the_whole(place, in_memory)
    with pytest.raises(OutputError, match="nothing to go on from"):
        make().sample_to(place, progress=False, resume=True, **OPTIONS)


def test_only_the_same_run_goes_on(tmp_path):
    place = tmp_path / "draws.zarr"
    make().sample_to(place, progress=Interrupting(100), **OPTIONS)
    with pytest.raises(OutputError, match="another run: seed, kernel weights differ"):
        make().sample_to(place, progress=False, resume=True, **{**OPTIONS, "seed": 6})
    other = Sampler(Independent(2, scale=1.3), TARGET, WHITENING, POOL)
    with pytest.raises(OutputError, match="another run: kernel weights differ"):
        other.sample_to(place, progress=False, resume=True, **OPTIONS)
    with locked_folder(place), pytest.raises(OutputError, match="Another run is writing"):
        make().sample_to(place, progress=False, resume=True, **OPTIONS)


def test_an_existing_folder_is_refused_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "draws.zarr").mkdir()
    (tmp_path / "draws.zarr" / "precious").write_text("")
    monkeypatch.setattr(jax.random, "key", pytest.fail)
    with pytest.raises(OutputError, match="exists already"):
        make().sample_to(tmp_path / "draws.zarr", progress=False, **OPTIONS)
