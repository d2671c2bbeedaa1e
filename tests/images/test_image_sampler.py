"""Chains over images: seeds, starts, noise, streaming, and files."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc import images as salmc_images
from salmc.errors import ArgumentError, OutputError
from salmc.images import ImageSampler
from salmc.kernels import ConvKernel

SHAPE = (8, 8, 1)


@pytest.fixture(scope="module")
def sampler():
    kernel = ConvKernel(jax.random.key(0), SHAPE, width=4, hidden=16, code_dim=6)
    real = np.random.default_rng(0).integers(0, 256, (30, *SHAPE), dtype=np.uint8)
    return ImageSampler(kernel, real, {"seed": 0}, {"step": [1.0]}, {"training": 1.5}, ("warned",))


def draw(sampler, *arguments, **options):
    return sampler.sample(*arguments, progress=False, **options)


def test_shapes_and_seeds(sampler):
    first = draw(sampler, 4, 7, seed=1)
    assert first.shape == (4, 7, *SHAPE)
    assert first.dtype == np.uint8
    np.testing.assert_array_equal(first, draw(sampler, 4, 7, seed=1))
    assert np.any(first != draw(sampler, 4, 7, seed=2))
    # More draws begin with the same ones.
    np.testing.assert_array_equal(first, draw(sampler, 4, 9, seed=1)[:, :7])


def test_without_noise_the_start_decides_everything(sampler):
    start = sampler.images[:3]
    first = draw(sampler, 3, 5, seed=1, noise=0.0, start=start)
    np.testing.assert_array_equal(first, draw(sampler, 3, 5, seed=2, noise=0.0, start=start))
    with_noise = [draw(sampler, 3, 5, seed=seed, start=start) for seed in (1, 2)]
    assert np.any(with_noise[0] != with_noise[1])


def test_chains_from_noise_begin_apart_even_without_noise(sampler):
    drawn = draw(sampler, 5, 2, noise=0.0)[:, 0].astype(int)
    for a, b in itertools.combinations(drawn, 2):
        assert np.any(a != b)


def test_each_draw_is_one_transition_from_the_last(sampler):
    drawn = draw(sampler, 2, 3, noise=0.0, start=sampler.images[:2])
    again = draw(sampler, 2, 1, noise=0.0, start=drawn[:, 1])
    # Bytes were rounded in between.
    assert np.max(np.abs(again[:, 0].astype(int) - drawn[:, 2])) <= 2


def test_numbers_and_bytes_are_the_same_start(sampler):
    numbers = sampler.images[:3] / 127.5 - 1.0
    np.testing.assert_array_equal(
        draw(sampler, 3, 2, start=numbers), draw(sampler, 3, 2, start=sampler.images[:3])
    )
    assert draw(sampler, 3, 2, start="data").shape == (3, 2, *SHAPE)


def test_blocks_are_the_draws(sampler, monkeypatch):
    whole = draw(sampler, 4, 11, seed=3)
    monkeypatch.setattr("salmc.images.sampler._BLOCK_IMAGES", 12)
    blocks = list(sampler.stream(4, 11, seed=3))
    assert [block.first for block in blocks] == [0, 3, 6, 9]
    np.testing.assert_array_equal(np.concatenate([b.images for b in blocks], axis=1), whole)


def test_a_stream_without_end(sampler, monkeypatch):
    monkeypatch.setattr("salmc.images.sampler._BLOCK_IMAGES", 8)
    blocks = list(itertools.islice(sampler.stream(4, seed=3), 5))
    assert [block.first for block in blocks] == [0, 2, 4, 6, 8]
    np.testing.assert_array_equal(
        np.concatenate([b.images for b in blocks], axis=1), draw(sampler, 4, 10, seed=3)
    )


def test_files(sampler, tmp_path):
    path = sampler.save(tmp_path / "k.salmc")
    again = salmc_images.load(path)
    np.testing.assert_array_equal(draw(sampler, 3, 4), draw(again, 3, 4))
    np.testing.assert_array_equal(sampler.images, again.images)
    assert again.settings == {"seed": 0}
    assert again.seconds == {"training": 1.5}
    assert again.warnings == ("warned",)
    assert list(again.history["step"]) == [1.0]


def test_kernels_of_images_and_of_densities_are_not_mixed_up(sampler, tmp_path):
    path = sampler.save(tmp_path / "k.salmc")
    with pytest.raises(OutputError, match="over images"):
        salmc.load(path)
    whitening = salmc.kernels.Whitening.fit(jnp.eye(2))
    other = salmc.sampling.sampler.Sampler(
        salmc.kernels.MLPKernel(jax.random.key(0), 2, width=4), None, whitening, np.zeros((3, 2))
    )
    with pytest.raises(OutputError, match="not over images"):
        salmc_images.load(other.save(tmp_path / "other.salmc"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"chains": 0}, "`chains`"),
        ({"draws": 0}, "`draws`"),
        ({"seed": -1}, "`seed`"),
        ({"noise": -0.1}, "`noise`"),
        ({"noise": float("nan")}, "`noise`"),
        ({"start": "pool"}, "'noise', 'data'"),
        ({"start": np.zeros((2, 8, 8, 1))}, "shape"),
        ({"start": np.full((10, 8, 8, 1), np.nan)}, "numbers in"),
        ({"start": np.full((10, 8, 8, 1), 200.0)}, "numbers in"),
    ],
)
def test_bad_arguments(sampler, options, words):
    with pytest.raises(ArgumentError, match=words):
        draw(sampler, **options)
