"""What most movers carry from step to step, and the way from a move to the next state."""

import dataclasses
from typing import Any, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractState, displacement, spread
from salmc.target import AbstractTarget, Points

State = TypeVar("State", bound="Cloud")


class Cloud(AbstractState):
    """Positions, the unit of length of each coordinate, and the number of steps taken."""

    particles: Points
    scale: Float[Array, " dim"]
    count: Float[Array, ""]

    @classmethod
    def begin(cls: type[State], particles: Points, **more: Any) -> State:
        """The state before the first step; `more` is what a mover carries beside the cloud."""
        return cls(particles, spread(particles), jnp.zeros(()), **more)

    @property
    def standard(self) -> Points:
        """The particles centred and in units of `scale`: where distances are measured."""
        return (self.particles - jnp.mean(self.particles, axis=0)) / self.scale

    def gradients(self, key: PRNGKeyArray, target: AbstractTarget) -> Points:
        """∇ log p in units of `scale`, of one minibatch that all particles share.

        A particle whose gradient is not finite, as where the density is zero, gets the gradient 0:
        it then follows noise and neighbours alone, and cannot spread NaN to others.
        """
        gradients = target.minibatch(key).gradients(self.particles) * self.scale
        finite = jnp.all(jnp.isfinite(gradients), axis=1, keepdims=True)
        return jnp.where(finite, gradients, 0.0)

    def moved(self: State, move: Points, **changes: Any) -> tuple[State, Float[Array, ""]]:
        """The state after a move in units of `scale`, and the root mean square of that move."""
        particles = self.particles + self.scale * move
        following = dataclasses.replace(
            self, particles=particles, count=self.count + 1.0, **changes
        )
        return following, displacement(self.particles, particles, self.scale)
