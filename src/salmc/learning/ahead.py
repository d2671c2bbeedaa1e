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
from salmc.learning.sal_scheme import SAL_SCHEME
from salmc.learning.scheme import Scheme
from salmc.learning.settings import TrainingSettings
from salmc.learning.state import Problem, first_state


def compile_ahead(
    problem: Problem,
    settings: TrainingSettings,
    key: PRNGKeyArray,
    scheme: Scheme = SAL_SCHEME,
) -> threading.Thread:
    """Begin to compile what `loop.train` will run; returns at once.

    Args:
        problem: of the structure and shapes that will be trained; its values do not matter.
        settings: of the training.
        key: any; only its kind matters.
        scheme: of the training.

    Returns:
        The thread. Join it before training, which would otherwise compile the same again.
    """

    def work() -> None:
        # Whatever is wrong here is wrong in training too, where it is told properly.
        with contextlib.suppress(Exception):
            pool = jnp.zeros((settings.pool_size, problem.kernel.dim))
            state = first_state(problem, settings, key, pool, jnp.zeros(settings.pool_size))
            chunk_key = jax.random.fold_in(key, 0)
            advance_chunk(problem, settings.traced(), state, chunk_key, jnp.array(0), scheme)

    thread = threading.Thread(target=work, name="salmc-compile-ahead")
    thread.start()
    return thread
