"""What kernels over images share: a chain that moves on the sphere of an image's codes.

    e  with E(D(√k e)) = E(x), |e| = 1          the code of x, by e ← e + E(x) − E(D(√k e))
    z' = (R e + g ξ/√k) / |R e + g ξ/√k|        ξ ~ N(0, σ² I) in R^k
    x' = D(√k z')                               the decoder's image

It is the paper's x̃' = G(x̃, ξ) (eq. 15), with a G that knows both ways of sampling of its image
experiment. With ξ ~ N(0, 0.5 I) the noise outweighs the code, g² σ² ≫ 1, and the chain makes
distant jumps; with ξ = 0 the code turns by the fixed rotation R, a few degrees in each of k/2
planes, and the image changes smoothly. The decoder meets codes of one length in both cases, so
that no transition leaves what it was trained on.

R and the noise keep the uniform distribution on the sphere, and orbits of R do not close, as no
two angles are equal. The chain over images is stationary, with noise and without, if an image
that was made from z' has the code z', and only then: an encoder that is off by a little at each
step takes chains without noise to where its errors lead. Training makes encoder and decoder
nearly inverse (`salmc.images.adversarial`), and a few rounds of the fixed-point iteration do the
rest, as an error shrinks at each by the factor by which E∘D differs from the identity.

Images are points of R^(height × width × channels) with entries in [−1, 1], row by row.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from salmc import checks
from salmc.kernels.base import AbstractKernel, Noise, Proposal
from salmc.target import Points

Codes = Float[Array, "n code_dim"]

PAPER_VARIANCE = 0.5
"""σ² of the paper's image experiment."""

_SLOWEST, _FASTEST = 0.5, 1.5
"""Angles of R, in units of their mean."""


class AbstractImageKernel(AbstractKernel):
    """A kernel over images of one shape. See the module's text for the contract."""

    shape: eqx.AbstractVar[tuple[int, int, int]]
    """Height, width and channels; `dim` is their product."""
    code_dim: eqx.AbstractVar[int]
    """k."""
    noise_gain: eqx.AbstractVar[float]
    """g."""
    turn: eqx.AbstractVar[float]
    """Mean angle of R, in radians."""

    refinements: eqx.AbstractVar[int]
    """Rounds of `refined`."""

    over_images: ClassVar[bool] = True

    @abc.abstractmethod
    def encoder(self, images: Points) -> Codes:
        """E(x), of any length."""

    @abc.abstractmethod
    def decoder(self, codes: Codes) -> Points:
        """D of codes of length √k; entries in [−1, 1]."""

    def description(self) -> dict[str, Any]:
        found = super().description() | {"shape": list(self.shape)}
        return {name: value for name, value in found.items() if name != "dim"}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Any:
        # Files that were written before there were refinements do not name their number.
        shape = checked_shape(description["shape"])
        return super().from_description({"refinements": 0, **description, "shape": shape})

    @property
    def noise_dim(self) -> int:
        """Dimensions of ξ."""
        return self.code_dim

    def encode(self, images: Points) -> Codes:
        """Codes of length 1, by one pass of the encoder."""
        return unit(self.encoder(images))

    def refined(self, images: Points) -> Codes:
        """Codes e of length 1 with E(D(e)) = E(x), by e ← e + E(x) − E(D(e)).

        A round that does not bring E(D(e)) nearer to E(x) is taken back, and the next goes half as
        far: on images that no code makes, and before training, the code is no worse than E(x).
        """
        aim = self.encode(images)
        if self.refinements == 0:
            return aim

        def missing(codes: Codes) -> Codes:
            return aim - self.encode(self.decode(codes))

        def better(_: Array, known: tuple[Codes, Codes, Array]) -> tuple[Codes, Codes, Array]:
            codes, gap, least = known
            trial = unit(codes + gap)
            left = missing(trial)
            square = jnp.sum(left**2, axis=-1, keepdims=True)
            nearer = square < least
            gap = jnp.where(nearer, left, 0.5 * gap)
            return jnp.where(nearer, trial, codes), gap, jnp.minimum(square, least)

        gap = missing(aim)
        start = (aim, gap, jnp.sum(gap**2, axis=-1, keepdims=True))
        return jax.lax.fori_loop(0, self.refinements, better, start)[0]

    def decode(self, codes: Codes) -> Points:
        """Images of codes of length 1."""
        return self.decoder(codes * self.code_dim**0.5)

    def move(self, codes: Codes, noise: Noise) -> Codes:
        """z' from e and ξ."""
        scaled = noise * (self.noise_gain / self.code_dim**0.5)
        return unit(rotate(codes, self.turn) + scaled)

    def generate(self, images: Points, noise: Noise) -> Points:
        """G(x, ξ), for n pairs; with ξ = 0 a smooth transition."""
        return self.decode(self.move(self.refined(images), noise))

    def propose(self, points: Points, noise: Noise) -> Proposal:
        """With the paper's σ² = 0.5; `generate` takes any noise."""
        return Proposal(self.generate(points, PAPER_VARIANCE**0.5 * noise), None)


def from_bytes(images: UInt8[Array | np.ndarray, "n ..."]) -> Points:
    """Bytes as points: 0 … 255 ↦ [−1, 1]."""
    return jnp.asarray(images.reshape(len(images), -1), dtype=float) / 127.5 - 1.0


def to_bytes(points: Points) -> UInt8[Array, "n dim"]:
    """The other way round."""
    return jnp.round(jnp.clip((points + 1.0) * 127.5, 0.0, 255.0)).astype(jnp.uint8)


def unit(vectors: Codes) -> Codes:
    """Vectors divided by their lengths; one that has none stays as it is."""
    squares = jnp.sum(vectors**2, axis=-1, keepdims=True)
    return vectors * jax.lax.rsqrt(squares + 1e-12)


def rotate(codes: Codes, turn: float) -> Codes:
    """R e: coordinates i and i + k/2 turn by an angle of their own, between ½ and 1½ of `turn`."""
    half = codes.shape[-1] // 2
    angles = turn * np.linspace(_SLOWEST, _FASTEST, half)
    cosine, sine = (jnp.asarray(f(angles), codes.dtype) for f in (np.cos, np.sin))
    first, second = codes[..., :half], codes[..., half:]
    return jnp.concatenate([cosine * first - sine * second, sine * first + cosine * second], -1)


def checked_shape(shape: Any) -> tuple[int, int, int]:
    """Height, width and channels as whole numbers."""
    sides = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if len(sides) != 3:
        checks.fail("shape", "(height, width, channels)", shape)
    height, width, channels = (checks.integer("shape", side, 1) for side in sides)
    return height, width, channels


def checked_code(code_dim: int, noise_gain: float, turn: float) -> tuple[int, float, float]:
    """The sphere, the noise and the rotation."""
    if checks.integer("code_dim", code_dim, 2) % 2:
        checks.fail("code_dim", "even: its coordinates turn in pairs", code_dim)
    gain = float(checks.real("noise_gain", noise_gain, above=0.0))
    return code_dim, gain, float(checks.real("turn", turn, at_least=0.0, at_most=np.pi))
