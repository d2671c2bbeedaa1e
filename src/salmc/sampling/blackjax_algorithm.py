"""A trained kernel as an algorithm of BlackJAX: (init, step), pure, for its loops and its users'.

    algorithm = sampler.as_blackjax()
    state = algorithm.init(position)
    state, info = algorithm.step(key, state)

A state has `position` and `logdensity`, as those of BlackJAX's own algorithms do, in the target's
own coordinates. So moves alternate: `algorithm.init(nuts_state.position)` goes from NUTS to the
kernel, and `nuts.init(state.position)` back, within one `jax.lax.scan`. Both leave the target
invariant, so that the alternation does.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from blackjax.base import SamplingAlgorithm
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from salmc.sampling.chain_states import ChainState
from salmc.sampling.chains import Transition
from salmc.target import Point


class State(NamedTuple):
    """Where one chain is."""

    position: Point
    logdensity: Float[Array, ""]
    """log p at the position; NaN for forward passes alone, which do not ask for it."""
    chain: ChainState
    """The same in the kernel's own coordinates."""


class Info(NamedTuple):
    """What one step did."""

    is_accepted: Bool[Array, ""]


def algorithm(transition: Transition) -> SamplingAlgorithm:
    """The transition of a sampler, in BlackJAX's form."""

    def init(position: Any, rng_key: PRNGKeyArray | None = None) -> State:
        del rng_key
        point = jnp.asarray(position, dtype=float)
        return _state(transition, point, transition.init(point))

    def step(rng_key: PRNGKeyArray, state: State) -> tuple[State, Info]:
        chain, told = transition.step(_typed(rng_key), state.chain)
        return State(told.position, told.log_density, chain), Info(told.accepted)

    return SamplingAlgorithm(init, step)


def _state(transition: Transition, point: Point, chain: ChainState) -> State:
    if not transition.metropolis or transition.target is None:
        return State(point, jnp.full((), jnp.nan, point.dtype), chain)
    # The chain knows the density without bounds; the user's is without the Jacobian.
    inside = transition.target.inward(point)
    return State(point, transition.target.outward(inside, chain.log_density)[1], chain)


def _typed(key: Any) -> PRNGKeyArray:
    """BlackJAX's users have keys of either kind."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    return jax.random.wrap_key_data(key)
