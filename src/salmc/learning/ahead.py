"""Compiling the training while the pool is being filled.

The program of a training chunk depends on shapes alone, which are known before the first particle
moves. XLA compiles outside Python's lock, so a thread that runs a chunk of no steps on a pool of
zeros costs the warm-up little, and training finds its program ready.
"""

import contextlib
import threading

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from salmc.learning.loop import advance_chunk
from salmc.learning.settings import LearningSettings
from salmc.learning.state import Problem, first_state


def compile_ahead(
    problem: Problem, settings: LearningSettings, key: PRNGKeyArray
) -> threading.Thread:
    """Begin to compile what `loop.train` will run; returns at once.

    Args:
        problem: of the structure and shapes that will be trained; its values do not matter.
        settings: of the training.
        key: any; only its kind matters.

    Returns:
        The thread. Join it before training, which would otherwise compile the same again.
    """

    def work() -> None:
        # Whatever is wrong here is wrong in training too, where it is told properly.
        with contextlib.suppress(Exception):
            pool = jnp.zeros((settings.pool_size, problem.kernel.dim))
            state = first_state(problem, settings, key, pool, jnp.zeros(settings.pool_size))
            chunk_key = jax.random.fold_in(key, 0)
            advance_chunk(problem, settings.traced(), state, chunk_key, jnp.array(0))

    thread = threading.Thread(target=work, name="salmc-compile-ahead")
    thread.start()
    return thread
