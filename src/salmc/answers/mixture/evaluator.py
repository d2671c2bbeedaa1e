"""log p on the host: batches of points, counted, and never more of them than a budget allows."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.errors import SalmcError
from salmc.programs import compiled, on_device, target_failures
from salmc.target import AbstractTarget, Points

_FEWEST = 64
"""Points of the smallest compiled batch."""


class BudgetSpentError(SalmcError):
    """The next batch would exceed the budget; nothing of it was evaluated."""


class Evaluator:
    """A target's log density, as NumPy sees it.

    Attributes:
        points, batches: how many were evaluated.
        limit: how many points may be; None for any number.
    """

    def __init__(self, target: AbstractTarget, limit: int | None = None):
        self.target, self.limit = target, limit
        self.points = self.batches = 0
        self.dtype = np.dtype(jnp.zeros(()).dtype)

    @property
    def left(self) -> int | float:
        """Points that may still be evaluated."""
        return np.inf if self.limit is None else self.limit - self.points

    def rounded(self, points: np.ndarray) -> np.ndarray:
        """Points as the target will see them, in the precision that JAX computes in."""
        return points.astype(self.dtype).astype(np.float64)

    def __call__(self, points: Float[np.ndarray, "n dim"]) -> Float[np.ndarray, " n"]:
        """log p at each point; −inf where it is zero, NaN or infinite, and where no number is left
        for the point itself: no density is found there.

        Raises:
            BudgetSpentError: before anything is evaluated that the budget does not have.
            TargetError: if the density fails.
        """
        count = len(points)
        if count > self.left:
            raise BudgetSpentError(
                f"The budget of {self.limit} evaluations is spent: {self.points} were made, and "
                f"{count} more were wanted. Allow more of them."
            )
        self.points, self.batches = self.points + count, self.batches + 1
        size = count
        if self.target.differentiable:
            # Batches of all lengths share a few programs. A black box is never asked in vain.
            size = max(_FEWEST, 1 << (count - 1).bit_length())
        padded = np.concatenate([points, np.repeat(points[:1], size - count, axis=0)])
        with target_failures():
            values = _log_densities(self.target, on_device(padded))
            there = np.all(np.isfinite(points), axis=1)
            return np.where(there, np.asarray(values, np.float64)[:count], -np.inf)


@compiled
def _log_densities(target: AbstractTarget, points: Points) -> Float[Array, " n"]:
    return target.log_densities(points)
