"""The `Kernel` contract: a learned Markov transition x' = G(x, ξ).

    x' = kernel.propose(key, x)                 one point
    log q(x' | x) = kernel.log_density(x', x)   tractable kernels only
    log N(v') − log N(v)                        volume-preserving kernels only, which move (x, v)

Kernels live in whitened coordinates (see `whitening`): a trained kernel is bound to its whitening
and its target by a `Sampler`. Weights are array fields of the module, so that any number of trained
kernels of one shape share one compiled trace.

The batch methods exist for speed. Their defaults map the methods of one point; a kernel whose
arithmetic is quicker on whole batches overrides them.

A kernel is saved as its `description` and its array leaves in tree order (see
`salmc.sampling.kernel_file`): `from_description` must give a kernel of the same tree and shapes.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from salmc.target import Point, Points, Scalar


class AbstractKernel(eqx.Module):
    """A transition kernel on R^d. See the module's text for the contract."""

    dim: eqx.AbstractVar[int]

    name: ClassVar[str]
    explanation: ClassVar[str]
    """One line for people choosing a kernel."""

    @abc.abstractmethod
    def propose(self, key: PRNGKeyArray, x: Point) -> Point:
        """x' = G(x, ξ), with the noise ξ made from the key."""

    @abc.abstractmethod
    def description(self) -> dict[str, Any]:
        """The arguments that fix the kernel's structure, as JSON values; no weights."""

    @classmethod
    @abc.abstractmethod
    def from_description(cls, description: dict[str, Any]) -> "AbstractKernel":
        """A kernel of that structure with untrained weights."""

    def propose_batch(self, key: PRNGKeyArray, points: Points) -> Points:
        """One proposal from each of n points."""
        return jax.vmap(self.propose)(jax.random.split(key, len(points)), points)

    def forward_passes(
        self, keys: Key[Array, " steps"], count: int
    ) -> tuple[Any, Callable[[Any, Points], Points]]:
        """What many steps of `propose_batch` from `count` points need, and the step itself.

        Returns:
            Inputs with a leading axis over the steps, and step(input, points), which does what
            `propose_batch` does with that step's key. Whatever does not depend on the points can
            be done for all steps at once, on the way to the inputs.
        """
        del count
        return keys, self.propose_batch


class AbstractTractableKernel(AbstractKernel):
    """A kernel whose proposal density is known, so that Metropolis-Hastings with it is exact."""

    looks_at_state: eqx.AbstractVar[bool]
    """False: proposals do not depend on x, and can be made for all steps at once."""

    @abc.abstractmethod
    def log_density(self, x_new: Point, x: Point) -> Scalar:
        """log q(x_new | x), normalised."""

    def log_densities(self, new: Points, old: Points) -> Float[Array, " n"]:
        """log q(new_i | old_i) for n pairs."""
        return jax.vmap(self.log_density)(new, old)

    def propose_with_log_density(
        self, key: PRNGKeyArray, points: Points
    ) -> tuple[Points, Float[Array, " n"]]:
        """Proposals and log q of each given its point, in one pass where that is quicker."""
        new = self.propose_batch(key, points)
        return new, self.log_densities(new, points)

    def propose_ahead(
        self, keys: Key[Array, " steps"], count: int
    ) -> tuple[Float[Array, "steps count dim"], Float[Array, "steps count"]]:
        """`count` proposals for each key and their log q, from a kernel that looks at no state."""
        ignored = jnp.zeros((count, self.dim))
        return jax.vmap(lambda key: self.propose_with_log_density(key, ignored))(keys)


class AbstractVolumePreservingKernel(AbstractKernel):
    """A kernel that moves (x, v), v ~ N(0, I), by a map of volume 1 and forgets v.

    The map is taken forwards or backwards with probability ½ each. So a move and its reverse have
    the same density, whatever it is, and Metropolis-Hastings on (x, v) is exact with

        min{1, p(x') N(v') / (p(x) N(v))}.
    """

    velocity_dim: eqx.AbstractVar[int]
    """Coordinates of v."""

    @abc.abstractmethod
    def propose_with_correction(
        self, key: PRNGKeyArray, points: Points
    ) -> tuple[Points, Float[Array, " n"]]:
        """One proposal from each of n points, and log N(v') − log N(v)."""

    @abc.abstractmethod
    def push(
        self, key: PRNGKeyArray, points: Points
    ) -> tuple[Points, Float[Array, "n velocity_dim"]]:
        """The map forwards alone, from fresh velocities: x' and v', for training."""

    def propose_batch(self, key: PRNGKeyArray, points: Points) -> Points:
        return self.propose_with_correction(key, points)[0]


def is_exact(kernel: type[AbstractKernel]) -> bool:
    """Whether a Metropolis-Hastings step with kernels of this class leaves any target invariant."""
    return issubclass(kernel, (AbstractTractableKernel, AbstractVolumePreservingKernel))
