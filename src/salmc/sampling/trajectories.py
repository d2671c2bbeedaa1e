"""Trajectories: local moves that follow the gradient, exact under Metropolis-Hastings.

A particle at u, in whitened coordinates, gets a momentum v ~ N(0, I) and moves by

    v ← v + ½ε ∇log p(u),   u ← u + ε v,   v ← v + ½ε ∇log p(u)          (L times)

which is taken with min{1, p(u') N(v') / (p(u) N(v))}: the map keeps volumes, and with v turned
round it is its own inverse. ε is drawn anew for each move, between half of the step size and all of
it, so that no orbit closes after L steps whatever L is.

Reference: Neal, "MCMC using Hamiltonian dynamics", 2011; Duane et al., "Hybrid Monte Carlo", 1987.
BlackJAX has the same map for one chain; here many chains share one program of the batch's gradient,
and noise that belongs to each of them.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from salmc.sampling.symmetries import Symmetries
from salmc.target import Points

Values = Float[Array, " n"]

SMALLEST = 0.5
"""Of the step size, that a move has at least."""


class Trajectory(eqx.Module):
    """How far moves go.

    Attributes:
        step_size: ε, the largest.
        length: L, gradients for each move.
        symmetries: of the target; each move is followed by one to an image under one of them.
    """

    step_size: Float[Array, ""]
    length: Int[Array, ""]
    symmetries: Symmetries | None = None

    @classmethod
    def of(
        cls, step_size: float, length: int, symmetries: Symmetries | None = None
    ) -> "Trajectory":
        """Of plain numbers, as arrays: trajectories of any length share one program."""
        return cls(jnp.asarray(step_size, dtype=float), jnp.asarray(int(length)), symmetries)


class Ends(NamedTuple):
    """Where moves end."""

    points: Points
    log_density: Values
    log_correction: Values
    """log N(v') − log N(v); NaN or infinite where the move came to nothing."""


def follow(
    log_densities: Callable[[Points], Values],
    trajectory: Trajectory,
    points: Points,
    momentum: Points,
    share: Values,
) -> Ends:
    """One move of each point.

    Args:
        log_densities: of a batch of points.
        trajectory: how far.
        points: where moves begin.
        momentum: v of each.
        share: uniform numbers, which decide ε.
    """
    size = (trajectory.step_size * (SMALLEST + (1.0 - SMALLEST) * share))[:, None]

    def step(_: Array, carry: tuple[Points, Points, Points, Values]) -> tuple[Array, ...]:
        points, momentum, gradient, _values = carry
        momentum = momentum + 0.5 * size * gradient
        points = points + size * momentum
        values, gradient = with_slopes(log_densities, points)
        return points, momentum + 0.5 * size * gradient, gradient, values

    values, gradient = with_slopes(log_densities, points)
    start = (points, momentum, gradient, values)
    points, last, _, values = jax.lax.fori_loop(0, trajectory.length, step, start)
    correction = 0.5 * (jnp.sum(momentum**2, axis=-1) - jnp.sum(last**2, axis=-1))
    return Ends(points, values, correction)


def with_slopes(log_densities: Callable[[Points], Values], points: Points) -> tuple[Values, Points]:
    """log p at a batch of points, and its gradient there."""

    def total(points: Points) -> tuple[Array, Values]:
        values = log_densities(points)
        return jnp.sum(values), values

    (_, values), slopes = jax.value_and_grad(total, has_aux=True)(points)
    return values, slopes
