"""`Draws.log_density`: as it was given, or found when it is first asked for.

Forward passes of a kernel never need the density. With a likelihood that takes long, evaluating it
at every draw would cost far more than the draws, and many a user wants the draws alone.
"""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc.errors import TargetError, reason
from salmc.target import AbstractTarget

if TYPE_CHECKING:
    from salmc.sampling.draws import Draws

_BATCH = 8192
"""Points that are evaluated at once."""


class DeferredLogDensity:
    """A field of `Draws`; None stands for "not computed yet"."""

    def __get__(self, draws: "Draws | None", owner: type) -> "DeferredLogDensity | np.ndarray":
        if draws is None:
            return self
        known: np.ndarray | None = vars(draws)["log_density"]
        if known is None:
            known = log_density_at(draws.target, draws.positions)
            vars(draws)["log_density"] = known
        return known

    def __set__(self, draws: "Draws", value: np.ndarray | None) -> None:
        vars(draws)["log_density"] = value


def log_density_at(target: AbstractTarget | None, positions: np.ndarray) -> np.ndarray:
    """log p at (chain, draw, dim) positions, as (chain, draw); NaN without a target.

    Raises:
        TargetError: if the target fails.
    """
    shape, dim = positions.shape[:2], positions.shape[2]
    if target is None:
        return np.full(shape, np.nan, positions.dtype)
    flat = positions.reshape(-1, dim)
    count, size = len(flat), min(len(flat), _BATCH)
    values = np.empty(count, positions.dtype)
    evaluate = eqx.filter_jit(target.log_densities)
    try:
        for first in range(0, count, size):
            # The last batch goes back a little, so that all have one shape and one trace.
            at = slice(min(first, count - size), min(first, count - size) + size)
            values[at] = evaluate(jnp.asarray(flat[at], dtype=float))
    except jax.errors.JaxRuntimeError as error:
        raise TargetError(f"The target failed at the draws: {reason(error)}") from error
    return values.reshape(shape)
