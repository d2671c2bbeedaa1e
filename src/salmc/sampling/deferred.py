"""`Draws.log_density`: as it was given, or found when it is first asked for.

Forward passes of a kernel never need the density. With a likelihood that takes long, evaluating it
at every draw would cost far more than the draws, and many a user wants the draws alone.
"""

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from salmc.compiled import RUNTIME_ERRORS, failure
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
            known, trouble = log_density_at(draws.target, draws.positions)
            vars(draws)["log_density"] = known
            if trouble is not None:
                vars(draws)["warnings"] = (*draws.warnings, trouble)
        return known

    def __set__(self, draws: "Draws", value: np.ndarray | None) -> None:
        vars(draws)["log_density"] = value


def log_density_at(
    target: AbstractTarget | None, positions: np.ndarray
) -> tuple[np.ndarray, str | None]:
    """log p at (chain, draw, dim) positions, as (chain, draw), and what went wrong.

    NaN without a target, and where the target failed: draws that exist are worth keeping.
    """
    shape, dim = positions.shape[:2], positions.shape[2]
    if target is None:
        return np.full(shape, np.nan, positions.dtype), None
    flat = positions.reshape(-1, dim)
    count, size = len(flat), min(len(flat), _BATCH)
    values = np.full(count, np.nan, positions.dtype)
    evaluate = eqx.filter_jit(target.log_densities)
    trouble = None
    for first in range(0, count, size):
        # The last batch goes back a little, so that all have one shape and one trace.
        at = slice(min(first, count - size), min(first, count - size) + size)
        try:
            values[at] = jax.block_until_ready(evaluate(jnp.asarray(flat[at], dtype=float)))
        except RUNTIME_ERRORS as error:
            trouble = f"The target failed at {first} of {count} draws: {failure(error)}"
            break
    return values.reshape(shape), trouble
