"""The `Mover` contract: a rule that moves a cloud of particles one step toward a target.

    state = mover.init(key, particles)        particles: (n, dim)
    state, info = mover.step(key, state)      state.particles: (n, dim)

`step` is a pure function of its arguments, so it can be compiled, scanned and vectorised.
Settings are array fields of the module: many settings share one compiled trace.

All step sizes are relative to `scale`, the spread of the particles a mover starts from, one
number for each coordinate. So the same settings serve a target of any location and scale.
"""

import abc
import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.errors import TargetError
from salmc.programs import RUNTIME_ERRORS, compiled, failure
from salmc.target import AbstractTarget, Points, require_scalar

_AT_ONCE = 2**25
"""Pairs of a point and a datum that are held in memory at once."""

_SHRINKAGE = 0.1
"""Share of the correlations given up, for a covariance that stays well away from singular."""


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


def setting(
    name: str,
    default: float,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> Any:
    """A field that holds a checked number as an array, so that its value never recompiles."""

    def convert(value: Any) -> Any:
        checks.real(name, value, above=above, at_least=at_least, at_most=at_most)
        if np.ndim(value) != 0:
            checks.fail(name, "one number", value)
        return jnp.asarray(value, dtype=float)

    return eqx.field(default=default, converter=convert)


def decayed(
    step_size: Float[Array, ""], decay: Float[Array, ""], count: Float[Array, ""]
) -> Float[Array, ""]:
    """ε_t = a (t + 1)^−decay, t = 0, 1, …"""
    return step_size * (count + 1.0) ** -decay


def tamed(gradients: Points, step_size: Float[Array, ""]) -> Points:
    """Gradients cut, coordinate by coordinate, so that |ε g| ≤ 2 √ε.

    An explicit step is stable only where the curvature is below 2/ε, and there a Langevin
    particle has |g| ≈ √curvature < √(2/ε): what is cut would have made the step unstable anyway.
    So particles that start far out come in at a bounded speed instead of being thrown to the
    other side, and where the scheme is accurate (curvature ≪ 1/ε) nothing is changed.
    """
    limit = 2.0 / jnp.sqrt(step_size)
    return jnp.clip(gradients, -limit, limit)


@compiled
def log_densities(target: AbstractTarget, points: Points) -> Float[Array, " n"]:
    """log p at n points, compiled."""
    return target.log_densities(points)


def check_at(target: AbstractTarget, points: Points, *, required: bool = True) -> bool:
    """Judge a density by its values at the first points: whether it is positive at any.

    Args:
        target: what is judged.
        points: where.
        required: whether a density that is zero or NaN at all of them is an error.

    Raises:
        TargetError: if it does not return a scalar, raises an error of its own from NumPy,
            returns +inf, or is NaN or zero everywhere.
    """
    shape = jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), points.dtype))
    require_scalar(target.name, target.dim, shape)
    try:
        values = np.asarray(_raw_log_densities(target, points))
    except RUNTIME_ERRORS as error:
        reason = failure(error).removeprefix("TargetError: ")
        raise TargetError(f"The log density of `{target.name}` failed: {reason}") from error
    if np.any(values == np.inf):
        where = np.asarray(points)[np.argmax(values == np.inf)]
        raise TargetError(
            f"The log density of `{target.name}` is +inf at {np.round(where, 4).tolist()}: "
            "no distribution has that. Bound the density there."
        )
    if np.any(values > -np.inf):
        return True
    if not required:
        return False
    if np.all(np.isnan(values)):
        raise TargetError(
            f"The log density of `{target.name}` is NaN at all {len(values)} starting points. "
            "Evaluate it at one point by hand to find the cause."
        )
    raise TargetError(
        f"The density of `{target.name}` is zero at all {len(values)} starting points, so nothing "
        "shows where to go. Start where it is positive: pass points as `start` to the target, or "
        "as `particles`."
    )


@compiled
def _raw_log_densities(target: AbstractTarget, points: Points) -> Float[Array, " n"]:
    """As `log_densities`, with NaN and +inf left to be seen; a few at once where data are many."""
    at_once = len(points) if not target.size else max(1, _AT_ONCE // target.size)
    return jax.lax.map(target.log_density, points, batch_size=min(at_once, len(points)))
