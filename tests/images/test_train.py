"""AL-MC on the 8 × 8 digits: what is learned, and that a stopped run goes on bit for bit."""

import subprocess
import sys
import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.datasets.image_data import load_images
from salmc.errors import ArgumentError, OutputError
from salmc.images import ImageSampler, ImageSettings, train
from salmc.images import load as load_sampler
from salmc.images.adversarial import ImageAdversarial
from salmc.images.critic import ImageCritic
from salmc.kernels import ConvKernel, ImageMLPKernel
from salmc.progress import SilentReporter

SMALL = ImageSettings(steps=12, batch=8, critic_width=4, chunk=4, checkpoint_every=1)


@pytest.fixture(scope="module")
def digits():
    return load_images("digits").images


@pytest.fixture(scope="module")
def trained(digits):
    """600 steps, some seconds."""
    settings = ImageSettings(steps=600, batch=32, critic_width=8, average=0.99)
    kernel = ImageMLPKernel(jax.random.key(0), (8, 8, 1), width=96, code_dim=16)
    return train(digits, kernel=kernel, settings=settings, progress=False)


def small_kernel(name="mlp"):
    if name == "conv":
        return ConvKernel(jax.random.key(0), (8, 8, 1), width=4, code_dim=6)
    return ImageMLPKernel(jax.random.key(0), (8, 8, 1), width=8, code_dim=6)


def errors(sampler, digits):
    """Of the mean, and of the covariance: relative to the data's own spread."""
    drawn = sampler.sample(400, 6, seed=3, progress=False)[:, -1].reshape(400, -1) / 255.0
    real = digits.reshape(len(digits), -1) / 255.0
    spread = np.sqrt(np.sum(np.var(real, axis=0)))
    covariances = [np.cov(images.T) for images in (drawn, real)]
    mean = np.linalg.norm(drawn.mean(axis=0) - real.mean(axis=0)) / spread
    covariance = np.linalg.norm(covariances[0] - covariances[1]) / np.linalg.norm(covariances[1])
    return mean, covariance


def test_draws_have_the_mean_and_covariance_of_the_data(trained, digits):
    """Mean within 0.35 spreads, covariance within 0.6 of its norm; no untrained kernel does it.

    400 real images against all: 0.04 and 0.16.
    """
    mean, covariance = errors(trained, digits)
    assert mean < 0.35
    assert covariance < 0.6
    untrained = ImageSampler(
        ImageMLPKernel(jax.random.key(0), (8, 8, 1), width=96, code_dim=16), digits[:5]
    )
    mean, covariance = errors(untrained, digits)
    assert mean > 0.7
    assert covariance > 0.8


def test_with_noise_the_chain_jumps_and_without_it_moves_smoothly(trained):
    """A step without noise goes less than half as far as one with noise, and yet never stops."""
    jumps = trained.sample(40, 20, noise=0.5, progress=False).astype(float)
    smooth = trained.sample(40, 20, noise=0.0, progress=False).astype(float)
    far = np.mean(np.diff(jumps, axis=1) ** 2)
    near = np.mean(np.diff(smooth, axis=1) ** 2, axis=(0, 2, 3, 4))
    assert np.max(near[1:]) < 0.5 * far
    assert np.min(near) > 0.001 * far


def test_chains_do_not_drift(trained, digits):
    """After 100 draws the mean is as near the data's as after 6."""
    real = digits.reshape(len(digits), -1).astype(float)
    spread = np.sqrt(np.sum(np.var(real, axis=0)))
    last = trained.sample(200, 100, progress=False)[:, -1].reshape(200, -1).astype(float)
    assert np.linalg.norm(last.mean(axis=0) - real.mean(axis=0)) / spread < 0.4


def test_history_and_settings_are_told(trained):
    assert trained.history["step"][-1] == 600
    assert np.all(np.isfinite(trained.history["critic_loss"]))
    assert trained.history["consistency"][-1] < trained.history["consistency"][0]
    assert trained.settings["wasserstein"] == 0.1
    assert trained.warnings == ()


@pytest.mark.parametrize("name", ["mlp", "conv"])
def test_a_resumed_run_ends_with_the_same_kernel(name, digits, tmp_path):
    options = {"kernel": small_kernel(name), "settings": SMALL}
    whole = train(digits, **options, progress=False)
    checkpoint = tmp_path / "state"
    with pytest.raises(_Killed):
        train(digits, **options, checkpoint=checkpoint, progress=_KilledAfter(2))
    resumed = train(digits, **options, checkpoint=checkpoint, resume=True, progress=False)
    for first, second in zip(
        jax.tree.leaves(whole.kernel), jax.tree.leaves(resumed.kernel), strict=True
    ):
        np.testing.assert_array_equal(first, second)
    assert resumed.history["step"] == whole.history["step"] == [4.0, 8.0, 12.0]


def test_a_run_that_was_killed_goes_on(tmp_path):
    """By SIGKILL, in a process of its own, in the middle of training."""
    code = textwrap.dedent(
        """
        import jax, os, signal, sys
        from salmc.images import ImageSettings, train
        from salmc.kernels import ConvKernel
        from salmc.progress import SilentReporter
        class Kill(SilentReporter):
            done = 0
            def advance(self, steps, **figures):
                self.done += steps
                if self.done == 12:
                    os.kill(os.getpid(), signal.SIGKILL)
        settings = ImageSettings(steps=16, batch=8, critic_width=4, chunk=4, checkpoint_every=1)
        kernel = ConvKernel(jax.random.key(0), (8, 8, 1), width=4, code_dim=6)
        train("digits", kernel=kernel, settings=settings, progress=Kill(), out=sys.argv[1],
              checkpoint=sys.argv[2])
        """
    )
    out, state = tmp_path / "killed.salmc", tmp_path / "state"
    killed = subprocess.run([sys.executable, "-c", code, str(out), str(state)], check=False)
    assert killed.returncode < 0
    assert not out.exists()
    options = {
        "kernel": small_kernel("conv"),
        "settings": SMALL.replace(steps=16, checkpoint_every=1),
        "progress": False,
    }
    resumed = train("digits", checkpoint=state, resume=True, out=out, **options)
    assert resumed.history["step"] == [4.0, 8.0, 12.0, 16.0]
    whole = train("digits", **options)
    trees = load_sampler(out).kernel, whole.kernel
    for a, b in zip(*map(jax.tree.leaves, trees), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_runs_checkpoint_is_refused(digits, tmp_path):
    checkpoint = tmp_path / "state"
    options = {"kernel": small_kernel(), "progress": False, "checkpoint": checkpoint}
    train(digits, settings=SMALL, **options)
    with pytest.raises(OutputError, match="seed"):
        train(digits, settings=SMALL, seed=1, resume=True, **options)
    with pytest.raises(OutputError, match="data"):
        train(digits[5:], settings=SMALL, resume=True, **options)


def test_the_result_does_not_depend_on_the_chunks(digits):
    kernels = [
        train(
            digits,
            kernel=small_kernel(),
            settings=SMALL.replace(chunk=chunk),
            progress=False,
        ).kernel
        for chunk in (3, 5)
    ]
    for a, b in zip(*map(jax.tree.leaves, kernels), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_ctrl_c_keeps_what_was_learned(digits, tmp_path):
    sampler = train(
        digits,
        kernel=small_kernel(),
        settings=SMALL,
        progress=_KilledAfter(1, KeyboardInterrupt),
        checkpoint=tmp_path / "state",
        out=tmp_path / "k.salmc",
    )
    assert "Interrupted at step 8 of 12" in sampler.warnings[0]
    resumed = train(
        digits,
        kernel=small_kernel(),
        settings=SMALL,
        progress=False,
        checkpoint=tmp_path / "state",
        resume=True,
    )
    assert resumed.warnings == ()
    assert resumed.history["step"][-1] == 12


def test_a_memory_map_is_enough(digits, tmp_path):
    np.save(tmp_path / "images.npy", digits)
    lazy = np.load(tmp_path / "images.npy", mmap_mode="r")
    kernels = [
        train(data, kernel=small_kernel(), settings=SMALL, progress=False).kernel
        for data in (digits, lazy)
    ]
    for a, b in zip(*map(jax.tree.leaves, kernels), strict=True):
        np.testing.assert_array_equal(a, b)


def test_sheets_are_written_on_the_way(digits, tmp_path):
    from PIL import Image

    sheet = tmp_path / "deep" / "sheet.png"
    seen = []

    class Watching(SilentReporter):
        def advance(self, steps, **figures):
            seen.append(sheet.exists())

    options = {"kernel": small_kernel(), "settings": SMALL, "sheet": sheet, "sheet_every": 4}
    train(digits, **options, progress=Watching())
    assert seen == [False, True, True]
    pixels = np.asarray(Image.open(sheet))
    assert min(pixels.shape[:2]) >= 80
    assert pixels.std() > 0


def test_weights_stay_when_an_update_is_not_finite(digits):
    critic = ImageCritic(jax.random.key(1), (8, 8, 1), width=4)
    method = ImageAdversarial(small_kernel(), critic, SMALL)
    state = method.begin(jax.random.key(2))
    broken = jax.tree.map(lambda leaf: leaf, state)
    broken = broken.__class__(**{**vars(broken), "inputs": jnp.full_like(state.inputs, jnp.nan)})
    real = jnp.asarray(digits[:8].reshape(8, -1))
    after, _, fine = eqx.filter_jit(method.step)(broken, jax.random.key(3), real)
    assert not fine
    np.testing.assert_array_equal(after.weights, state.weights)
    np.testing.assert_array_equal(after.critic, state.critic)
    assert np.all(np.isfinite(after.inputs))
    assert int(after.step) == 1


def test_training_that_diverges_is_taken_back(digits):
    settings = SMALL.replace(learning_rate=1e30)
    sampler = train(digits, kernel=small_kernel(), settings=settings, progress=False)
    assert any("half the learning rate" in sentence for sentence in sampler.warnings)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(sampler.kernel))


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (np.zeros((30, 8, 8)), {}, "bytes"),
        (np.zeros((3, 8, 8), np.uint8), {}, "n ≥ 20"),
        (np.zeros((30, 64), np.uint8), {}, "height, width"),
        (np.zeros((30, 8, 8), np.uint8), {"size": 16}, "data that are named"),
        (np.zeros((30, 8, 8), np.uint8), {"kernel": "flow"}, "'conv', 'mlp'"),
        (np.zeros((30, 8, 10), np.uint8), {"kernel": small_kernel()}, "shape"),
        (np.zeros((30, 8, 8), np.uint8), {"steps": 0}, "at least 1"),
        (np.zeros((30, 8, 8), np.uint8), {"resume": True}, "checkpoint"),
    ],
)
def test_bad_arguments(data, options, words):
    with pytest.raises(ArgumentError, match=words):
        train(data, progress=False, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"quite": 0.1}, "Did you mean `quiet`"), ({"penalty": -1.0}, "at least 0")],
)
def test_bad_settings(options, words):
    with pytest.raises(ArgumentError, match=words):
        ImageSettings().replace(**options)


class _Killed(Exception):  # noqa: N818 - not an error of the program
    pass


class _KilledAfter(SilentReporter):
    """Ends the run in the middle of a chunk's bookkeeping."""

    def __init__(self, chunks, error=_Killed):
        self.left, self.error = chunks, error

    def advance(self, steps, **figures):
        self.left -= 1
        if self.left < 0:
            raise self.error
