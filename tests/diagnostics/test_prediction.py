import jax.numpy as jnp
import numpy as np
import pytest

from salmc.diagnostics import predictive_accuracy
from salmc.diagnostics.prediction import predictive_probabilities
from salmc.errors import ArgumentError


def sigmoid(weights, features):
    return 1 / (1 + jnp.exp(-(weights @ jnp.asarray(features).T)))


def constant(weights, features):
    """The first weight is the probability itself."""
    return jnp.broadcast_to(weights[:, :1], (len(weights), len(features)))


FEATURES = np.array([[1.0], [-2.0], [0.5], [-0.1]])
LABELS = np.array([1, 0, 1, 1])


def test_probabilities_are_averaged_before_they_are_judged():
    """Two draws of three are wrong but unsure, the third is right and sure."""
    chains = np.array([[[0.45], [0.45], [0.95]]])
    result = predictive_accuracy(constant, chains, np.zeros((1, 1)), np.array([1]))
    found = predictive_probabilities(constant, chains, np.zeros((1, 1)))
    # In single precision: a few roundings of ε = 1.2e-7.
    np.testing.assert_allclose(found, (0.45 + 0.45 + 0.95) / 3, rtol=1e-6)
    assert result.pooled == 1.0
    # Judging single draws would give 1/3.
    assert result.mean == 1.0


def test_chains_on_their_own_and_together():
    chains = np.array([[[3.0], [2.0]], [[-1.0], [-0.5]]])
    result = predictive_accuracy(sigmoid, chains, FEATURES, LABELS)
    np.testing.assert_array_equal(result.per_chain, [0.75, 0.25])
    assert result.mean == 0.5
    # The first chain is surer, so it decides.
    assert result.pooled == 0.75


def test_long_chains_are_taken_in_blocks():
    draws = np.random.default_rng(0).normal(1.0, 1.0, size=(1, 9000, 1))
    found = predictive_probabilities(sigmoid, draws, FEATURES)[0]
    expected = np.mean(1 / (1 + np.exp(-draws[0] @ FEATURES.T)), axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_probability_of_one_half_is_label_0():
    chains = np.zeros((1, 1, 1))
    assert predictive_accuracy(sigmoid, chains, FEATURES, np.zeros(4, dtype=int)).pooled == 1.0


@pytest.mark.parametrize(
    ("chains", "labels", "name"),
    [
        (np.zeros((1, 0, 1)), LABELS, "chains"),
        (np.full((1, 2, 1), np.nan), LABELS, "chains"),
        (np.zeros((1, 2, 1)), LABELS[:3], "labels"),
        (np.zeros((1, 2, 1)), LABELS + 1, "labels"),
    ],
)
def test_bad_arguments(chains, labels, name):
    with pytest.raises(ArgumentError, match=f"`{name}` argument must be"):
        predictive_accuracy(sigmoid, chains, FEATURES, labels)
