import warnings

import numpy as np
import pytest
from PIL import Image

from salmc.datasets import image_folder
from salmc.datasets.image_data import load_images
from salmc.datasets.image_folder import read_folder, square
from salmc.errors import ArgumentError, DataError, OutputError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("SALMC_CACHE", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path):
    """Twenty images of one colour each, whose red tells which it is; some in a folder below."""
    place = tmp_path / "photographs"
    (place / "more").mkdir(parents=True)
    for i in range(20):
        below = "more/" if i % 2 else ""
        Image.new("RGB", (40, 30 + i), (10 * i, 100, 200)).save(place / f"{below}{i:02d}.png")
    (place / "list.txt").write_text("not an image")
    (place / ".hidden.png").write_bytes(b"")
    return place


def test_every_image_is_read_once_in_a_fixed_order(folder):
    found = read_folder(folder, size=16)
    assert found.images.shape == (20, 16, 16, 3)
    assert sorted(found.images[:, 0, 0, 0]) == [10 * i for i in range(20)]
    numbers = [int(name[-6:-4]) for name in found.names]
    np.testing.assert_array_equal(found.images[:, 8, 8, 0], [10 * i for i in numbers])
    assert list(found.names) != sorted(found.names)
    assert found.skipped == ()
    np.testing.assert_array_equal(read_folder(folder, size=16).images, found.images)


def test_decoded_images_are_a_memory_map_that_is_decoded_once(folder, monkeypatch):
    assert isinstance(read_folder(folder, size=8).images, np.memmap)

    def fail(*_):
        raise AssertionError("decoded again")

    monkeypatch.setattr(image_folder, "_decode", fail)
    read_folder(folder, size=8)
    # Any change of a file makes it decode again.
    Image.new("RGB", (9, 9)).save(folder / "00.png")
    with pytest.raises(AssertionError, match="decoded again"):
        read_folder(folder, size=8)


def test_only_what_is_asked_for_is_decoded(folder, monkeypatch):
    seen = []
    original = image_folder._decode
    monkeypatch.setattr(
        image_folder, "_decode", lambda *given: seen.append(given) or original(*given)
    )
    assert len(read_folder(folder, size=8, most=5).images) == 5
    assert len(seen) == 5


def test_unreadable_files_are_left_out_and_named(folder):
    (folder / "broken.jpg").write_bytes(b"this is no image")
    whole = (folder / "02.png").read_bytes()
    (folder / "02.png").write_bytes(whole[: len(whole) // 2])
    with pytest.warns(UserWarning, match=r"2 of 21 files .* left out: .*broken\.jpg") as told:
        found = read_folder(folder, size=8)
    assert "02.png" in str(told[0].message)
    assert len(found.images) == len(found.names) == 19
    assert 20 not in found.images[:, 0, 0, 0]
    assert sorted(name.split(" ")[0] for name in found.skipped) == ["02.png", "broken.jpg"]


def test_folder_without_readable_images_is_told(tmp_path):
    with pytest.raises(ArgumentError, match="does not exist"):
        read_folder(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images"):
        read_folder(tmp_path / "empty")
    (tmp_path / "empty" / "a.png").write_bytes(b"nothing")
    with pytest.raises(DataError, match="None of the 1 images"):
        read_folder(tmp_path / "empty")


def test_interrupted_decoding_leaves_nothing_that_is_read(folder, cache, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(image_folder, "_decode", stop)
        with pytest.raises(KeyboardInterrupt):
            read_folder(folder, size=8)
    assert list((cache / "images").iterdir()) == []
    assert len(read_folder(folder, size=8).images) == 20


def test_cache_that_cannot_be_written_is_told(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SALMC_CACHE", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="SALMC_CACHE"):
        read_folder(folder, size=8)


def test_damaged_cache_is_told(folder, cache):
    read_folder(folder, size=8)
    (stored,) = (cache / "images").iterdir()
    (stored / "images.npy").write_bytes(b"broken")
    with pytest.raises(DataError, match="Delete that folder"):
        read_folder(folder, size=8)


def test_square_is_cut_from_the_middle():
    pixels = np.zeros((6, 10, 3), np.uint8)
    pixels[:, 2:8] = 200
    pixels[0] = 90
    image = Image.fromarray(pixels)
    assert square(image, 6, colour=True).shape == (6, 6, 3)
    np.testing.assert_array_equal(square(image, 6, colour=True)[1:], 200)
    np.testing.assert_array_equal(square(image, 4, colour=False, crop=4), 200)


def test_modes_become_plain_bytes():
    deep = Image.fromarray(np.full((4, 4), 0x8000, np.uint16))
    np.testing.assert_array_equal(square(deep, 4, colour=False), 128)
    clear = Image.new("RGBA", (4, 4), (10, 20, 30, 0))
    np.testing.assert_array_equal(square(clear, 4, colour=True), 255)
    palette = Image.new("RGB", (4, 4), (255, 0, 0)).quantize(4)
    np.testing.assert_array_equal(square(palette, 4, colour=True)[0, 0], (255, 0, 0))


def test_split_is_without_overlap_and_by_slices_of_the_map(folder):
    train, held_out = (
        load_images(folder, size=8, colour=False, split=split) for split in ("train", "held-out")
    )
    assert (len(train.images), len(held_out.images)) == (18, 2)
    assert isinstance(train.images, np.memmap)
    assert train.labels is None
    assert train.name == "photographs"
    values = np.concatenate([train.images, held_out.images])[:, 0, 0, 0]
    assert len(set(values.tolist())) == 20


def test_no_warning_for_a_sound_folder(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_folder(folder, size=8)
