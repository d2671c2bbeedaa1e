"""Many steps of a mover as one compiled call."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from salmc.movers.base import AbstractMover, AbstractState
from salmc.programs import compiled


@compiled
def advance(
    mover: AbstractMover,
    state: AbstractState,
    key: PRNGKeyArray,
    first: Int[Array, ""],
    count: Int[Array, ""],
) -> tuple[AbstractState, Float[Array, " n"], Float[Array, ""]]:
    """`count` steps from step number `first` on; `count` is traced, so this compiles once.

    The key of a step depends on its number alone: the result does not depend on how the steps
    are divided into calls. Beside the state there are the log density of its particles and the
    displacement of the last step.
    """
    dynamic, static = eqx.partition(state, eqx.is_array)

    def body(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        current = eqx.combine(carry[0], static)
        following, info = mover.step(jax.random.fold_in(key, first + i), current)
        return eqx.filter(following, eqx.is_array), info.displacement

    dynamic, moved = jax.lax.fori_loop(0, count, body, (dynamic, jnp.zeros(())))
    state = eqx.combine(dynamic, static)
    return state, mover.target.log_densities(state.particles), moved
