"""SVGD: Stein variational gradient descent.

The particles move together: each is drawn to high density by the gradients of all particles near
it, and pushed away from them,

    x_i ← x_i + (ε/M) Σ_j [−κ(x_i, x_j) ∇Ũ(x_j) + ∇_{x_j} κ(x_i, x_j)],

eq. 2 of the paper, with κ(x, y) = exp(−|x − y|²/h) and h = median²/log(M + 1).

There is no noise: the cloud at the end is the sample. In many dimensions the push is too weak and
the cloud too narrow; no setting of the bandwidth cures it.

Reference: Liu and Wang, "Stein variational gradient descent", 2016.
"""

from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.movers.base import AbstractMover, Info, setting
from salmc.movers.cloud import Cloud
from salmc.movers.stein import median_squared_distance, stein_direction
from salmc.target import AbstractTarget, Points

_LARGEST_GRADIENT = 1e3
"""Gradients beyond it, in units of the start's spread, are cut. A target a hundred times narrower
than the start is not touched, but one particle at a singularity cannot rule its neighbours."""

_MEMORY = 0.9
"""Share of the running average that one step keeps."""

State = TypeVar("State", bound="SVGDState")


class SVGDState(Cloud):
    """A cloud with the mean squared direction of late."""

    mean_square: Float[Array, " dim"]

    def settled(
        self: State, direction: Points, step_size: Float[Array, ""]
    ) -> tuple[State, Float[Array, ""]]:
        """The state after a `settling_move` along a direction, and the length of that move."""
        move, mean_square = settling_move(direction, step_size, self.mean_square, self.count)
        return self.moved(move, mean_square=mean_square)


class SVGD(AbstractMover):
    """Stein variational gradient descent, eq. 2 of the paper.

    Args:
        target: what to sample from; it must have a gradient.
        step_size: length of the first move, in units of the spread of the start; step t is
            shorter by √(t + 1).
        bandwidth: a factor on h = median²/log(M + 1).
    """

    target: AbstractTarget
    step_size: Float[Array, ""] = setting("step_size", 0.3, above=0.0)
    bandwidth: Float[Array, ""] = setting("bandwidth", 1.0, above=0.0)

    name = "svgd"
    explanation = "particles drawn up the gradient and pushed apart by a kernel"
    requires_gradient = True
    kind = "particles"

    def init(self, key: PRNGKeyArray, particles: Points) -> SVGDState:
        del key
        return SVGDState.begin(particles, mean_square=jnp.zeros_like(particles[0]))

    def step(self, key: PRNGKeyArray, state: SVGDState) -> tuple[SVGDState, Info]:
        gradients = bounded(state.gradients(key, self.target))
        bandwidth = self.bandwidth * default_bandwidth(state.standard)
        direction = stein_direction(state.standard, gradients, bandwidth)
        state, length = state.settled(direction, self.step_size)
        return state, Info(length)


def default_bandwidth(points: Points) -> Float[Array, ""]:
    """h = median²/log(M + 1): the sum of a point's kernels with all others is then about one."""
    # The floor is for particles that have all met: divisions by its square do not overflow.
    return jnp.maximum(median_squared_distance(points) / np.log(len(points) + 1.0), 1e-12)


def bounded(gradients: Points) -> Points:
    """Gradients, cut, for directions that mix those of all particles."""
    return jnp.clip(gradients, -_LARGEST_GRADIENT, _LARGEST_GRADIENT)


def settling_move(
    direction: Points,
    step_size: Float[Array, ""],
    mean_square: Float[Array, " dim"],
    count: Float[Array, ""],
) -> tuple[Points, Float[Array, " dim"]]:
    """(ε/√(t+1)) φ / √(running mean of φ²), and that mean.

    The mean is over all particles, one for each coordinate. Normalising each particle by itself
    would amplify the small directions of isolated particles, which then wander off; and without
    the decay no cloud would come to rest.
    """
    latest = jnp.mean(direction**2, axis=0)
    average = _MEMORY * mean_square + (1.0 - _MEMORY) * latest
    mean_square = jnp.where(count > 0, average, latest)
    length = step_size / jnp.sqrt(count + 1.0)
    return length * direction / jnp.sqrt(mean_square + 1e-12), mean_square
