"""Steps of chains that have replicas beside them (`replicas`), as a block of a `Transition`."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from salmc.sampling.chain_states import ChainState, Steps
from salmc.sampling.chains import Transition
from salmc.sampling.replicas import Randomness, Replicas, move


def with_replicas(
    transition: Transition,
    state: ChainState,
    noise: Float[Array, "steps chains all_noise"],
    log_uniform: Float[Array, "steps chains rows"],
) -> tuple[ChainState, Steps]:
    """Steps of chains, each of which has its replicas beside it."""
    ladder, kernel = transition.ladder, transition.kernel.prepared()
    assert ladder is not None
    chains, dim, rungs = len(state.points), kernel.dim, ladder.rungs
    drawn, _ = kernel.propose_ahead(noise[..., : kernel.noise_dim])
    momenta = noise[..., kernel.noise_dim :].reshape(*noise.shape[:2], rungs, dim)
    uniform = log_uniform.reshape(*noise.shape[:2], 3, rungs)
    others = jnp.swapaxes(state.beside.reshape(chains, rungs - 1, dim), 0, 1)
    start = Replicas.at(jnp.concatenate([state.points[None], others]))

    def step(
        replicas: Replicas, given: tuple[Any, ...]
    ) -> tuple[Replicas, tuple[Array, Array, Array]]:
        drawn, momenta, uniform, first = given
        share, moves, exchanges = jnp.moveaxis(uniform, 0, 2)
        random = Randomness(jnp.swapaxes(momenta, 0, 1), 1.0 - jnp.exp(share), moves)
        new, _ = move(
            kernel, transition.log_densities, ladder, replicas, drawn, random, exchanges, first
        )
        changed = jnp.any(new.places[0] != replicas.places[0], axis=-1)
        return new, (new.places[0], new.log_p[0], changed)

    inputs = (drawn, momenta, uniform, jnp.arange(len(noise)) == 0)
    last, (points, values, changed) = jax.lax.scan(step, start, inputs)
    beside = jnp.swapaxes(last.places[1:], 0, 1).reshape(chains, -1)
    state = ChainState(last.places[0], last.log_p[0], last.heights[0], beside)
    # A trajectory that leads out of the support is no fault of a kernel's.
    return state, Steps(points, values, changed, jnp.zeros((), int))
