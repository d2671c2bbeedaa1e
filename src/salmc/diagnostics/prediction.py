"""Predictive accuracy: how often draws of a classifier's weights, all together, are right.

The posterior predictive probability of label 1 is the mean over the draws, and the label it gives
is 1 where that exceeds one half:

    p̄ᵢ = 1/n Σ_s p(yᵢ = 1 | w_s),   accuracy = share of i with (p̄ᵢ > ½) = yᵢ

Averaging first is what Bayes asks for; the mean accuracy of single draws is lower.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from salmc import checks
from salmc.diagnostics.point_sets import AnyArray, as_chains

Predict = Callable[[Any, Any], Any]
"""(draws (n, dim), features (rows, k)) ↦ probabilities of label 1, (n, rows)."""

_BLOCK = 4096
"""Draws predicted at once: their probabilities for 200 rows are 3 MB."""


class Accuracy(NamedTuple):
    """Predictive accuracy, a share of 1."""

    pooled: float
    """Of the predictive probability averaged over the draws of all chains."""
    per_chain: Float[np.ndarray, " chain"]
    """Of each chain on its own, averaged over its draws."""

    @property
    def mean(self) -> float:
        """Mean over the chains, the figure of the paper's tables."""
        return float(np.mean(self.per_chain))


def predictive_probabilities(
    predict: Predict, chains: Float[AnyArray, "chain draw dim"], features: Any
) -> Float[np.ndarray, "chain rows"]:
    """Posterior predictive probability of label 1 for each row, by the draws of each chain."""
    values = as_chains("chains", chains)
    if values.shape[1] == 0:
        checks.fail("chains", "an array (chain, draw, dim) of at least 1 draw", values.shape)
    if not np.all(np.isfinite(values)):
        checks.fail("chains", "finite everywhere", "NaN or infinite entries")
    return np.stack([_mean_over_draws(predict, draws, features) for draws in values])


def predictive_accuracy(
    predict: Predict,
    chains: Float[AnyArray, "chain draw dim"],
    features: Any,
    labels: Int[AnyArray, " rows"],
) -> Accuracy:
    """Accuracy of draws on rows that they have not seen.

    Args:
        predict: such as the method `predict` of a logistic regression.
        chains: (chain, draw, dim), draws of the weights.
        features: (rows, k), as `predict` takes them.
        labels: (rows,), 0 or 1.

    Example:
        >>> import numpy as np
        >>> step = lambda w, features: (w @ features.T > 0).astype(float)
        >>> chains = np.array([[[1.0], [2.0]], [[-1.0], [-1.0]]])
        >>> predictive_accuracy(step, chains, np.array([[3.0], [-1.0]]), np.array([1, 0])).per_chain
        array([1., 0.])
    """
    truth = np.asarray(labels)
    if truth.ndim != 1 or len(truth) == 0 or not np.all(np.isin(truth, (0, 1))):
        checks.fail("labels", "an array (rows,) of labels 0 and 1", f"shape {truth.shape}")
    probabilities = predictive_probabilities(predict, chains, features)
    if probabilities.shape[1] != len(truth):
        checks.fail("labels", f"{probabilities.shape[1]} labels, one for each row", len(truth))
    right = (probabilities > 0.5) == truth
    pooled = (probabilities.mean(axis=0) > 0.5) == truth
    return Accuracy(float(np.mean(pooled)), np.mean(right, axis=1))


def _mean_over_draws(
    predict: Predict, draws: Float[np.ndarray, "n dim"], features: Any
) -> Float[np.ndarray, " rows"]:
    total = np.zeros(())
    for start in range(0, len(draws), _BLOCK):
        block = jnp.asarray(draws[start : start + _BLOCK], dtype=float)
        total = total + np.sum(np.asarray(predict(block, features), dtype=np.float64), axis=0)
    return total / len(draws)
