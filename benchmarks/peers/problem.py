"""What a sampler gets in the fresh process, and what it gives back."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.densities import Density
from benchmarks.peers.effective import smallest_ess
from benchmarks.peers.references import from_cube, log_prior

_SPENT = 0.8
"""Of the CPU seconds that a run has, after which chains begin no further round."""


class Answer(NamedTuple):
    """What a sampler found.

    Attributes:
        positions: (chain, draw, dim), as the target has them.
        weights: of draws that are weighted, (draw,), with one chain; else None.
        ready: CPU seconds of the process when that ended which another number of draws would
            not have made longer: imports, compilation, warm-up, learning.
        evaluations: of the log density, where they can be counted.
        gradients: of it, where they can be counted; each counts as one evaluation, too.
        notes: what else is worth knowing.
    """

    positions: np.ndarray
    weights: np.ndarray | None
    ready: float
    evaluations: int | None = None
    gradients: int | None = None
    notes: Mapping[str, Any] = MappingProxyType({})


class Problem:
    """A target and a request.

    Args:
        density: the target.
        effective: draws that are wanted.
        seed: of all that is random.
        cpu_limit: seconds after which the process is ended.
        compiled: CPU seconds of compilation until now, as far as they are known.
    """

    def __init__(
        self,
        density: Density,
        effective: int,
        seed: int,
        cpu_limit: float,
        compiled: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.density, self.dim = density, density.dim
        self.effective, self.seed, self.cpu_limit = effective, seed, cpu_limit
        self.compiled = compiled
        self.evaluations = 0

    @property
    def has_room(self) -> bool:
        """Whether there is time for another round."""
        return time.process_time() < _SPENT * self.cpu_limit

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Of points (n, dim) by NumPy, counted."""
        points = np.atleast_2d(points)
        self.evaluations += len(points)
        with np.errstate(all="ignore"):
            values = self.density.log_density(points, np)
        return np.where(np.isnan(values), -np.inf, values)

    def log_likelihood(self, points: np.ndarray) -> np.ndarray:
        """log p − log π of points (n, dim) by NumPy, counted."""
        points = np.atleast_2d(points)
        with np.errstate(all="ignore"):
            values = self.log_density(points) - log_prior(self.density.reference, points, np)
        return np.where(np.isnan(values), -np.inf, values)

    def prior_transform(self, levels: np.ndarray) -> np.ndarray:
        """Points at levels between 0 and 1 of each reference."""
        return from_cube(self.density.reference, levels)

    def constrain(self, x: Any, xp: Any) -> Any:
        """From all of space to where the density lives, by the logistic function."""
        if self.density.bounds is None:
            return x
        low, high = self.density.bounds
        return low + (high - low) * (0.5 + 0.5 * xp.tanh(0.5 * x))

    def unconstrained(self, xp: Any) -> Callable[[Any], Any]:
        """The log density on all of space, of one point, for samplers that take no bounds."""
        log_density, bounded = self.density.log_density, self.density.bounds is not None

        def of_point(x: Any) -> Any:
            value = log_density(self.constrain(x, xp), xp)
            if not bounded:
                return value
            # The Jacobian of the logistic function: σ(x) σ(−x).
            return value - xp.sum(xp.logaddexp(0.0, x) + xp.logaddexp(0.0, -x), axis=-1)

        return of_point

    def start(self, count: int) -> np.ndarray:
        """Where chains begin, before `constrain`: uniform on (−2, 2), as in Stan."""
        generator = np.random.default_rng([self.seed, 1])
        return generator.uniform(-2.0, 2.0, size=(count, self.dim))

    def until_effective(
        self, advance: Callable[[], np.ndarray], *, most: int
    ) -> tuple[np.ndarray, float]:
        """Blocks of draws until there are enough, time is over, or chains seem stuck.

        Args:
            advance: the next block of draws, (chain, draw, dim).
            most: draws of all chains, for each effective one that is wanted.

        Returns:
            All draws, and the smallest ESS of them.
        """
        parts = [advance()]
        chains, block, _ = parts[0].shape
        goal = self.effective / chains
        while True:
            while len(parts) * block < goal and self.has_room:
                parts.append(advance())
            draws = np.concatenate(parts, axis=1)
            found = smallest_ess(draws)
            if found >= self.effective or not self.has_room:
                break
            if draws.shape[0] * draws.shape[1] >= most * self.effective:
                break
            # An estimate from few draws may be far off: no round is much longer than all before.
            goal = draws.shape[1] * min(max(1.1 * self.effective / max(found, 1.0), 1.1), 3.0)
        return draws, found
