"""From an unnormalised density to a trained kernel: a pool is filled, whitened, and learned from.

What SAL-MC and A-NICE-MC have in common; a `Scheme` says what they do with the pool.
"""

import time
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from salmc.kernels.base import AbstractKernel
from salmc.kernels.whitening import Whitening
from salmc.learning.ahead import compile_ahead
from salmc.learning.checkpoint import Record
from salmc.learning.learned import Learned
from salmc.learning.pool import fill_pool
from salmc.learning.prepare import identity, learn, restored
from salmc.learning.scheme import Scheme
from salmc.learning.settings import TrainingSettings
from salmc.learning.state import Problem, first_state
from salmc.movers.base import AbstractMover
from salmc.progress import AbstractReporter
from salmc.target import AbstractTarget


def learn_from_density(
    target: AbstractTarget,
    kernel: AbstractKernel,
    critic: eqx.Module | None,
    mover: AbstractMover,
    settings: TrainingSettings,
    scheme: Scheme,
    keys: list[PRNGKeyArray],
    *,
    method: str,
    details: dict[str, Any],
    moves_all: bool = False,
    progress: bool | AbstractReporter = True,
    checkpoint: str | Path | None = None,
    resume: bool = False,
) -> Learned:
    """Fill the pool, or go on from a checkpoint, and train. Arguments are checked already.

    Args:
        target, kernel, critic, mover, settings: what is trained, and how.
        scheme: the method.
        keys: of the pool, the first state and the training.
        method: its name.
        details: what makes this run this run besides its settings, as JSON values.
        moves_all: whether the mover moves the whole pool in each step of training.
        progress, checkpoint, resume: see `sal_mc`.
    """
    found = restored(checkpoint, resume, identity(method, kernel, settings, details))
    record = Record()
    if found is None:
        empty = Problem(kernel, critic, target, None, Whitening.identity(target.dim))
        ahead = None if moves_all else compile_ahead(empty, settings, keys[1], scheme)
        filled = fill_pool(
            target,
            keys[0],
            settings.pool_size,
            mover,
            steps=settings.mover_steps,
            particles=settings.mover_particles,
            settle=not moves_all,
        )
        record.seconds.update(filled.seconds)
        record.warnings.extend(filled.warnings)
        if ahead is not None:
            clock = time.perf_counter()
            ahead.join()
            record.add_seconds("compile", time.perf_counter() - clock)
        whitening, start = Whitening.fit(filled.positions), np.asarray(filled.start)
        pool, log_density = whitening.whiten(filled.positions), filled.log_density
    else:
        record, whitening, start = found.record, found.whitening, found.start
        pool = jnp.zeros((settings.pool_size, target.dim))
        log_density = jnp.zeros(settings.pool_size)
    problem = Problem(kernel, critic, target, mover if moves_all else None, whitening)
    state = first_state(problem, settings, keys[1], pool, log_density)
    if found is not None:
        state = found.state(state)
    return learn(
        problem,
        settings,
        state,
        keys[2],
        record,
        method=method,
        details=details,
        scheme=scheme,
        start=start,
        checkpoint=checkpoint,
        progress=progress,
    )
