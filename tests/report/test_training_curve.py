"""The picture of training, for every kind of history."""

import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.image import imread

from salmc.kernels.layers import Whitening
from salmc.report import run_pictures, style, training
from salmc.sampling.draws import Draws
from salmc.sampling.sampler import Sampler
from simple_kernels import Independent

POOL = np.random.default_rng(0).normal(size=(50, 2))
FALLING = [3.0, 1.0, 0.5]
STEPS = [10.0, 20.0, 30.0]
NAN = float("nan")


def make(history, **fields):
    return Sampler(Independent(2), None, Whitening.fit(jnp.asarray(POOL)), POOL, history=history)


@pytest.mark.parametrize(
    ("history", "titles"),
    [
        ({"kernel_loss": FALLING, "acceptance": [0.1, 0.5, 0.9]}, "Acceptance"),
        ({"kernel_loss": FALLING, "figure": [0.3, 0.01, -0.001]}, "MMD² to the pool"),
        ({"kernel_loss": FALLING, "figure": [NAN, NAN, NAN]}, "MMD² to the pool"),
        ({"kernel_loss": [NAN] * 3, "mixture_acceptance": [0.2, NAN, 0.3]}, "MMD² to the pool"),
    ],
)
def test_what_progress_was_judged_by_is_shown(tmp_path, history, titles):
    with style.look():
        figure = training.figure(make({"step": STEPS, **history}))
        assert figure.axes[1].get_title(loc="left") == titles
        style.save(figure, tmp_path / "training.png")
    assert imread(tmp_path / "training.png").shape[1] > 600


def test_one_chunk_is_enough_and_none_is_not():
    with style.look():
        one = {"step": [10.0], "kernel_loss": [1.0], "acceptance": [0.5]}
        assert training.figure(make(one)) is not None
        assert training.figure(make({})) is None


def test_it_is_written_with_the_other_pictures(tmp_path):
    draws = Draws(np.zeros((2, 3, 2)) + POOL[:2, None], np.zeros((2, 3)), 1.0)
    sampler = make({"step": STEPS, "kernel_loss": FALLING, "acceptance": [0.1, 0.5, 0.9]})
    assert run_pictures.write_pictures(draws, tmp_path, sampler) == ()
    assert (tmp_path / "training.png").exists()
