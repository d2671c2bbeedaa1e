import zipfile

import jax
import numpy as np
import pytest

from salmc.datasets.image_data import load_images
from salmc.errors import ArgumentError, OutputError
from salmc_paper.images.classifier import FEATURES, Classifier
from salmc_paper.images.classifier_file import load_classifier, save_classifier
from salmc_paper.images.classifier_training import (
    ClassifierSettings,
    settings_for,
    shifted,
    train_classifier,
)


@pytest.fixture(scope="module")
def data():
    return load_images("digits")


@pytest.fixture(scope="module")
def held_out():
    return load_images("digits", split="held-out")


@pytest.fixture(scope="module")
def classifier(data):
    settings = ClassifierSettings(epochs=8, batch=64, shift=1)
    return train_classifier(data.images, data.labels, settings, progress=False)


def test_small_digits_are_told_apart(classifier, held_out):
    # 180 images that training never saw; a linear classifier gets about 0.95.
    assert classifier.accuracy(held_out.images, held_out.labels) > 0.95
    wrong = (held_out.labels + 1) % 10
    assert classifier.accuracy(held_out.images, wrong) < 0.05


def test_features_lead_to_the_class_by_the_last_layer(classifier, held_out):
    features = classifier.features(held_out.images)
    assert features.shape == (180, FEATURES)
    logits = features @ np.asarray(classifier.head) + np.asarray(classifier.head_bias)
    np.testing.assert_array_equal(logits.argmax(axis=-1), classifier.classify(held_out.images))


def test_images_of_chains_keep_their_axes_and_batches_do_not_matter(
    classifier, held_out, monkeypatch
):
    at_once = classifier.classify(held_out.images)
    chains = held_out.images.reshape(9, 20, 8, 8, 1)
    np.testing.assert_array_equal(classifier.classify(chains), at_once.reshape(9, 20))
    monkeypatch.setattr("salmc_paper.images.classifier._BATCH", 37)
    np.testing.assert_array_equal(classifier.classify(held_out.images), at_once)


def test_same_seed_gives_the_same_classifier(data):
    settings = ClassifierSettings(epochs=1, batch=256)
    first, again, other = (
        train_classifier(data.images, data.labels, settings, seed=seed, progress=False)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.head, again.head)
    assert not np.array_equal(first.head, other.head)


def test_saved_classifier_is_the_same(classifier, held_out, tmp_path):
    path = save_classifier(classifier, tmp_path / "new" / "digits.npz")
    loaded = load_classifier(path)
    np.testing.assert_array_equal(
        loaded.features(held_out.images), classifier.features(held_out.images)
    )
    assert [entry.name for entry in path.parent.iterdir()] == ["digits.npz"]


def test_damaged_or_foreign_file_is_told(classifier, tmp_path):
    path = save_classifier(classifier, tmp_path / "digits.npz")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(OutputError, match="damaged"):
        load_classifier(path)
    np.savez(path, header=np.array("{}"))
    with pytest.raises(OutputError, match="damaged"):
        load_classifier(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", b"junk")
    with pytest.raises(OutputError, match="damaged"):
        load_classifier(path)
    with pytest.raises(OutputError, match="does not exist"):
        load_classifier(tmp_path / "nothing.npz")


def test_shifts_move_an_image_without_changing_it():
    images = np.zeros((200, 7, 7, 1), np.uint8)
    images[:, 3, 3] = 9
    moved = np.asarray(shifted(jax.random.key(0), images, 2))
    assert (moved.reshape(200, -1).sum(axis=1) == 9).all()
    rows, columns = np.nonzero(moved.sum(axis=(0, 3)))
    # Every place within two pixels is reached by some of the 200.
    assert sorted(zip(rows, columns, strict=True)) == [
        (i, j) for i in range(1, 6) for j in range(1, 6)
    ]
    np.testing.assert_array_equal(shifted(jax.random.key(0), images, 0), images)


@pytest.mark.parametrize("shape", [(8, 8, 1), (28, 28, 1), (32, 32, 3), (64, 48, 3)])
def test_networks_of_all_sizes_end_on_a_small_grid(shape):
    network = Classifier(jax.random.key(0), shape, 5)
    assert network.hidden.shape[0] <= 64 * 8 * 8
    assert network.classify(np.zeros((2, *shape), np.uint8)).shape == (2,)


def test_small_sets_get_more_epochs(data):
    assert settings_for(data.images).epochs > ClassifierSettings().epochs
    assert settings_for(data.images).shift == 1
    many = np.broadcast_to(np.zeros((1, 28, 28, 1), np.uint8), (60_000, 28, 28, 1))
    assert settings_for(many) == ClassifierSettings()


def test_bad_input_is_told(classifier, data):
    with pytest.raises(ArgumentError, match=r"bytes of shape \(…, 8, 8, 1\)"):
        classifier.classify(np.zeros((2, 8, 8, 1)))
    with pytest.raises(ArgumentError, match="with a label each"):
        train_classifier(data.images, data.labels[:5])
    with pytest.raises(ArgumentError, match="batch"):
        train_classifier(data.images[:10], data.labels[:10], ClassifierSettings(batch=11))
