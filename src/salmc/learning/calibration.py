"""Calibration: the affine map of a kernel's output that gives its chain the pool's moments.

A critic sees a wrong mean or spread of a few per cent late. Both are known from the pool, averaged
over the second half of training: m and C. With the chain's own moments m̂, Ĉ the output becomes

    x' ← m + A (x' − m̂),   A Ĉ Aᵀ = C.

The input of the next step changes with the output, so this is done twice.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.learning.validation import passes
from salmc.programs import compiled
from salmc.target import Points

_CHAINS, _DRAWS, _DISCARDED, _ROUNDS = 512, 100, 10, 2


@compiled
def calibrated(kernel: Any, moments: Float[Array, "size size"], key: PRNGKeyArray) -> Any:
    """The kernel with its calibration set.

    Args:
        kernel: one that has a calibration.
        moments: Σ (x, 1)(x, 1)ᵀ over pool particles, whitened.
        key: of the chains.

    Returns:
        The kernel itself if a moment is not finite, or no particle was seen.
    """
    dim = kernel.dim
    total = moments[-1, -1]
    mean = moments[-1, :dim] / total
    wanted = _cholesky(moments[:dim, :dim] / total - jnp.outer(mean, mean))

    def adapt(current: Any, key: PRNGKeyArray) -> tuple[Any, None]:
        kernel_now = kernel.with_calibration(current)
        points = _run(kernel_now, key)
        factor = wanted @ jnp.linalg.inv(_cholesky(jnp.atleast_2d(jnp.cov(points.T))))
        matrix, shift = current
        return (factor @ matrix, factor @ (shift - jnp.mean(points, axis=0)) + mean), None

    before = kernel.calibration
    after, _ = jax.lax.scan(adapt, before, jax.random.split(key, _ROUNDS))
    fine = jnp.all(jnp.isfinite(after[0])) & jnp.all(jnp.isfinite(after[1]))
    chosen = jax.tree.map(lambda a, b: jnp.where(fine, a, b), after, before)
    return kernel.with_calibration(chosen)


def _run(kernel: Any, key: PRNGKeyArray) -> Points:
    """Draws of many short chains from N(0, I), without their beginning."""
    start_key, step_key = jax.random.split(key)
    start = jax.random.normal(start_key, (_CHAINS, kernel.dim))
    draws = passes(kernel, start, jax.random.split(step_key, _DRAWS))
    return draws[_DISCARDED:].reshape(-1, kernel.dim)


def _cholesky(covariance: Float[Array, "dim dim"]) -> Float[Array, "dim dim"]:
    ridge = 1e-6 * jnp.mean(jnp.diag(covariance))
    return jnp.linalg.cholesky(covariance + ridge * jnp.eye(len(covariance)))
