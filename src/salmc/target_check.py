"""A density that cannot be used, met at the door."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from salmc.compiled import RUNTIME_ERRORS, failure
from salmc.errors import TargetError
from salmc.target import AbstractTarget, Points, require_scalar


def check_at(target: AbstractTarget, points: Points) -> None:
    """Judge a density by its values at the first points.

    Raises:
        TargetError: if it does not return a scalar, raises an error of its own from NumPy,
            returns +inf, or is NaN or zero everywhere.
    """
    shape = jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), points.dtype))
    require_scalar(target.name, target.dim, shape)
    try:
        values = np.asarray(_raw_log_densities(target, points))
    except RUNTIME_ERRORS as error:
        reason = failure(error).removeprefix("TargetError: ")
        raise TargetError(f"The log density of `{target.name}` failed: {reason}") from error
    if np.any(values == np.inf):
        where = np.asarray(points)[np.argmax(values == np.inf)]
        raise TargetError(
            f"The log density of `{target.name}` is +inf at {np.round(where, 4).tolist()}: "
            "no distribution has that. Bound the density there."
        )
    if np.all(np.isnan(values)):
        raise TargetError(
            f"The log density of `{target.name}` is NaN at all {len(values)} starting points. "
            "Evaluate it at one point by hand to find the cause."
        )
    if np.all(np.isnan(values) | (values == -np.inf)):
        raise TargetError(
            f"The density of `{target.name}` is zero at all {len(values)} starting points, so "
            "nothing shows where to go. Start where it is positive: pass an array as `particles`."
        )


@eqx.filter_jit
def _raw_log_densities(target: AbstractTarget, points: Points) -> Float[Array, " n"]:
    """As `log_densities`, with NaN and +inf left to be seen."""
    return jax.vmap(target.log_density)(points)
