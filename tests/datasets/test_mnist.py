import gzip
import hashlib
import struct

import numpy as np
import pytest

from salmc.datasets import fetch, mnist
from salmc.datasets.image_data import digits, load_images
from salmc.datasets.known_files import KNOWN_FILES
from salmc.errors import ArgumentError, DataError


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.tobytes()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A small MNIST in the user's folder; `fetch` finds it without knowing its checksum."""
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (7, 28, 28), dtype=np.uint8)
    labels = np.arange(7, dtype=np.uint8)
    (tmp_path / "mnist").mkdir()
    for stem in ("train", "t10k"):
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            path = tmp_path / "mnist" / f"{stem}-{kind}-ubyte.gz"
            path.write_bytes(gzip.compress(idx(array), mtime=0))
    monkeypatch.setattr(fetch, "find", lambda name: tmp_path / name)
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    return tmp_path, images, labels


def test_images_and_labels_come_back_as_written(small):
    _, images, labels = small
    for split in ("train", "test"):
        found_images, found_labels = mnist.mnist(split)
        np.testing.assert_array_equal(found_images, images)
        np.testing.assert_array_equal(found_labels, labels)


def test_plain_file_is_read_like_a_gzipped_one(tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "plain").write_bytes(idx(array))
    np.testing.assert_array_equal(mnist.read_idx(tmp_path / "plain", axes=3), array)


def test_plain_file_in_the_users_folder_is_checked(small, monkeypatch):
    folder, images, _ = small
    name = "mnist/train-images-idx3-ubyte"
    (folder / f"{name}.gz").unlink()
    (folder / name).write_bytes(idx(images))
    with pytest.raises(DataError, match="another SHA-256"):
        mnist.mnist("train")
    right = KNOWN_FILES[f"{name}.gz"]._replace(digest=hashlib.sha256(idx(images)).hexdigest())
    monkeypatch.setitem(KNOWN_FILES, f"{name}.gz", right)
    np.testing.assert_array_equal(mnist.mnist("train")[0], images)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "begins with nothing"),
        (b"hello world", "not an IDX file"),
        (idx(np.zeros((2, 2), np.uint8)), "not an IDX file of bytes with 3 axes"),
        (idx(np.zeros((2, 2, 2), np.uint8))[:9], "header"),
        (idx(np.zeros((2, 2, 2), np.uint8))[:-1], "promises 8 values and it holds 7"),
        (idx(np.zeros((2, 2, 2), np.uint8)) + b"0", "promises 8 values and it holds 9"),
        (gzip.compress(idx(np.zeros((9, 9, 9), np.uint8)), mtime=0)[:-12], "unzipped"),
        (b"\x1f\x8b not gzip at all", "unzipped"),
    ],
)
def test_damaged_or_foreign_file_is_told_in_one_sentence(tmp_path, content, sentence):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(DataError, match=sentence) as error:
        mnist.read_idx(path, axes=3)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file_is_told(tmp_path):
    with pytest.raises(DataError, match="Cannot read"):
        mnist.read_idx(tmp_path / "nothing", axes=3)


def test_labels_of_another_set_are_refused(small):
    folder, _, _ = small
    labels = folder / "mnist" / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(gzip.compress(idx(np.arange(5, dtype=np.uint8))))
    with pytest.raises(DataError, match=r"7 images and .* 5 labels"):
        mnist.mnist("train")
    labels.write_bytes(gzip.compress(idx(np.full(7, 12, np.uint8))))
    with pytest.raises(DataError, match="not MNIST"):
        mnist.mnist("train")


def test_load_images_of_mnist(small):
    _, images, labels = small
    data = load_images("mnist", split="held-out", most=3)
    np.testing.assert_array_equal(data.images[..., 0], images[:3])
    np.testing.assert_array_equal(data.labels, labels[:3])
    assert data.shape == (28, 28, 1)
    coloured = load_images("mnist", size=14, colour=True)
    assert coloured.images.shape == (7, 14, 14, 3)
    assert np.ptp(coloured.images, axis=-1).max() == 0
    # Resizing keeps the mean brightness.
    assert abs(float(coloured.images.mean()) - float(images.mean())) < 2


def test_digits_ship_with_the_package_and_are_the_known_ones():
    images, labels = digits()
    assert images.shape == (1797, 8, 8)
    # Numbers of each class in the test part of the UCI data set, from its own description.
    counts = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    np.testing.assert_array_equal(np.bincount(labels), counts)
    assert images.max() == 255
    assert images.min() == 0


def test_digits_are_split_without_overlap():
    train, held_out = (load_images("digits", split=split) for split in ("train", "held-out"))
    assert (len(train.images), len(held_out.images)) == (1617, 180)
    everything = np.concatenate([train.images, held_out.images])[..., 0]
    original = digits()[0]
    assert sorted(map(bytes, everything)) == sorted(map(bytes, original))
    assert set(np.unique(held_out.labels)) == set(range(10))


def test_bad_arguments_are_told():
    for options in ({"split": "validation"}, {"size": 0}, {"crop": 10}, {"most": 0}):
        with pytest.raises(ArgumentError):
            load_images("digits", **options)
