import collections
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError, TargetError
from salmc.targets import Posterior
from salmc.targets.posterior import random_subset

FEATURES = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
LABELS = np.random.default_rng(1).integers(0, 2, size=12)
DATA = {"features": FEATURES, "labels": LABELS}


def log_prior(x):
    return -0.5 * jnp.sum(x**2)


def log_likelihood(x, datum):
    logit = datum["features"] @ x
    return datum["labels"] * logit - jnp.logaddexp(0.0, logit)


def posterior(**options) -> Posterior:
    return Posterior(log_prior, log_likelihood, DATA, **{"dim": 3, **options})


def by_hand(x, rows, weight=1.0):
    logits = FEATURES[rows] @ x
    terms = LABELS[rows] * logits - np.logaddexp(0.0, logits)
    return -0.5 * np.sum(x**2) + weight * terms.sum()


X = np.array([0.5, -1.0, 2.0], dtype=np.float32)


def test_log_density_is_prior_plus_likelihood_of_all_data():
    np.testing.assert_allclose(
        posterior().log_density(jnp.asarray(X)), by_hand(X, slice(None)), rtol=1e-5
    )
    assert posterior().size == 12


def test_without_a_batch_size_there_is_nothing_to_subsample():
    for target in (posterior(), posterior(batch_size=12)):
        assert target.minibatch(jax.random.key(0)) is target


def test_a_minibatch_weighs_its_data_by_the_share_it_holds():
    view = posterior(batch_size=4).minibatch(jax.random.key(0))
    assert type(view) is Posterior
    assert view.size == 4
    rows = [int(np.argmax(np.all(row == FEATURES, axis=1))) for row in view.data["features"]]
    assert len(set(rows)) == 4
    np.testing.assert_array_equal(view.data["labels"], LABELS[rows])
    np.testing.assert_allclose(view.log_density(jnp.asarray(X)), by_hand(X, rows, 3.0), rtol=1e-5)
    assert view.minibatch(jax.random.key(1)) is view


def test_minibatch_gradients_are_unbiased():
    """The mean over 4000 minibatches lies within 4 standard errors of the full gradient."""
    target = posterior(batch_size=3)
    points = jnp.asarray(X)[None]

    @jax.jit
    @jax.vmap
    def stochastic(key):
        return target.minibatch(key).gradients(points)[0]

    gradients = np.asarray(stochastic(jax.random.split(jax.random.key(0), 4000)))
    error = gradients.std(axis=0) / np.sqrt(len(gradients))
    assert np.all(error > 0)
    assert np.all(np.abs(gradients.mean(axis=0) - target.gradients(points)[0]) < 4 * error)


def test_a_view_can_leave_jit_and_vmap():
    target = posterior(batch_size=4)
    view = eqx.filter_jit(lambda target, key: target.minibatch(key))(target, jax.random.key(0))
    np.testing.assert_allclose(
        view.log_density(jnp.asarray(X)),
        target.minibatch(jax.random.key(0)).log_density(jnp.asarray(X)),
        rtol=1e-6,
    )
    keys = jax.random.split(jax.random.key(0), 5)
    views = eqx.filter_vmap(target.minibatch)(keys)
    assert views.data["features"].shape == (5, 4, 3)
    values = eqx.filter_vmap(lambda view: view.log_density(jnp.asarray(X)))(views)
    assert values.shape == (5,)
    assert len(np.unique(values)) > 1


def test_data_may_be_one_array():
    target = Posterior(
        log_prior, lambda x, y: -0.5 * (y - x[0]) ** 2, np.array([1.0, 3.0]), dim=1, names=["mu"]
    )
    np.testing.assert_allclose(target.log_density(jnp.zeros(1)), -5.0)
    assert target.names == ("mu",)


@pytest.mark.parametrize(("total", "size"), [(5, 2), (4, 3), (3, 3), (4, 1)])
def test_every_subset_is_equally_likely(total, size):
    """Each count is binomial; 4 of its standard deviations are allowed."""
    keys = jax.random.split(jax.random.key(0), 6000)
    subsets = np.asarray(jax.jit(jax.vmap(lambda key: random_subset(key, total, size)))(keys))
    assert subsets.min() >= 0
    assert subsets.max() < total
    counts = collections.Counter(tuple(sorted(row)) for row in subsets.tolist())
    possible = list(itertools.combinations(range(total), size))
    assert set(counts) == set(possible)
    share = 1 / len(possible)
    deviation = np.sqrt(len(keys) * share * (1 - share))
    assert all(abs(count - len(keys) * share) <= 4 * deviation for count in counts.values())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": np.zeros((3, 2)), "b": np.zeros(4)}, "common leading axis"),
        (np.zeros((0, 2)), "common leading axis"),
        (1.0, "common leading axis"),
        ({}, "common leading axis"),
        ({"a": ["text"]}, "a tree of arrays"),
    ],
)
def test_bad_data(data, message):
    with pytest.raises(ArgumentError, match=f"`data` argument must be .*{message}"):
        Posterior(log_prior, lambda x, datum: 0.0, data, dim=2)


@pytest.mark.parametrize("batch_size", [0, 13])
def test_bad_batch_sizes(batch_size):
    with pytest.raises(ArgumentError, match="`batch_size` argument must be"):
        posterior(batch_size=batch_size)


def test_a_likelihood_of_all_data_at_once_is_met_at_the_door():
    with pytest.raises(TargetError, match=r"`log_likelihood` .* of one datum. Got shape \(3,\)"):
        Posterior(log_prior, lambda x, datum: datum["features"] * x, DATA, dim=3)
    with pytest.raises(TargetError, match=r"`log_prior` .* of one point. Got shape \(3,\)"):
        Posterior(lambda x: -(x**2), log_likelihood, DATA, dim=3)


def test_sums_in_chunks_are_sums(monkeypatch):
    """Chunks of 3 of 10 data, with one left over: rounding aside the same numbers."""
    data = jnp.arange(10.0)
    target = Posterior(
        lambda x: -0.5 * jnp.sum(x**2), lambda x, y: -0.5 * (y - x[0]) ** 2, data, dim=1
    )
    points = jnp.linspace(-1.0, 5.0, 7)[:, None]

    def both():
        """Traced anew each time."""
        return jax.jit(lambda x: (target.log_densities(x), target.gradients(x)))(points)

    whole, slopes = both()
    monkeypatch.setattr("salmc.targets.sums.MOST_AT_ONCE", 21)
    again, their_slopes = both()
    np.testing.assert_allclose(again, whole, rtol=1e-5)
    np.testing.assert_allclose(their_slopes, slopes, rtol=1e-4, atol=1e-4)
    expected = jax.jit(jax.vmap(jax.grad(target.log_density)))(points)
    np.testing.assert_allclose(slopes, expected, rtol=1e-4, atol=1e-4)
