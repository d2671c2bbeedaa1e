"""Pools of chains that follow the gradient, in the coordinates that these chains found.

In many dimensions, and where derivatives show funnels, differences of particles lead nowhere, and
tempering ends where necks begin. Chains that were tuned for a first answer
(`answers.gradient.chains`) have been everywhere by then, and know coordinates in which the target
is straight: a flow that learns from them learns there.

Beyond `MANY_DIMENSIONS` Laplace's Gaussian comes first, by exact independence moves: where data are
many it is nearly the target, and costs next to nothing.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.answers.gradient.answer import can_follow, followed, must_follow
from salmc.answers.replicas.answer import replica_answer
from salmc.movers.nuts import NUTS
from salmc.progress import AbstractReporter
from salmc.sampling.trajectories import Trajectory
from salmc.sizes import MANY_DIMENSIONS
from salmc.target import AbstractTarget, Points


class Followed(NamedTuple):
    """Points of chains along the gradient.

    Attributes:
        points, log_density: in the coordinates of `target`.
        covariance: a guess at the target's, from elsewhere than the points.
        target: straight.
        trajectory: what moves chains there, in units of white coordinates; None where Laplace's
            Gaussian was enough, or replicas moved them.
    """

    points: Points
    log_density: Float[Array, " n"]
    covariance: np.ndarray | None
    target: AbstractTarget
    trajectory: Trajectory | None


class Trajectories(eqx.Module):
    """What fills a pool by chains along the gradient. It is no mover: it takes no steps on its own.

    Args:
        target: differentiable.
    """

    target: AbstractTarget

    name: ClassVar[str] = "trajectories"

    def __check_init__(self) -> None:
        self.target.require_gradient(self.name)

    def fill(self, key: PRNGKeyArray, count: int, report: AbstractReporter) -> Followed | None:
        """`count` points, of chains along the gradient; where these stay apart, or lack a mode, of
        replicas; None where neither mix.

        Args:
            key: the same key gives the same points.
            count: how many.
            report: told of each round.

        Raises:
            TargetError: if the density cannot be used.
        """
        if self.target.dim > MANY_DIMENSIONS:
            near = NUTS(self.target).by_laplace(key, count)
            if near is not None:
                points, values = near.points, near.log_density
                return Followed(points, values, near.covariance, self.target, None)
        seed = int(jax.random.bits(key)) >> 1
        found, mixed = followed(self.target, None, seed, report)
        cloud, known = found.cloud, found.log_density
        trajectory: Trajectory | None = found.trajectory
        if not mixed:
            tempered = replica_answer(found.target, seed, report)
            if tempered is None:
                return None
            cloud, known, trajectory = tempered.cloud, tempered.log_density, None
        rows = np.random.default_rng(seed).permutation(np.resize(np.arange(len(cloud)), count))
        points = jnp.asarray(cloud[rows], dtype=float)
        values = jnp.asarray(known[rows], dtype=float)
        return Followed(points, values, None, found.target, trajectory)


def suits(target: AbstractTarget, seed: int) -> bool:
    """Whether a pool is better filled by chains along the gradient than by tempering."""
    if not can_follow(target):
        return False
    return target.dim > MANY_DIMENSIONS or must_follow(target, seed)
