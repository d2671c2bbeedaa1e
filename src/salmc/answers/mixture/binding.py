"""A mixture that adapted to a target, bound as a kernel in whitened coordinates."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from salmc.answers.mixture.adaptation import Adaptation
from salmc.answers.mixture.effort import FRUGAL
from salmc.kernels.layers import Whitening
from salmc.kernels.mixture import MixtureKernel
from salmc.metropolis import local_steps_needed
from salmc.programs import on_device
from salmc.sampling.sampler import Sampler
from salmc.target import AbstractTarget

METHOD = "mixture"

_POOL = 4096
_NEARLY_ALL = 0.9
"""Effective draws for each draw, above which chains need no local steps."""


def mixture_sampler(
    target: AbstractTarget, found: Adaptation, seed: int, counts: dict[str, int]
) -> Sampler:
    """The mixture as a kernel in whitened coordinates, with a pool drawn by the weights."""
    assert found.mixture is not None
    rows = found.archive.resampled(found.generator, _POOL)
    pool, values = found.archive.points[rows], found.archive.values[rows]
    whitening = Whitening.fit(jnp.asarray(pool))
    matrix = np.asarray(whitening.forward_matrix, np.float64)
    factors = np.swapaxes(found.mixture.factors, 1, 2) @ matrix
    covariances = np.swapaxes(factors, 1, 2) @ factors
    kernel = MixtureKernel.of(
        found.mixture.weights,
        (found.mixture.means - np.asarray(whitening.mean, np.float64)) @ matrix,
        np.linalg.cholesky(covariances),
        found.mixture.shares,
    )
    points, log_density = target.outward(on_device(pool), on_device(values))
    log_weights = found.archive.values - found.mixture.log_density(found.archive.points)
    own = found.archive.proposals_of(found.mixture, log_weights)
    dear = found.effort is FRUGAL
    local = local_steps_needed(log_weights[rows], own, dear=dear)
    if not dear and found.efficiency < _NEARLY_ALL:
        local = 1  # they cost little where the density does, and no chain sticks
    settings: dict[str, Any] = {
        "seed": seed,
        "target": target.name,
        "efficiency": found.efficiency,
        "evaluations": counts,
    }
    return Sampler(
        kernel=kernel,
        target=target,
        whitening=whitening,
        pool=np.asarray(points),
        method=METHOD,
        settings=settings,
        pool_log_density=np.asarray(log_density),
        local=local,
    )
