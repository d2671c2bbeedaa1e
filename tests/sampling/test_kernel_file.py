"""A kernel survives the disk bit by bit; damage, foreign files and newer ones are one sentence."""

import json
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc.kernels
from salmc.errors import ArgumentError, OutputError, TargetError
from salmc.kernels.layers import Whitening
from salmc.sampling.files.saved import load
from salmc.sampling.sampler import Sampler
from salmc.target import Target
from salmc.targets import Mog2
from simple_kernels import SIMPLE, Autoregressive, Implicit, Independent

TARGET = Mog2()
POOL = np.asarray(TARGET.sample(jax.random.key(0), 100))
QUICK = {"chains": 4, "draws": 16, "progress": False}


@pytest.fixture(autouse=True)
def known_kernels(monkeypatch):
    monkeypatch.setattr(salmc.kernels, "KERNELS", {**salmc.kernels.KERNELS, **SIMPLE})


def make(kernel=None, target=TARGET):
    return Sampler(
        Independent(2, centre=0.1, scale=1.5) if kernel is None else kernel,
        target,
        Whitening.fit(jnp.asarray(POOL)),
        POOL,
        method="al-mc",
        settings={"learning_rate": 0.1, "nested": {"Ä": [1, None]}},
        history={"loss": [0.5, float("nan"), 0.25], "acceptance": np.arange(6.0).reshape(2, 3)},
        seconds={"pool": 1.5, "learning": 1 / 3},
    )


@pytest.fixture
def file(tmp_path):
    return make().save(tmp_path / "kernel.salmc")


def assert_same(first, second):
    assert eqx.tree_equal(first.kernel, second.kernel)
    assert eqx.tree_equal(first.whitening, second.whitening)
    np.testing.assert_array_equal(first.pool, second.pool)
    assert (first.method, first.settings, first.seconds) == (
        second.method,
        second.settings,
        second.seconds,
    )
    assert sorted(first.history) == sorted(second.history)
    for name in first.history:
        np.testing.assert_array_equal(first.history[name], second.history[name])


@pytest.mark.parametrize("kernel", [Autoregressive(2, 0.3, 0.7), Implicit(2, 0.2), None])
def test_everything_comes_back(tmp_path, kernel):
    sampler = make(kernel)
    loaded = load(sampler.save(tmp_path / "deep" / "kernel.salmc"))
    assert_same(sampler, loaded)
    assert loaded.target.name == "mog2"
    options = {"metropolis": True, **QUICK}
    np.testing.assert_array_equal(
        sampler.sample(**options).positions, loaded.sample(**options).positions
    )


def test_saving_again_replaces_the_file_and_leaves_nothing_else(tmp_path, file):
    make(Autoregressive(2)).save(file)
    assert isinstance(load(file).kernel, Autoregressive)
    assert [entry.name for entry in tmp_path.iterdir()] == ["kernel.salmc"]


def test_numpy_opens_the_arrays(file):
    with np.load(file) as arrays:
        np.testing.assert_array_equal(arrays["arrays/pool"], POOL)


def test_a_failed_write_keeps_the_old_file(tmp_path, file, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    before = file.read_bytes()
    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(OutputError, match="No space left"):
        make(Autoregressive(2)).save(file)
    assert file.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["kernel.salmc"]


# Targets


def test_a_target_of_ones_own_is_given_or_missed(tmp_path):
    own = Target(lambda x: -0.5 * jnp.sum(x**2), 2, name="own")
    file = make(target=own).save(tmp_path / "kernel.salmc")
    without = load(file)
    assert without.target is None
    assert without.sample(**QUICK).log_density is None
    with pytest.raises(TargetError, match="pass target="):
        without.sample(metropolis=True, **QUICK)
    assert load(file, own).target is own
    with pytest.raises(ArgumentError, match="of dimension 2"):
        load(file, Target(lambda x: -jnp.sum(x**2), 3))


def test_a_target_that_only_shares_its_name_with_a_built_in_one_is_not_taken_for_it(tmp_path):
    own = Target(lambda x: -0.5 * jnp.sum(x**2), 2, name="mog2")
    assert load(make(target=own).save(tmp_path / "kernel.salmc")).target is None


# What is not a good file


def one_sentence(path):
    with pytest.raises(OutputError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_missing_folders_and_foreign_files(tmp_path):
    assert "does not exist" in one_sentence(tmp_path / "absent.salmc")
    assert "is a folder" in one_sentence(tmp_path)
    for name, content in (("empty", b""), ("text", b"hello"), ("pickle", b"\x80\x04N.")):
        (tmp_path / name).write_bytes(content)
        assert "not a kernel file" in one_sentence(tmp_path / name)
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    assert "not a kernel file" in one_sentence(tmp_path / "other.npz")


def test_every_damaged_byte_is_noticed_or_harmless(tmp_path, file):
    sampler, content = load(file), file.read_bytes()
    copy, noticed = tmp_path / "copy.salmc", 0
    positions = range(0, len(content), max(1, len(content) // 150))
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 0xFF
        copy.write_bytes(damaged)
        try:
            assert_same(sampler, load(copy))
        except OutputError:
            noticed += 1
    # Time stamps and the like of the archive itself may change without harm.
    assert noticed > 0.7 * len(positions)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_a_file_cut_short(file, share):
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    one_sentence(file)


def rewrite(file, change):
    """Change header and members, as a foreign program would."""
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(contents["header.json"])
    change(header, contents)
    contents["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda header, _: header.update(format_version=99), "update salmc"),
        (lambda header, _: header.update(format="other"), "not a kernel file"),
        (lambda header, _: header["kernel"].update(name="unheard-of"), "does not know"),
        (lambda header, _: header["kernel"].update(description={}), "cannot be built"),
        (lambda header, _: header["kernel"].pop("name"), "damaged"),
        (lambda header, _: header.pop("method"), "damaged"),
        (lambda header, _: header.pop("checksums"), "damaged"),
        (lambda header, _: header["checksums"].pop("arrays/kernel/1.npy"), "do not fit"),
        (lambda header, _: header["checksums"].pop("arrays/pool.npy"), "damaged"),
        (lambda _, contents: contents.pop("arrays/pool.npy"), "damaged"),
        (lambda _, contents: contents.update({"arrays/pool.npy": b"x"}), "changed since saving"),
    ],
)
def test_headers_that_make_no_sense(file, change, expected):
    rewrite(file, change)
    assert expected in one_sentence(file)


def test_nothing_pickled_is_ever_loaded(file):
    import hashlib
    import io
    import pickle

    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("code of the file was run",))

    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    assert pickle.PROTO in buffer.getvalue()

    def plant(header, contents):
        contents["arrays/pool.npy"] = buffer.getvalue()
        checksum = hashlib.sha256(buffer.getvalue()).hexdigest()
        header["checksums"]["arrays/pool.npy"] = checksum

    rewrite(file, plant)
    assert "damaged" in one_sentence(file)


def test_a_kernel_that_is_not_registered_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(salmc.kernels, "KERNELS", {})
    with pytest.raises(OutputError, match="Register it"):
        make().save(tmp_path / "kernel.salmc")
