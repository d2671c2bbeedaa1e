"""The `Kernel` contract: a learned Markov transition x' = G(x, ξ), eq. 15 of the paper.

    proposal = kernel.propose(points, noise)    n points, and ξ ~ N(0, I) of shape (n, noise_dim)
    proposal.points                             x' = G(x, ξ)
    proposal.log_correction                     log r in min{1, p(x') r / p(x)}; None if not known

A kernel is a function: whoever runs it makes the noise, so that randomness belongs to a chain and
not to a batch. What a kernel can do, it states, and nobody asks for its class or its name:

    exact         Metropolis-Hastings with its corrections leaves any target invariant
    tractable     log q(x'|x) is known: r = q(x|x') / q(x'|x), and likelihood can train it
    independent   tractable, and proposals do not look at x: all steps' can be made at once
    latent        x' = T(ξ) with T invertible, ξ ~ N(0, I): moves of ξ are moves of x
    training      which of `TRAININGS` suits it
    calibrated    an affine map of its output may be set after training
    places        components that its noise may have, which the pool places before training

Kernels live in whitened coordinates (see `layers.Whitening`): a trained kernel is bound to its
whitening and its target by a `Sampler`. Weights are array fields of the module, so that any number
of trained kernels of one shape share one compiled trace.

A kernel is saved as its `description` and its array leaves in tree order (see
`salmc.sampling.files.kernel_file`): `from_description` must give a kernel of the same tree and
shapes.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from salmc.target import Point, Points

Noise = Float[Array, "n noise_dim"]
Values = Float[Array, " n"]
Calibration = tuple[Float[Array, "dim dim"], Float[Array, " dim"]]
"""A matrix M and a shift: the output becomes shift + M x'."""

TRAININGS = {
    "likelihood": "likelihood of the pool and regression on log p: needs a tractable kernel",
    "velocities": "a critic, and velocities that come out as they went in: kernels on (x, v)",
    "adversarial": "a critic, as in the paper: any kernel",
}
"""What may be minimised by default; `salmc.learning.settings` has the numbers."""


class Proposal(NamedTuple):
    """What a kernel proposes from some points."""

    points: Points
    log_correction: Values | None
    """What Metropolis-Hastings adds to log p(x') − log p(x); None where it is not known."""


class AbstractKernel(eqx.Module):
    """A transition kernel on R^d. See the module's text for the contract."""

    dim: eqx.AbstractVar[int]

    name: ClassVar[str]
    explanation: ClassVar[str]
    """One line for people choosing a kernel."""
    exact: ClassVar[bool] = False
    tractable: ClassVar[bool] = False
    volume_preserving: ClassVar[bool] = False
    """It moves (x, v) by a map of volume 1, which cannot pull a chain back that has left."""
    training: ClassVar[str] = "adversarial"
    over_images: ClassVar[bool] = False
    """Its points are images; `salmc.images` trains and samples it."""
    calibrated: ClassVar[bool] = False
    """It has a `calibration`."""
    placed: ClassVar[bool] = False
    """It may have `places`."""

    @property
    @abc.abstractmethod
    def noise_dim(self) -> int:
        """Dimensions of ξ."""

    @abc.abstractmethod
    def propose(self, points: Points, noise: Noise) -> Proposal:
        """x' = G(x, ξ) from each of n points, and the correction of each."""

    def description(self) -> dict[str, Any]:
        """The arguments that fix the kernel's structure, as JSON values; no weights.

        By default its static fields, which then are called as the arguments of its class are.
        """
        static = [field.name for field in dataclasses.fields(self) if field.metadata.get("static")]
        return {name: getattr(self, name) for name in static}

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Any:
        """A kernel of that structure with untrained weights; by default from a key and these."""
        made: Any = cls
        return made(jax.random.key(0), **description)

    def prepared(self) -> "AbstractKernel":
        """The kernel with what all of its densities need computed once, before a loop of them."""
        return self

    @property
    def independent(self) -> bool:
        """Whether proposals do not depend on the current point; tractable kernels only."""
        return False

    @property
    def latent(self) -> bool:
        """Whether `from_noise` and `to_noise` are there; independent kernels only."""
        return False

    def from_noise(self, noise: Noise, points: Points | None = None) -> tuple[Points, Values]:
        """x' = T(ξ) and log |det ∂T/∂ξ|, of a latent kernel."""
        raise NotImplementedError(f"The kernel {self.name} has no latent space.")

    def to_noise(self, new: Points, points: Points | None = None) -> tuple[Noise, Values]:
        """ξ with T(ξ) = x', and log |det ∂ξ/∂x'|, of a latent kernel."""
        raise NotImplementedError(f"The kernel {self.name} has no latent space.")

    @property
    def calibration(self) -> Calibration:
        """The affine map of its output, for kernels that have one."""
        raise NotImplementedError(f"The kernel {self.name} has no calibration.")

    def with_calibration(self, calibration: Calibration) -> "AbstractKernel":
        """The kernel with another affine map."""
        raise NotImplementedError(f"The kernel {self.name} has no calibration.")

    @property
    def places(self) -> int:
        """How many components its noise may have; 0 if it always is one cloud."""
        return 0

    @property
    def connected(self) -> bool:
        """Whether its noise is one cloud; not inside `jit`.

        Of several, one affine map would shift each of them to mend the moments of all.
        """
        return True

    def placed_at(
        self, weights: np.ndarray, means: np.ndarray, factors: np.ndarray
    ) -> "AbstractKernel":
        """The kernel with the components of its noise in given places, `places` at most."""
        raise NotImplementedError(f"The noise of the kernel {self.name} is one cloud.")

    @property
    def placement(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights, means and factors of the components in use, as `placed_at` takes them."""
        raise NotImplementedError(f"The noise of the kernel {self.name} is one cloud.")

    def pass_of(self, point: Point, numbers: Float[Array, " free"], which: Int[Array, ""]) -> Point:
        """x' from x by a given component, of a kernel with `places`.

        The first `dim` normal numbers, with the others as they are, lead anywhere: a map onto R^d.
        """
        raise NotImplementedError(f"The noise of the kernel {self.name} is one cloud.")

    def turned(self) -> "AbstractKernel":
        """A kernel on (x, v) with first weights that make it a quarter turn, (v, −x).

        The kernel as it is where there are none.
        """
        return self

    def push(
        self, points: Points, noise: Noise
    ) -> tuple[Points, Float[Array, "n velocity_dim"] | None]:
        """x' as training sees it, and the velocities that come out with it, if there are any."""
        return self.propose(points, noise).points, None

    def propose_with_density(self, points: Points, noise: Noise) -> tuple[Points, Values]:
        """x' and log q(x'|x), of a tractable kernel."""
        raise NotImplementedError(f"The kernel {self.name} does not know its density.")

    def log_densities(self, new: Points, old: Points) -> Values:
        """log q(new_i | old_i) for n pairs, normalised; of a tractable kernel."""
        raise NotImplementedError(f"The kernel {self.name} does not know its density.")

    def propose_ahead(
        self, noise: Float[Array, "steps n noise_dim"]
    ) -> tuple[Float[Array, "steps n dim"], Float[Array, "steps n"]]:
        """Proposals of many steps at once and log q of each, of an independent kernel."""
        flat = noise.reshape(-1, noise.shape[-1])
        new, log_q = self.propose_with_density(jnp.zeros((len(flat), self.dim)), flat)
        return new.reshape(*noise.shape[:2], self.dim), log_q.reshape(noise.shape[:2])

    def forward_passes(
        self, noise: Float[Array, "steps n noise_dim"]
    ) -> tuple[Any, Callable[[Any, Points], Points]]:
        """What many steps of forward passes need, and the step itself.

        Returns:
            Inputs with a leading axis over the steps, and step(input, points), which does what
            `propose` does with that step's noise. Whatever does not depend on the points can be
            done for all steps at once, on the way to the inputs.
        """
        if self.independent:
            return self.propose_ahead(noise)[0], lambda new, _: new
        return noise, lambda ahead, points: self.propose(points, ahead).points


class AbstractTractableKernel(AbstractKernel):
    """A kernel made of `propose_with_density` and `log_densities`: exact, trained by likelihood."""

    exact: ClassVar[bool] = True
    tractable: ClassVar[bool] = True
    training: ClassVar[str] = "likelihood"

    def propose(self, points: Points, noise: Noise) -> Proposal:
        new, forward = self.propose_with_density(points, noise)
        backward = self.log_densities(points, new)
        # A correction of +inf, from a density that is not finite, is never accepted.
        usable = jnp.isfinite(forward) & (backward < jnp.inf)
        return Proposal(new, jnp.where(usable, backward - forward, jnp.inf))
