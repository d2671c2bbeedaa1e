"""Files that are damaged, or made to do damage: one sentence, little memory, no escapes."""

import dataclasses
import hashlib
import json
import shutil
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from command import call
from salmc.errors import OutputError, SalmcError
from salmc.kernels import FlowKernel, Whitening
from salmc.learning.checkpoint import Checkpoint, Restored
from salmc.learning.engine import Record
from salmc.sampling.draws import Draws
from salmc.sampling.files.archive import to_array, to_bytes
from salmc.sampling.files.folder import open_run, write_run
from salmc.sampling.files.saved import load
from salmc.sampling.sampler import Sampler

FEW, MANY = 150, 3000
"""Damaged copies in `make test`, and in `make test-all`."""

COUNTS = [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]
POOL = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)


@pytest.fixture
def kernel_file(tmp_path):
    kernel = FlowKernel(jax.random.key(0), 2, layers=1, width=4, knots=4, radial_knots=4)
    whitening = Whitening.fit(jnp.asarray(POOL))
    history, seconds = {"loss": [0.5, 0.25]}, {"pool": 1.5}
    sampler = Sampler(kernel, None, whitening, POOL, history=history, seconds=seconds)
    return sampler.save(tmp_path / "kernel.salmc")


def checkpoint_file(place):
    whitening = Whitening.identity(2)
    record = Record(history={"loss": [1.0]}, seconds={"pool": 1.0})
    Checkpoint(place, {"seed": 0}, whitening, POOL).write(whitening, record)
    return place


@pytest.fixture
def run_folder(tmp_path):
    positions = np.random.default_rng(1).normal(size=(4, 20, 2)).astype(np.float32)
    draws = Draws(positions, positions[..., 0], 0.5, method="test", settings={"a": [1, None]})
    return write_run(draws, tmp_path / "run", summary=draws.summary(hunt=False))


def damage(content, generator):
    """Flipped bytes, a cut, zeros, or a piece that is there twice."""
    content, kind = bytearray(content), generator.integers(4)
    if not content:
        return b"\x00"
    at = int(generator.integers(len(content)))
    if kind == 0:
        for place in generator.integers(len(content), size=generator.integers(1, 4)):
            content[place] ^= int(generator.integers(1, 256))
    elif kind == 1:
        del content[at:]
    elif kind == 2:
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    else:
        content[at:at] = content[at : at + 100]
    return bytes(content)


def one_sentence(error):
    assert "\n" not in str(error)
    assert str(error).rstrip().endswith(".")


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_kernels(kernel_file, count):
    generator, content, refused = np.random.default_rng(2), kernel_file.read_bytes(), 0
    whole = load(kernel_file)
    for _ in range(count):
        kernel_file.write_bytes(damage(content, generator))
        try:
            loaded = load(kernel_file)
        except SalmcError as error:
            one_sentence(error)
            refused += 1
            continue
        # What is not noticed is harmless, such as a date in the archive.
        np.testing.assert_array_equal(loaded.pool, whole.pool)
        same = jax.tree.map(np.array_equal, loaded.kernel, whole.kernel)
        assert jax.tree.all(same)
    assert refused > 0.8 * count


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_checkpoints(tmp_path, count):
    place = checkpoint_file(tmp_path / "checkpoint")
    generator, content, refused = np.random.default_rng(3), place.read_bytes(), 0
    for _ in range(count):
        place.write_bytes(damage(content, generator))
        try:
            found = Restored(place, {"seed": 0})
        except SalmcError as error:
            one_sentence(error)
            refused += 1
            continue
        np.testing.assert_array_equal(found.start, POOL)
        assert found.record == Record(history={"loss": [1.0]}, seconds={"pool": 1.0})
    assert refused > 0.8 * count


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_run_folders(run_folder, count):
    """Settings, diagnostics and summary too: nothing that is opened differs from what was saved."""
    generator, whole = np.random.default_rng(4), open_run(run_folder)
    parts = ("settings.json", "diagnostics.json", "summary.txt", "checksums.json", "draws.zarr")
    files = [f for name in parts for f in [run_folder / name] if f.is_file()]
    files += [f for f in (run_folder / "draws.zarr").rglob("*") if f.is_file()]
    for _ in range(count):
        file = files[generator.integers(len(files))]
        content = file.read_bytes()
        file.write_bytes(damage(content, generator))
        try:
            opened = open_run(run_folder)
        except SalmcError as error:
            one_sentence(error)
        else:
            assert (opened.settings, opened.diagnostics) == (whole.settings, whole.diagnostics)
            assert opened.summary == whole.summary
            np.testing.assert_array_equal(opened.draws.positions, whole.draws.positions)
            assert opened.draws.settings == whole.draws.settings
        file.write_bytes(content)


# Made to do damage


def rewrite(file, change, compression=zipfile.ZIP_STORED):
    """Change header and entries of a kernel file, with checksums that are right again."""
    with zipfile.ZipFile(file) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(contents.pop("header.json"))
    change(header, contents)
    header["checksums"] = {n: hashlib.sha256(c).hexdigest() for n, c in contents.items()}
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, content in contents.items():
            archive.writestr(name, content)


def test_compressed_entries_are_refused_before_they_are_unpacked(kernel_file, monkeypatch):
    def plant(_, contents):
        contents["arrays/pool.npy"] = to_bytes(np.zeros((1_000_000, 2), np.float32))

    rewrite(kernel_file, plant, zipfile.ZIP_DEFLATED)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(OutputError, match="damaged"):
        load(kernel_file)


@pytest.mark.parametrize(
    "description", [{"width": 20_000}, {"depth": 10**9}, {"layers": 10**7}, {"dim": 10**6}]
)
def test_a_kernel_that_describes_more_than_the_file_holds(kernel_file, description, monkeypatch):
    """Nothing is drawn for weights that are not there."""

    def claim(header, _):
        header["kernel"]["description"].update(description)

    rewrite(kernel_file, claim)
    drawn = []

    class Counting(np.random.Generator):
        def standard_normal(self, size=None, *rest):
            drawn.append(np.prod(size))
            return super().standard_normal(size, *rest)

    monkeypatch.setattr(
        "salmc.kernels.flow.numpy_generator", lambda key: Counting(np.random.PCG64(0))
    )
    with pytest.raises(OutputError) as caught:
        load(kernel_file)
    one_sentence(caught.value)
    assert sum(drawn) < 10_000


@pytest.mark.parametrize(
    "change",
    [
        lambda h, c: h.update(seconds={"pool": "soon"}),
        lambda h, c: h.update(seconds=7),
        lambda h, c: h.update(settings="none"),
        lambda h, c: h.update(local="many"),
        lambda h, c: h.update(local=10**9),
        lambda h, c: h.update(warnings=[1]),
        lambda h, c: h.update(method=3),
        lambda h, c: h["kernel"].update(description=[]),
        lambda h, c: h.update(kernel="flow"),
        lambda h, c: c.update({"arrays/pool.npy": to_bytes(np.zeros((4, 3)))}),
        lambda h, c: c.update({"arrays/pool.npy": to_bytes(np.array(["a"]))}),
        lambda h, c: c.update({"arrays/whitening/mean.npy": to_bytes(np.zeros(3))}),
        lambda h, c: c.update({"arrays/whitening/mean.npy": to_bytes(np.full(2, np.nan))}),
        lambda h, c: c.update({"arrays/kernel/0.npy": to_bytes(np.zeros(1))}),
    ],
)
def test_content_that_makes_no_sense(kernel_file, change):
    rewrite(kernel_file, change)
    with pytest.raises(OutputError) as caught:
        load(kernel_file)
    one_sentence(caught.value)


@pytest.mark.parametrize("shape", ["(10000000000,)", "(-1,)", "(0, 99999999999)", "(3,)"])
@pytest.mark.parametrize("kind", ["<f4", "|O", "<U0", "|V8"])
def test_arrays_are_as_large_as_their_bytes(shape, kind):
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(8)
    with pytest.raises(ValueError, match=r"array|Cannot|cannot"):
        to_array(data)


def test_a_zarr_folder_that_claims_to_be_huge(run_folder):
    folder = run_folder / "draws.zarr"
    content = json.loads((folder / ".zmetadata").read_text())
    about = content["metadata"]["salmc/positions/.zarray"]
    about["shape"] = [10**6, 10**6, 2]
    (folder / ".zmetadata").write_text(json.dumps(content))
    with pytest.raises(OutputError, match="bytes in"):
        open_run(run_folder)
    about.update(shape=[4, 20, 2], filters=[{"id": "pickle"}])
    (folder / ".zmetadata").write_text(json.dumps(content))
    with pytest.raises(OutputError):
        open_run(run_folder)


def test_folders_of_before_there_were_checksums_open(run_folder):
    settings = json.loads((run_folder / "settings.json").read_text())
    (run_folder / "settings.json").write_text(json.dumps({**settings, "format": "salmc-run-1"}))
    with pytest.raises(OutputError, match="changed since saving"):
        open_run(run_folder)
    (run_folder / "checksums.json").unlink()
    assert open_run(run_folder).draws.method == "test"


def test_show_prints_no_escapes(tmp_path):
    escape = "\x1b]0;renamed\x07\x1b[2J\x9b31m\u202e"
    positions = np.zeros((2, 8, 1), np.float32)
    draws = Draws(positions, positions[..., 0], 0.5, method=f"m{escape}", warnings=(escape,))
    folder = write_run(draws, tmp_path / "run")
    (folder / f"file{escape}").touch()
    result = call("show", folder)
    assert result.exit_code == 0, result.output
    for character in "\x1b\x07\x9b\u202e":
        assert character not in result.output
    damaged = dataclasses.replace(draws, settings={"training_seconds": {"x": "soon"}})
    shutil.rmtree(folder)
    write_run(damaged, folder, summary=damaged.summary(hunt=False))
    result = call("show", folder)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "damaged" in result.stderr
