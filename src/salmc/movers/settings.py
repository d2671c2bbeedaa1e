"""What the movers share: settings that are arrays, and gradients that cannot do harm."""

import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc import checks
from salmc.target import AbstractTarget, Points


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


def standardised_gradients(
    key: PRNGKeyArray, target: AbstractTarget, particles: Points, scale: Float[Array, " dim"]
) -> Points:
    """∇ log p in units of `scale`, of one minibatch that all particles share.

    A particle whose gradient is not finite, as where the density is zero, gets the gradient 0: it
    then follows noise and neighbours alone, and cannot spread NaN to others.
    """
    gradients = target.minibatch(key).gradients(particles) * scale
    finite = jnp.all(jnp.isfinite(gradients), axis=1, keepdims=True)
    return jnp.where(finite, gradients, 0.0)


def tamed(gradients: Points, step_size: Float[Array, ""]) -> Points:
    """Gradients cut, coordinate by coordinate, so that |ε g| ≤ 2 √ε.

    An explicit step is stable only where the curvature is below 2/ε, and there a Langevin
    particle has |g| ≈ √curvature < √(2/ε): what is cut would have made the step unstable anyway.
    So particles that start far out come in at a bounded speed instead of being thrown to the
    other side, and where the scheme is accurate (curvature ≪ 1/ε) nothing is changed.
    """
    limit = 2.0 / jnp.sqrt(step_size)
    return jnp.clip(gradients, -limit, limit)


def standardised(particles: Points, scale: Float[Array, " dim"]) -> Points:
    """The particles centred and in units of `scale`: where distances are measured."""
    return (particles - jnp.mean(particles, axis=0)) / scale
