"""`ImageSampler`: a trained kernel over images, and the images that chains may start from."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt8

from salmc import checks
from salmc.errors import OutputError
from salmc.kernels.image import PAPER_VARIANCE, AbstractImageKernel, from_bytes, to_bytes
from salmc.kernels.layers import Whitening, numpy_generator
from salmc.metropolis import step_noise
from salmc.programs import compiled
from salmc.progress import AbstractReporter, reporter
from salmc.sampling.files.archive import damaged, require
from salmc.sampling.files.kernel_file import read_kernel
from salmc.sampling.files.saved import training_of, write_trained
from salmc.target import Points

STARTS = ("noise", "data")

_BLOCK_IMAGES = 2048
"""Images in a block of draws, about: enough to keep a device busy, few enough to stream."""

_START, _STEPS = 0, 1
"""Numbers of the random streams of a seed."""


class ImageBlock(NamedTuple):
    """Some consecutive draws of all chains."""

    first: int
    """Number of the first of these draws."""
    images: UInt8[np.ndarray, "chains draws height width channels"]


@dataclasses.dataclass(frozen=True, eq=False)
class ImageSampler:
    """A chain over images, ready to run.

    Attributes:
        kernel: the transition.
        images: (n, height, width, channels) bytes: real images for chains to start from.
        settings: of the training, as JSON values.
        history: figures over the course of training, such as losses.
        seconds: of training, by part.
        warnings: what went wrong in training, in words.
    """

    kernel: AbstractImageKernel
    images: UInt8[np.ndarray, "n height width channels"]
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    history: dict[str, Any] = dataclasses.field(default_factory=dict)
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    method = "al-mc"

    def sample(
        self,
        chains: int = 10,
        draws: int = 50,
        seed: int = 0,
        *,
        noise: float = PAPER_VARIANCE,
        start: Any = "noise",
        progress: bool | AbstractReporter = True,
    ) -> UInt8[np.ndarray, "chains draws height width channels"]:
        """Run chains; every step is kept.

        Args:
            chains: how many, all at once.
            draws: of each chain.
            seed: the same seed gives the same images, and more draws begin with the same ones.
            noise: σ², the variance of ξ ~ N(0, σ² I): the paper's 0.5 for distant jumps, 0 for
                smooth transitions, or anything between.
            start: "noise" for chains that begin in images of pure noise, which are not among the
                draws; "data" for real images; or images (chains, height, width, channels), as
                bytes or as numbers in [−1, 1]. The first transition from noise always takes
                ξ ~ N(0, 0.5 I): without, chains that begin in nothing would all begin alike.
            progress: True for a bar, False for silence, or a reporter.

        Returns:
            Bytes. After Ctrl-C, the draws made until then.
        """
        blocks = []
        with reporter(progress) as report:
            report.start(f"{self.kernel.name} chain", checks.integer("draws", draws, 1))
            try:
                for block in self.stream(chains, draws, seed, noise=noise, start=start):
                    blocks.append(block.images)
                    report.advance(block.images.shape[1])
            except KeyboardInterrupt:
                if not blocks:
                    raise
        return np.concatenate(blocks, axis=1)

    def stream(
        self,
        chains: int = 10,
        draws: int | None = None,
        seed: int = 0,
        *,
        noise: float = PAPER_VARIANCE,
        start: Any = "noise",
    ) -> Iterator[ImageBlock]:
        """The draws of `sample` block by block, in constant memory; without `draws`, for ever."""
        checks.integer("chains", chains, 1)
        checks.integer("seed", seed, 0)
        checks.real("noise", noise, at_least=0.0)
        if draws is not None:
            checks.integer("draws", draws, 1)
        return self._blocks(*self._begin(chains, seed, start), draws, jnp.asarray(float(noise)))

    def save(self, path: str | Path) -> Path:
        """Write a `.salmc` file, which `load` reads; atomic.

        Raises:
            OutputError: if it cannot be written.
        """
        return write_trained(path, self, {"pool": self.images}, target={})

    def _begin(self, chains: int, seed: int, start: Any) -> tuple[Points, bool, PRNGKeyArray]:
        """Where the chains are before the first draw, and whether that is noise."""
        key = jax.random.key(seed)
        where, steps = jax.random.fold_in(key, _START), jax.random.fold_in(key, _STEPS)
        shape, dim = self.kernel.shape, self.kernel.dim
        if isinstance(start, str):
            if checks.choice("start", start, STARTS) == "noise":
                return _pure_noise(where, chains, dim), True, steps
            generator = numpy_generator(where)
            rows = generator.integers(0, len(self.images), chains)
            return from_bytes(self.images[rows]), False, steps
        images = np.asarray(start)
        if images.shape != (chains, *shape):
            expectation = f"'noise', 'data' or images of shape {(chains, *shape)}"
            checks.fail("start", expectation, f"shape {images.shape}")
        if images.dtype == np.uint8:
            return from_bytes(images), False, steps
        if images.dtype.kind not in "fiu" or not np.all(np.abs(images) <= 1.0):
            checks.fail("start", "bytes, or numbers in [−1, 1]", f"{images.dtype} beyond that")
        return jnp.asarray(images.reshape(chains, dim), dtype=float), False, steps

    def _blocks(
        self,
        points: Points,
        from_noise: bool,
        key: PRNGKeyArray,
        draws: int | None,
        variance: Float[Array, ""],
    ) -> Iterator[ImageBlock]:
        chains, size = len(points), max(1, _BLOCK_IMAGES // len(points))
        if draws is not None:
            size = min(size, draws)
        done = 0
        while draws is None or done < draws:
            count = size if draws is None else min(size, draws - done)
            first = jnp.asarray(PAPER_VARIANCE) if from_noise and done == 0 else variance
            points, drawn = _transitions(
                self.kernel, points, key, jnp.asarray(done), first, variance, size
            )
            images = np.asarray(drawn)[:, :count]
            yield ImageBlock(done, images.reshape(chains, count, *self.kernel.shape))
            done += count


@compiled
def _pure_noise(key: PRNGKeyArray, chains: int, dim: int) -> Points:
    """Images of noise; that of a chain depends on its number alone."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(chains))
    return jnp.clip(step_noise(keys, dim)[0], -1.0, 1.0)


@compiled
def _transitions(
    kernel: AbstractImageKernel,
    points: Points,
    key: PRNGKeyArray,
    done: Int[Array, ""],
    first_variance: Float[Array, ""],
    variance: Float[Array, ""],
    count: int,
) -> tuple[Points, UInt8[Array, "chains draws dim"]]:
    """`count` transitions of all chains; noise depends on the chain and the draw's number alone."""
    chains, size = jnp.arange(len(points), dtype=jnp.uint32), kernel.noise_dim
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, chains)

    def transition(points: Points, i: Array) -> tuple[Points, Array]:
        now = jnp.where(i == 0, first_variance, variance)
        noise, _ = step_noise(jax.vmap(jax.random.fold_in, (0, None))(keys, done + i), size)
        new = kernel.generate(points, jnp.sqrt(now) * noise)
        return new, to_bytes(new)

    points, images = jax.lax.scan(transition, points, jnp.arange(count))
    return points, jnp.swapaxes(images, 0, 1)


def load(path: str | Path) -> ImageSampler:
    """Read what `ImageSampler.save` wrote.

    Raises:
        OutputError: if the file is missing, damaged, of a newer format, or not of images.
    """
    kernel, header, arrays = read_kernel(path)
    if not isinstance(kernel, AbstractImageKernel):
        raise OutputError(
            f"{path} holds a kernel `{kernel.name}`, which is not over images. "
            "Use salmc.load, or salmc sample."
        )
    with damaged(path):
        images = arrays["pool"]
        fits = images.dtype == np.uint8 and images.shape[1:] == kernel.shape and len(images) > 0
        require(fits, "images")
        return ImageSampler(kernel, images, **training_of(header, arrays))


def no_whitening() -> Whitening:
    """Of no coordinates: a kernel over images lives in those of the images."""
    return Whitening(jnp.zeros(0), jnp.zeros((0, 0)), jnp.zeros((0, 0)))
