"""The `Mover` contract: a rule that moves a cloud of particles one step toward a target.

    state = mover.init(key, particles)        particles: (n, dim)
    state, info = mover.step(key, state)      state.particles: (n, dim)

`step` is a pure function of its arguments, so it can be compiled, scanned and vectorised.
Settings are array fields of the module: many settings share one compiled trace.

All step sizes are relative to `scale`, the spread of the particles a mover starts from, one
number for each coordinate. So the same settings serve a target of any location and scale.
"""

import abc
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.target import AbstractTarget, Points


class AbstractState(eqx.Module):
    """What a mover carries from step to step."""

    particles: eqx.AbstractVar[Points]


class Info(eqx.Module):
    """What one step tells. Movers that have more to say extend it."""

    displacement: Float[Array, ""]
    """Root mean square move of a particle in this step, in units of the starting scale."""


class AbstractMover(eqx.Module):
    """A rule that moves particles toward `target`. See the module's text for the contract."""

    target: eqx.AbstractVar[AbstractTarget]

    name: ClassVar[str]
    explanation: ClassVar[str]
    """One line for people choosing a method."""
    requires_gradient: ClassVar[bool]
    kind: ClassVar[Literal["chains", "particles"]]
    """`chains`: each particle is a Markov chain whose path is the sample.
    `particles`: the whole cloud at the last step is the sample."""

    def __check_init__(self) -> None:
        if self.requires_gradient:
            self.target.require_gradient(self.name)

    @abc.abstractmethod
    def init(self, key: PRNGKeyArray, particles: Points) -> AbstractState:
        """The state before the first step."""

    @abc.abstractmethod
    def step(self, key: PRNGKeyArray, state: Any) -> tuple[AbstractState, Info]:
        """One step of all particles. `state` is of the mover's own class, as `init` made it."""


def spread(particles: Points) -> Float[Array, " dim"]:
    """Standard deviation of each coordinate, the unit of all step sizes.

    A coordinate in which all particles agree (one particle, or a common start) has unit 1.
    """
    deviation = jnp.std(particles, axis=0)
    negligible = 1e-6 * jnp.max(jnp.abs(particles), axis=0)
    return jnp.where(deviation > negligible, deviation, 1.0)


def displacement(before: Points, after: Points, scale: Float[Array, " dim"]) -> Float[Array, ""]:
    """Root mean square move of a particle in units of `scale`."""
    return jnp.sqrt(jnp.mean(jnp.sum(((after - before) / scale) ** 2, axis=-1)))
