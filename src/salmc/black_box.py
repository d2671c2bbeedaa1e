"""A NumPy function of a batch of points as a JAX function of one: values, and no gradient."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from salmc.errors import TargetError


def black_box(
    log_densities: Callable[[np.ndarray], np.ndarray], dim: int, no_gradient: Exception
) -> Callable[[Float[Array, " dim"]], Float[Array, ""]]:
    """x ↦ log p(x), which calls Python with whole batches under `jax.vmap`.

    Args:
        log_densities: array (n, dim) ↦ array (n,).
        dim: number of coordinates.
        no_gradient: what is raised where a gradient is asked for.
    """

    def call(batch: Array) -> np.ndarray:
        points = np.asarray(batch)
        # A copy: the function may work in place, and the points are JAX's own.
        flat = np.array(points).reshape(-1, dim)
        returned = log_densities(flat)
        try:
            values = None if returned is None else np.asarray(returned, dtype=points.dtype)
        except (TypeError, ValueError):
            values = None
        if values is None or values.shape != (len(flat),):
            got = type(returned).__name__ if values is None else f"shape {values.shape}"
            raise TargetError(
                f"The log density must return an array of shape ({len(flat)},) for points of "
                f"shape {points.reshape(-1, dim).shape}. Got {got} instead."
            )
        return values.reshape(points.shape[:-1])

    @jax.custom_jvp
    def log_density(x: Float[Array, " dim"]) -> Float[Array, ""]:
        shape = jax.ShapeDtypeStruct((), x.dtype)
        return jax.pure_callback(call, shape, x, vmap_method="broadcast_all")

    # Without a rule of its own, `jax.grad` would speak of callbacks the user never wrote.
    @log_density.defjvp
    def _refuse(primals: Any, tangents: Any) -> Any:
        raise no_gradient

    return log_density
