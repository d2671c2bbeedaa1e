"""BlackJAX's NUTS: window adaptation and 4 chains, vectorised, each with its own step size."""

import time

import numpy as np

from benchmarks.peers.problem import Answer, Problem

CHAINS, WARMUP, BLOCK = 4, 1000, 250


def run(problem: Problem) -> Answer:
    """Draws in blocks until there are enough."""
    import blackjax
    import jax
    import jax.numpy as jnp

    log_density = problem.unconstrained(jnp)
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density)

    def adapt(key, position):  # type: ignore[no-untyped-def]
        (state, parameters), info = warmup.run(key, position, WARMUP)
        return state, parameters, jnp.sum(info.info.num_integration_steps)

    kernel = blackjax.nuts.build_kernel()

    def one_chain(key, state, parameters):  # type: ignore[no-untyped-def]
        def step(state, key):  # type: ignore[no-untyped-def]
            state, info = kernel(key, state, log_density, **parameters)
            return state, (state.position, info.num_integration_steps, info.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(key, BLOCK))

    key = jax.random.key(problem.seed)
    keys = jax.random.split(key, CHAINS)
    found = jax.jit(jax.vmap(adapt))(keys, jnp.asarray(problem.start(CHAINS)))
    state, parameters, leapfrogs = jax.block_until_ready(found)
    total, divergent = [int(np.sum(leapfrogs))], [0]
    block = jax.jit(jax.vmap(one_chain)).lower(keys, state, parameters).compile()
    ready = time.process_time()

    def advance() -> np.ndarray:
        nonlocal state, key
        key, now = jax.random.split(key)
        state, (positions, steps, diverged) = block(
            jax.random.split(now, CHAINS), state, parameters
        )
        total.append(int(np.sum(steps)))
        divergent.append(int(np.sum(diverged)))
        return np.asarray(problem.constrain(positions, jnp))

    draws, _ = problem.until_effective(advance, most=20)
    notes = {"divergent": sum(divergent)}
    return Answer(draws, None, ready, sum(total), sum(total), notes)
