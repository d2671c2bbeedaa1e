"""Draws survive the disk bit by bit, ArviZ reads them, and damage is told in one sentence."""

import os
import shutil
import subprocess
import sys
import textwrap

import arviz_stats
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from salmc.errors import ArgumentError, OutputError
from salmc.sampling.draws import Draws
from salmc.sampling.files import atomic, store
from salmc.target import Target

PLAIN = Target(lambda x: -jnp.sum(x**2), 3, name="plain", names=("a", "b", "c"))
TREE = Target.from_pytree(
    lambda tree: -jnp.sum(tree["weights"] ** 2) - tree["scale"] ** 2,
    {"weights": jnp.zeros(2), "scale": 0.0},
)


def make_draws(kind="chains", target=None, chains=6, draws=20, **options):
    generator = np.random.default_rng(0)
    positions = generator.normal(size=(chains, draws, 3)).astype(np.float32)
    positions[:, 0] = -0.0
    log_density = generator.normal(size=(chains, draws)).astype(np.float32)
    log_density[0, :3] = (-np.inf, np.nan, -np.nan)
    return Draws(
        positions,
        log_density,
        seconds=0.1 + 0.2,
        kind=kind,
        method="test",
        target=target,
        settings={"step_size": 0.1, "nested": [1, None, "Ä"], "flag": True},
        steps=np.arange(1, draws + 1) * 5,
        burn_in=0.5 if kind == "chains" else 0.0,
        compile_seconds=1 / 3,
        warnings=("first – with a dash", "second"),
        **options,
    )


@pytest.mark.parametrize("kind", ["chains", "particles"])
@pytest.mark.parametrize("target", [None, PLAIN, TREE], ids=["no target", "plain", "tree"])
@pytest.mark.parametrize("with_flags", [True, False])
def test_everything_comes_back_exactly(tmp_path, kind, target, with_flags):
    flags = np.random.default_rng(1).random((6, 20)) > 0.5 if with_flags else None
    seen = np.random.default_rng(2).normal(size=(7, 3)) if with_flags else None
    draws = make_draws(kind, target, accepted=flags, seen=seen)
    loaded = Draws.load(draws.save(tmp_path / "draws.zarr"), target)
    for name in ("positions", "log_density", "steps", "accepted", "seen"):
        before, after = getattr(draws, name), getattr(loaded, name)
        if before is None:
            assert after is None
            continue
        assert before.dtype == after.dtype
        assert before.tobytes() == after.tobytes()
    for name in ("seconds", "kind", "method", "settings", "burn_in", "compile_seconds", "warnings"):
        assert getattr(draws, name) == getattr(loaded, name)
    assert loaded.target is target


def test_posterior_of_chains_is_without_burn_in():
    draws = make_draws("chains", PLAIN)
    tree = draws.to_arviz()
    assert dict(tree["posterior"].sizes) == {"chain": 6, "draw": 10, "coordinate": 3}
    np.testing.assert_array_equal(tree["posterior"]["x"], draws.chains())
    np.testing.assert_array_equal(tree["warmup_posterior"]["x"], draws.positions[:, :10])
    assert list(tree["posterior"]["coordinate"].values) == ["a", "b", "c"]
    assert tree.attrs["method"] == "test"


def test_posterior_of_particles_is_the_last_cloud():
    draws = make_draws("particles", PLAIN)
    tree = draws.to_arviz()
    np.testing.assert_array_equal(tree["posterior"]["x"][0], draws.positions[:, -1])
    np.testing.assert_array_equal(tree["sample_stats"]["lp"][0], draws.log_density[:, -1])
    assert "warmup_posterior" not in tree.children


def test_the_users_own_variables_keep_their_names_and_shapes(tmp_path):
    draws = make_draws("chains", TREE)
    draws.save(tmp_path / "draws.zarr")
    tree = xarray.open_datatree(tmp_path / "draws.zarr", engine="zarr")
    assert tree["posterior"]["weights"].shape == (6, 10, 2)
    assert tree["posterior"]["scale"].shape == (6, 10)
    np.testing.assert_array_equal(tree["posterior"]["scale"], draws.chains()[..., 0])
    assert list(arviz_stats.summary(tree).index) == ["scale", "weights[0]", "weights[1]"]


def test_existing_folder_is_not_overwritten(tmp_path):
    draws = make_draws()
    draws.save(tmp_path / "draws.zarr")
    with pytest.raises(OutputError, match="exists already"):
        draws.save(tmp_path / "draws.zarr")


def test_unwritable_place_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Cannot write"):
        make_draws().save(tmp_path / "file" / "draws.zarr")


def test_disk_full_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xarray.DataTree, "to_zarr", fail)
    with pytest.raises(OutputError, match="No space left on device"):
        make_draws().save(tmp_path / "draws.zarr")
    assert list(tmp_path.iterdir()) == []


def test_missing_and_foreign_folders(tmp_path):
    with pytest.raises(OutputError, match="no folder of draws"):
        store.load_draws(tmp_path / "absent")
    (tmp_path / "foreign").mkdir()
    with pytest.raises(OutputError):
        store.load_draws(tmp_path / "foreign")
    xarray.DataTree(xarray.Dataset({"a": 1})).to_zarr(tmp_path / "other.zarr", zarr_format=2)
    with pytest.raises(OutputError, match="not written by this version of salmc"):
        store.load_draws(tmp_path / "other.zarr")


def test_every_damaged_file_is_noticed(tmp_path):
    make_draws("particles").save(tmp_path / "good.zarr")
    raw = sorted(
        file.relative_to(tmp_path / "good.zarr")
        for file in (tmp_path / "good.zarr" / "salmc").rglob("*")
        # What is read comes from .zmetadata at the top, and the chunks.
        if file.is_file() and not file.name.startswith(".")
    )
    assert len(raw) >= 3
    for number, file in enumerate([*raw, ".zmetadata"]):
        for damage in ("delete", "truncate", "flip"):
            if damage == "delete" and file == ".zmetadata":
                continue  # the same is in each folder's own metadata: still readable
            copy = tmp_path / f"{number}-{damage}.zarr"
            shutil.copytree(tmp_path / "good.zarr", copy)
            content = (copy / file).read_bytes()
            if damage == "delete":
                (copy / file).unlink()
            elif damage == "truncate":
                (copy / file).write_bytes(content[: len(content) // 2])
            else:
                middle = len(content) // 2
                flipped = content[:middle] + b"\x00\xff" + content[middle + 2 :]
                (copy / file).write_bytes(flipped)
            with pytest.raises(OutputError):
                store.load_draws(copy)


def test_target_of_another_dimension_is_refused(tmp_path):
    path = make_draws().save(tmp_path / "draws.zarr")
    with pytest.raises(ArgumentError, match="of dimension 3"):
        store.load_draws(path, Target(lambda x: -jnp.sum(x**2), 2))


def test_kill_while_writing_leaves_nothing_under_the_final_name(tmp_path):
    script = f"""
        import os, signal
        from salmc.sampling.files import atomic
        with atomic.new_folder({str(tmp_path / "final")!r}) as working:
            (working / "half").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    finished = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert finished.returncode == -9
    assert not (tmp_path / "final").exists()
    assert len(list(tmp_path.glob(".final.tmp-*"))) == 1
    with atomic.new_folder(tmp_path / "final") as working:
        (working / "whole").write_text("whole")
    assert os.listdir(tmp_path / "final") == ["whole"]


def test_overwriting_keeps_the_old_until_the_new_is_there(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    (place / "old").write_text("old")
    with pytest.raises(RuntimeError), atomic.new_folder(place, overwrite=True):
        raise RuntimeError
    assert os.listdir(place) == ["old"]
    with atomic.new_folder(place, overwrite=True) as working:
        (working / "new").write_text("new")
        assert os.listdir(place) == ["old"]
    assert os.listdir(tmp_path) == ["place"]
    assert os.listdir(place) == ["new"]


def test_a_failed_swap_brings_the_old_back(tmp_path, monkeypatch):
    place = tmp_path / "place"
    place.mkdir()
    (place / "old").write_text("old")
    rename = atomic.Path.rename

    def fail_for_new(self, goal):
        if ".tmp-" in self.name:
            raise OSError(5, "Input/output error")
        return rename(self, goal)

    monkeypatch.setattr(atomic, "_swapped", lambda *_: False)  # as on systems that cannot
    monkeypatch.setattr(atomic.Path, "rename", fail_for_new)
    with pytest.raises(OutputError, match="Input/output"), atomic.new_folder(place, overwrite=True):
        pass
    assert os.listdir(tmp_path) == ["place"]
    assert os.listdir(place) == ["old"]


def test_folders_of_others_are_never_overwritten(tmp_path):
    (tmp_path / "precious").write_text("")
    with pytest.raises(OutputError, match="not written by salmc"):
        atomic.check_place(tmp_path, overwrite=True, ours=lambda _: False)
    with pytest.raises(OutputError, match="not written by salmc"):
        atomic.check_place(tmp_path / "precious", overwrite=True)
