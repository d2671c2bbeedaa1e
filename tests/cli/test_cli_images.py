"""`salmc images`, as a person calls it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from command import call

FAST = ["--steps", "8", "--set", "batch=8", "--set", "critic_width=4", "--set", "chunk=4"]


def salmc(*words):
    return call("images", *words)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    out = tmp_path_factory.mktemp("images") / "digits.salmc"
    result = salmc("train", "--data", "digits", "--out", out, *FAST)
    assert result.exit_code == 0, result.output
    assert str(out) in result.output
    return out


def test_training_writes_a_kernel_and_a_sheet(kernel):
    assert kernel.exists()
    assert Image.open(kernel.with_suffix(".png")).width >= 80
    # The checkpoint of a complete training is gone.
    assert not list(kernel.parent.glob(".*"))


def test_a_strip_has_a_row_for_each_chain(kernel, tmp_path):
    sizes = []
    for chains, draws in ((2, 4), (4, 4), (2, 8)):
        out = tmp_path / f"{chains}-{draws}.png"
        result = salmc("sample", kernel, "--chains", chains, "--draws", draws, "--out", out, "-q")
        assert result.exit_code == 0, result.output
        sizes.append(Image.open(out).size)
    assert sizes[1][1] > sizes[0][1]
    assert sizes[2][0] > sizes[0][0]


def test_noise_and_seed_reach_the_chain(kernel, tmp_path):
    def picture(name, *words):
        out = tmp_path / f"{name}.png"
        shape = ("--chains", 2, "--draws", 3)
        assert salmc("sample", kernel, *shape, "--out", out, "-q", *words).exit_code == 0
        return np.asarray(Image.open(out))

    first = picture("a", "--noise", 0.5)
    np.testing.assert_array_equal(first, picture("b", "--noise", 0.5))
    assert np.any(first != picture("c", "--noise", 0))
    assert np.any(first != picture("d", "--seed", 1))
    assert np.any(first != picture("e", "--start", "data"))


def test_a_gif_has_a_frame_for_each_draw(kernel, tmp_path):
    out = tmp_path / "moves.gif"
    assert salmc("sample", kernel, "--chains", 4, "--draws", 6, "--out", out).exit_code == 0
    assert Image.open(out).n_frames == 6


def test_what_is_there_is_not_replaced_by_accident(kernel):
    before = kernel.read_bytes()
    result = salmc("train", "--data", "digits", "--out", kernel, *FAST)
    assert result.exit_code == 2
    assert "exists already" in result.output
    result = salmc("train", "--data", "digits", "--out", kernel, *FAST, "--resume")
    assert result.exit_code == 2
    assert "complete" in result.output
    assert kernel.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--out", "x.zip"), "must end in .salmc"),
        (("--out", "x.salmc", "--kernel", "flow"), "'conv', 'mlp'"),
        (("--out", "x.salmc", "--set", "penalti=1"), "Did you mean `penalty`"),
        (("--out", "x.salmc", "--steps", "0"), "at least 1"),
        (("--out", "x.salmc", "--resume"), "nothing to resume"),
    ],
)
def test_bad_training_options(words, sentence):
    result = salmc("train", "--data", "digits", *words)
    assert result.exit_code == 2
    assert sentence in result.output
    assert os.listdir() == []


def test_bad_data_and_files(kernel, tmp_path):
    missing = tmp_path / "no such folder"
    result = salmc("train", "--data", missing, "--out", tmp_path / "x.salmc")
    assert result.exit_code == 2
    assert "does not exist" in result.output
    result = salmc("sample", tmp_path / "none.salmc", "--out", tmp_path / "x.png")
    assert result.exit_code == 2
    assert "does not exist" in result.output
    result = salmc("sample", kernel, "--out", tmp_path / "x.jpg")
    assert result.exit_code == 2
    assert ".png or .gif" in result.output


def test_other_commands_do_not_import_what_images_need():
    code = "import sys, salmc.cli; sys.exit('salmc.images' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
