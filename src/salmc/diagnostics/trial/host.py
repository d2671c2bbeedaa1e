"""A density on the host: NumPy in, NumPy out, by few compiled programs of fixed shapes.

Everything that asks the density about draws shares them. What one evaluation costs is measured
once, and decides how much is asked: a verdict should take seconds, whatever the density takes.
"""

import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.programs import compiled, on_device
from salmc.target import AbstractTarget

_BATCH, _SMALL_BATCH, _LEAST_BATCH = 1024, 128, 16
_GRADIENT_BATCH, _MANY_GRADIENTS = 256, 4096
_ENTRIES = 2e7
"""Cloud of one batch times data at most."""

_EFFORTS = ((2.5e-6, 1.0), (2e-5, 0.5), (1.5e-4, 0.2), (1e-3, 0.06))
"""Seconds for one evaluation below which so large a share of all that is wanted is asked. In steps,
so that the same draws get the same verdict twice."""

_LEAST_EFFORT = 0.01
_SOON = 0.1
"""Seconds from which on a batch is work and not the call of it."""

MOST_EFFORT = 1.0
LITTLE = 0.05
"""Effort below which only a few questions are asked at all."""


class HostDensity:
    """log p and its gradient at any number of points.

    Attributes:
        target: in coordinates without bounds.
        evaluations: asked for until now.

    It is made with one point, at which the cost of an evaluation is measured, unless the effort is
    given.
    """

    def __init__(
        self,
        target: AbstractTarget,
        somewhere: Float[np.ndarray, " dim"],
        effort: float | None = None,
    ):
        self.target, self._somewhere = target, somewhere
        self.evaluations = 0
        rows = max(target.size, 1)
        most = int(np.clip(_ENTRIES // rows, _LEAST_BATCH, _BATCH))
        # What JAX can trace costs little beside a call, so all batches have one size, until it is
        # found dear. A black box may take long for each point: none is asked for in vain.
        sizes = (most,) if target.differentiable else (most, _SMALL_BATCH, _LEAST_BATCH)
        self._sizes = tuple(size for size in sizes if size <= most)
        self._effort = effort

    @property
    def precision(self) -> np.dtype:
        """Of what is computed."""
        return np.dtype(jnp.zeros(()).dtype)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.target.dim

    @property
    def effort(self) -> float:
        """Share, between 0 and 1, of what would be asked if the density cost nothing."""
        if self._effort is None:
            cost = np.inf
            # Of little work most is the call itself: ever larger batches, while they take no time.
            for size in self._sizes[::-1]:
                cost = min(cost, self._cost(size))
                if cost * size > _SOON:
                    break
            share = next((share for most, share in _EFFORTS if cost < most), _LEAST_EFFORT)
            self._effort = min(share, MOST_EFFORT)
            if self._effort < MOST_EFFORT and self._sizes[-1] > _SMALL_BATCH:
                self._sizes = (*self._sizes, _SMALL_BATCH)
        return self._effort

    def _cost(self, size: int) -> float:
        """Seconds for one evaluation in a batch of some size."""
        points = np.repeat(self._somewhere[None], size, axis=0)
        self.values(points)
        best = np.inf
        # The better of two: other programs may have had their turn.
        for _ in range(2):
            began = time.perf_counter()
            self.values(points)
            best = min(best, (time.perf_counter() - began) / size)
        return best

    def share_of(self, count: int, at_least: int = 1) -> int:
        """So many, or fewer where the density is slow."""
        return max(at_least, round(self.effort * count))

    def values(self, points: Cloud) -> Numbers:
        """log p; −inf where it is NaN or +inf."""
        return self._in_batches(_values, points, self._sizes)

    def raw(self, points: Cloud) -> Numbers:
        """log p as it comes, NaN and +inf among it."""
        return self._in_batches(_raw, points, self._sizes)

    def gradients(self, points: Cloud) -> Cloud:
        """∇ log p."""
        few = min(_GRADIENT_BATCH, self._sizes[0])
        many = len(points) > _MANY_GRADIENTS and self.effort == MOST_EFFORT
        return self._in_batches(_gradients, points, (self._sizes[0], few) if many else (few,))

    def in_double(self, points: Cloud) -> Numbers | None:
        """log p in double precision; None where all is, and where the density cannot be."""
        if jnp.zeros(()).dtype == np.float64:
            return None
        # The same places as single precision has them: only the arithmetic is to differ.
        places = points.astype(np.float32).astype(np.float64)
        try:
            with jax.enable_x64(True):
                program = jax.jit(jax.vmap(self.target.log_density))
                values = np.asarray(program(jnp.asarray(places, dtype=np.float64)), np.float64)
        except Exception:
            # A density that insists on single precision cannot be compared, and need not be.
            return None
        self.evaluations += len(places)
        return values

    def _in_batches(self, program: Any, points: Cloud, sizes: tuple[int, ...]) -> np.ndarray:
        done, found = 0, []
        while done < len(points):
            left = len(points) - done
            size = next((size for size in sizes if size <= left), sizes[-1])
            batch = points[done : done + size]
            full = np.concatenate([batch, np.repeat(batch[-1:], size - len(batch), axis=0)])
            # Copies of draws may be further out than numbers go: there is no density at infinity.
            with np.errstate(over="ignore"):
                places = on_device(full)
            result = program(self.target, places)
            found.append(np.asarray(result, np.float64)[: len(batch)])
            done += len(batch)
        self.evaluations += len(points)
        return np.concatenate(found) if found else np.zeros(0)


class DoubleDensity(HostDensity):
    """The same density in double precision, in a process that computes in single."""

    @property
    def precision(self) -> np.dtype:
        return np.dtype(np.float64)

    def _in_batches(self, program: Any, points: Cloud, sizes: tuple[int, ...]) -> np.ndarray:
        with jax.enable_x64(True):
            return super()._in_batches(program, points, sizes)


Found = TypeVar("Found")
Rest = ParamSpec("Rest")


def in_double(
    density: HostDensity,
    ask: Callable[Concatenate[HostDensity, Rest], Found],
    *rest: Rest.args,
    **options: Rest.kwargs,
) -> Found | None:
    """What a question finds in double precision; None where all is, and where it cannot be asked.

    A density may insist on single precision. A black box is called on threads to which a choice of
    precision does not reach, and so now and then fails.
    """
    if density.precision == np.float64:
        return None
    exact = DoubleDensity(density.target, density._somewhere, density.effort)
    try:
        return ask(exact, *rest, **options)
    except Exception:
        return None
    finally:
        density.evaluations += exact.evaluations


@compiled
def _values(target: AbstractTarget, points: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return target.log_densities(points)


@compiled
def _raw(target: AbstractTarget, points: Float[Array, "n dim"]) -> Float[Array, " n"]:
    return jax.vmap(target.log_density)(points)


@compiled
def _gradients(target: AbstractTarget, points: Float[Array, "n dim"]) -> Float[Array, "n dim"]:
    return target.gradients(points)
