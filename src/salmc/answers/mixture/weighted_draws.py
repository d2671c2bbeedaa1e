"""Draws of many proposals with their log densities: each weighs p/q̄, with q̄ of all proposals."""

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from salmc.answers.mixture.density import Mixture

_LEVELS = np.array([0.02, 0.1, 0.5, 0.9, 0.98])


@dataclasses.dataclass
class Archive:
    """All draws so far.

    Attributes:
        points, values: the draws, and log p there.
        proposals, counts: what they were drawn from, and how many of each.
        log_q: log of each proposal at all of the draws.
    """

    points: np.ndarray
    values: np.ndarray
    proposals: list[Mixture] = dataclasses.field(default_factory=list)
    counts: list[int] = dataclasses.field(default_factory=list)
    log_q: list[np.ndarray] = dataclasses.field(default_factory=list)

    @classmethod
    def empty(cls, dim: int) -> "Archive":
        """Without draws."""
        return cls(np.empty((0, dim)), np.empty(0))

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.points.shape[1]

    def add(self, proposal: Mixture, points: np.ndarray, values: np.ndarray) -> None:
        """Draws of one more proposal, and log p there."""
        known = zip(self.log_q, self.proposals, strict=True)
        self.log_q = [np.concatenate([old, one.log_density(points)]) for old, one in known]
        self.points = np.concatenate([self.points, points])
        self.values = np.concatenate([self.values, values])
        self.log_q.append(proposal.log_density(self.points))
        self.proposals.append(proposal)
        self.counts.append(len(points))

    def latest(self) -> tuple[np.ndarray, np.ndarray]:
        """The draws of the last proposal, and log p there."""
        return self.points[-self.counts[-1] :], self.values[-self.counts[-1] :]

    def latest_log_weights(self) -> Float[np.ndarray, " n"]:
        """log p − log q of the draws of the last proposal q."""
        return self.latest()[1] - self.log_q[-1][-self.counts[-1] :]

    def log_mean_q(self) -> Float[np.ndarray, " n"]:
        """log q̄ at all draws."""
        shares = np.log(np.array(self.counts) / np.sum(self.counts))
        return logsumexp(np.stack(self.log_q) + shares[:, None], axis=0)

    def log_weights(self) -> Float[np.ndarray, " n"]:
        """log p − log q̄ of all draws."""
        return self.values - self.log_mean_q()

    def log_evidence(self) -> float:
        """log ∫ p, by all draws."""
        return float(logsumexp(self.log_weights()) - np.log(len(self.points)))

    def efficiency(self, mixture: Mixture) -> float:
        """Effective draws for each draw of a mixture, as all draws tell: Z² / ∫ p²/q."""
        log_q, log_mean = mixture.log_density(self.points), self.log_mean_q()
        squares = logsumexp(2.0 * self.values - log_q - log_mean) - np.log(len(self.points))
        return float(np.exp(2.0 * self.log_evidence() - squares))

    def proposals_of(self, mixture: Mixture, values: np.ndarray) -> np.ndarray:
        """Of some values at all draws, those at the draws of a mixture; all where it has none."""
        number = next((i for i, one in enumerate(self.proposals) if one is mixture), None)
        if number is None:
            return values
        first = int(np.sum(self.counts[:number]))
        return values[first : first + self.counts[number]]

    def resampled(self, generator: np.random.Generator, count: int) -> np.ndarray:
        """Rows in proportion to their weights, systematically, in random order."""
        weights, _ = tempered(self.log_weights(), 0.0)
        steps = (np.arange(count) + generator.uniform()) / count
        rows = np.searchsorted(np.cumsum(weights) / np.sum(weights), steps)
        return generator.permutation(np.minimum(rows, len(weights) - 1))

    def drift(self, cloud: np.ndarray) -> float:
        """How far a cloud is from the weighted draws, in standard errors of its quantiles."""
        weights, _ = tempered(self.log_weights(), 0.0)
        count = np.sum(weights) ** 2 / np.sum(weights**2)
        error = np.sqrt(_LEVELS * (1.0 - _LEVELS) * (1.0 / len(cloud) + 1.0 / count))
        largest = 0.0
        for column, moved in zip(self.points.T, cloud.T, strict=True):
            order = np.argsort(column)
            share = np.cumsum(weights[order]) / np.sum(weights)
            at = np.minimum(np.searchsorted(share, _LEVELS), len(order) - 1)
            # One draw of much weight makes the share at its place differ from the level.
            below = np.mean(moved[:, None] <= column[order][at], axis=0)
            largest = max(largest, float(np.max(np.abs(below - share[at]) / error)))
        return largest


def effective_count(log_weights: np.ndarray) -> float:
    """(Σw)² / Σw²; 0 where all weights are."""
    if not np.any(log_weights > -np.inf):
        return 0.0
    return float(np.exp(2.0 * logsumexp(log_weights) - logsumexp(2.0 * log_weights)))


def tempered(log_weights: np.ndarray, wanted: float) -> tuple[np.ndarray, float]:
    """w^β, of which the largest is 1, with the largest β ≤ 1 at which `wanted` draws count; and β.

    β is found by bisection on its logarithm: far from a narrow target it may be 10⁻¹².
    """
    usable = log_weights > -np.inf
    ratio = np.where(usable, log_weights, 0.0) - np.max(log_weights)

    def at(log_beta: float) -> np.ndarray:
        return np.where(usable, np.exp(np.exp(log_beta) * ratio), 0.0)

    def count(weights: np.ndarray) -> float:
        return float(np.sum(weights) ** 2 / np.sum(weights**2))

    if count(at(0.0)) >= wanted:
        return at(0.0), 1.0
    low, high = -40.0, 0.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if count(at(middle)) >= wanted else (low, middle)
    return at(low), float(np.exp(low))
