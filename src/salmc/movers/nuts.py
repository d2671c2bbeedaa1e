"""NUTS, by BlackJAX: what fills a pool in many dimensions, where there is a gradient.

Where Laplace's Gaussians at the modes are nearly the target, as with many data, exact independence
moves by them fill it alone. Elsewhere chains run from Laplace's Gaussian at the best mode, in the
coordinates in which it is N(0, I), x = m + A z: a posterior that is near Gaussian is then a ball,
whatever its condition number is. BlackJAX's window adaptation sets the step size and what is left
of the scales.

Reference: Hoffman & Gelman, "The No-U-Turn sampler", 2014; Cabezas et al., "BlackJAX", 2024.
"""

from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.errors import ArgumentError
from salmc.movers.base import check_at, log_densities
from salmc.movers.climb import Modes, balance, find_modes
from salmc.movers.cover import first_location
from salmc.programs import compiled, on_device
from salmc.target import AbstractTarget, Points

CHAINS = 32
_WARMUP, _ADAPTED = 400, 4
"""Steps of the adaptation, and chains that adapt: the others take over what these agree on."""

_CLIMBS = 4
_SETTLING = 30
_MOST_DIVERGED = 0.05
_LAPLACE_SWEEPS, _LAPLACE_ACCEPTED = 5, 0.5
"""At half of them, five sweeps leave no more than 3 % of the particles where they began."""


class Filled(NamedTuple):
    """Points of chains that followed the gradient."""

    points: Points
    log_density: Float[Array, " n"]
    start: Points
    """Where the chains began."""
    warnings: tuple[str, ...]
    covariance: np.ndarray | None
    """Laplace's, where a climb ended at a maximum."""


class NUTS(eqx.Module):
    """What fills a pool by chains of NUTS. It is no mover: it takes no steps on its own.

    Args:
        target: differentiable.
    """

    target: AbstractTarget

    name: ClassVar[str] = "nuts"

    def __check_init__(self) -> None:
        self.target.require_gradient(self.name)

    def fill(self, key: PRNGKeyArray, count: int) -> Filled:
        """`count` points; the same key gives the same ones.

        Raises:
            ArgumentError: without BlackJAX.
            TargetError: if the density cannot be used.
        """
        require_blackjax()
        target, keys = self.target, jax.random.split(key, 4)
        starts, modes = self._modes(keys)
        if len(modes.positions):
            place, scales = modes.positions[0], modes.factors[0]
            filled = self._by_laplace(keys, modes, count)
            if filled is not None:
                return filled
        else:
            # No climb ended at a maximum: the adaptation has to find the scales alone.
            place, scales = np.mean(np.asarray(starts), 0), np.diag(np.std(np.asarray(starts), 0))
        mean, factor = on_device(place), on_device(scales)
        first = jax.random.normal(keys[0], (CHAINS, target.dim))
        step_size, inverse_mass = _adapt(target, mean, factor, keys[1], first[:_ADAPTED])
        each = -(-count // CHAINS)
        points, diverged = _run(target, mean, factor, keys[2], first, step_size, inverse_mass, each)
        # Neighbours of one chain far apart, so that a slice of the pool has something of all.
        flat = jnp.swapaxes(points, 0, 1).reshape(-1, target.dim)[:count]
        told = (
            f"{100 * float(diverged):.0f} % of NUTS's trajectories diverged while the pool was "
            "filled: it may lack narrow places of the target. Write the model so that no scale "
            "multiplies a variable that depends on it, or use another mover.",
        )
        warnings = told if float(diverged) > _MOST_DIVERGED else ()
        guess = modes.factors[0] @ modes.factors[0].T if len(modes.positions) == 1 else None
        began = mean + first @ factor.T
        return Filled(flat, log_densities(target, flat), began, warnings, guess)

    def by_laplace(self, key: PRNGKeyArray, count: int) -> Filled | None:
        """`count` points by Laplace's Gaussians alone; None where they are not nearly the target.

        Raises:
            TargetError: if the density cannot be used.
        """
        keys = jax.random.split(key, 4)
        _, modes = self._modes(keys)
        return self._by_laplace(keys, modes, count) if len(modes.positions) else None

    def _modes(self, keys: Any) -> tuple[Points, Modes]:
        """Places around the target, and the modes that climbs from some of them find."""
        starts = first_location(self.target).sample(keys[3], CHAINS)
        check_at(self.target, starts)
        return starts, find_modes(self.target, starts[:_CLIMBS])

    def _by_laplace(self, keys: Any, modes: Modes, count: int) -> Filled | None:
        """By independence moves alone; None where too few of them are accepted."""
        noise = np.asarray(jax.random.normal(keys[0], (count, self.target.dim)))
        begun = np.empty_like(noise)
        for i, (mode, factor) in enumerate(zip(modes.positions, modes.factors, strict=True)):
            rows = slice(i, None, len(modes.positions))
            begun[rows] = mode + noise[rows] @ factor.T
        start = on_device(begun)
        values = log_densities(self.target, start)
        points, values, accepted = balance(
            self.target, keys[1], modes, start, values, _LAPLACE_SWEEPS
        )
        if accepted < _LAPLACE_ACCEPTED:
            return None
        covariance = modes.factors[0] @ modes.factors[0].T if len(modes.positions) == 1 else None
        return Filled(points, values, start, (), covariance)


def require_blackjax() -> None:
    """One sentence where BlackJAX is missing."""
    try:
        import blackjax  # noqa: F401
    except ImportError as error:
        raise ArgumentError(
            "Beyond thirty dimensions pools are filled by BlackJAX's NUTS, which is not installed: "
            "pip install blackjax, or choose another mover."
        ) from error


def _in_ball(target: AbstractTarget, mean: Array, factor: Array) -> Any:
    return lambda z: target.log_density(mean + factor @ z)


@compiled
def _adapt(
    target: AbstractTarget,
    mean: Float[Array, " dim"],
    factor: Float[Array, "dim dim"],
    key: PRNGKeyArray,
    first: Points,
) -> tuple[Float[Array, ""], Float[Array, " dim"]]:
    """Step size and scales that some chains agree on."""
    import blackjax

    warmup = blackjax.window_adaptation(blackjax.nuts, _in_ball(target, mean, factor))

    def one(key: PRNGKeyArray, z: Array) -> tuple[Array, Array]:
        (_, parameters), _ = warmup.run(key, z, num_steps=_WARMUP)
        return parameters["step_size"], parameters["inverse_mass_matrix"]

    sizes, masses = jax.vmap(one)(jax.random.split(key, len(first)), first)
    return jnp.exp(jnp.mean(jnp.log(sizes))), jnp.mean(masses, axis=0)


@compiled
def _run(
    target: AbstractTarget,
    mean: Float[Array, " dim"],
    factor: Float[Array, "dim dim"],
    key: PRNGKeyArray,
    first: Points,
    step_size: Float[Array, ""],
    inverse_mass: Float[Array, " dim"],
    each: int,
) -> tuple[Float[Array, "chains draws dim"], Float[Array, ""]]:
    """Chains that settle, then are kept now and then."""
    import blackjax

    sampler = blackjax.nuts(_in_ball(target, mean, factor), step_size, inverse_mass)

    def step(state: Any, key: PRNGKeyArray) -> tuple[Any, tuple[Array, Array]]:
        state, info = jax.vmap(sampler.step)(jax.random.split(key, len(first)), state)
        return state, (state.position, info.is_divergent)

    keys = jax.random.split(key, _SETTLING + each)
    _, (points, diverged) = jax.lax.scan(step, jax.vmap(sampler.init)(first), keys)
    kept = jnp.swapaxes(points[_SETTLING:], 0, 1)
    return mean + kept @ factor.T, jnp.mean(diverged[_SETTLING:])
