import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.datasets import tables
from salmc.errors import ArgumentError, DataError
from salmc.targets import German, Heart, LogisticRegression, Posterior, load_target

GENERATOR = np.random.default_rng(0)
FEATURES = GENERATOR.normal(size=(40, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, -1.0]
LABELS = GENERATOR.integers(0, 2, size=40)
POINTS = GENERATOR.normal(size=(6, 4)).astype(np.float32)


def regression(**options) -> LogisticRegression:
    return LogisticRegression(FEATURES, LABELS, **options)


def by_hand(points, features=FEATURES, labels=LABELS, scale=1.0, weight=1.0):
    """In double precision, from the probabilities themselves."""
    z = (features - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    design = np.column_stack([z, np.ones(len(z))])
    probabilities = 1 / (1 + np.exp(-np.asarray(points, dtype=float) @ design.T))
    likelihood = np.sum(np.log(np.where(labels == 1, probabilities, 1 - probabilities)), axis=1)
    return weight * likelihood - 0.5 * np.sum((points / scale) ** 2, axis=1)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_log_density_by_hand(scale):
    target = regression(prior_scale=scale)
    expected = by_hand(POINTS, scale=scale)
    np.testing.assert_allclose(target.log_densities(jnp.asarray(POINTS)), expected, rtol=1e-5)
    np.testing.assert_allclose(target.log_density(jnp.asarray(POINTS[0])), expected[0], rtol=1e-5)


def test_it_is_the_posterior_of_the_general_class():
    """Value and gradient against `Posterior`, which knows nothing of matrices."""
    z = (FEATURES - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    general = Posterior(
        lambda x: -0.5 * jnp.sum(x**2),
        lambda x, d: -jax.nn.softplus((1 - 2 * d["y"]) * (d["z"] @ x[:-1] + x[-1])),
        {"z": jnp.asarray(z), "y": jnp.asarray(LABELS)},
        dim=4,
    )
    points = jnp.asarray(POINTS)
    target = regression()
    np.testing.assert_allclose(
        target.log_densities(points), eqx.filter_jit(general.log_densities)(points), rtol=1e-5
    )
    expected = eqx.filter_jit(general.gradients)(points)
    np.testing.assert_allclose(target.gradients(points), expected, rtol=1e-4, atol=1e-4)
    by_differentiation = jax.jit(lambda x: jax.vmap(jax.grad(target.log_density))(x))(points)
    np.testing.assert_allclose(target.gradients(points), by_differentiation, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e8])
def test_far_away_values_neither_overflow_nor_vanish(size):
    """Against double precision; margins of this size are themselves known to 1e-5."""
    target = regression(prior_scale=1e10)
    point = jnp.asarray(POINTS[:1] * size)
    rows = np.asarray(target.signed_rows, dtype=np.float64)
    margins = rows @ np.asarray(point[0], dtype=np.float64)
    expected = -np.sum(np.logaddexp(0.0, -margins))
    np.testing.assert_allclose(target.log_densities(point)[0], expected, rtol=1e-4)
    assert np.all(np.isfinite(target.gradients(point)))
    assert np.all(np.isfinite(jax.grad(target.log_density)(point[0])))


def test_a_minibatch_weighs_its_rows_by_the_share_it_holds():
    target = regression(batch_size=8)
    view = target.minibatch(jax.random.key(0))
    assert view.size == 8
    all_rows = np.asarray(target.signed_rows)
    found = [int(np.argmax(np.all(row == all_rows, axis=1))) for row in view.signed_rows]
    assert len(set(found)) == 8
    expected = by_hand(POINTS, FEATURES[found], LABELS[found], weight=5.0)
    np.testing.assert_allclose(view.log_densities(jnp.asarray(POINTS)), expected, rtol=1e-5)
    assert view.minibatch(jax.random.key(1)) is view


def test_minibatch_gradients_are_unbiased():
    """The mean over 4000 minibatches lies within 4 standard errors of the full gradient."""
    target, points = regression(batch_size=8), jnp.asarray(POINTS[:1])

    @jax.jit
    @jax.vmap
    def stochastic(key):
        return target.minibatch(key).gradients(points)[0]

    gradients = np.asarray(stochastic(jax.random.split(jax.random.key(0), 4000)))
    error = gradients.std(axis=0) / np.sqrt(len(gradients))
    assert np.all(error > 0)
    assert np.all(np.abs(gradients.mean(axis=0) - target.gradients(points)[0]) < 4 * error)


def test_minibatches_of_all_data():
    for target in (regression(batch_size=None), regression(batch_size=500)):
        assert target.minibatch(jax.random.key(0)) is target


def test_built_in_targets_hold_all_data_and_minibatches_of_64():
    for target, rows in ((Heart(), 270), (German(), 1000)):
        assert target.size == rows
        assert target.minibatch(jax.random.key(0)).size == 64
        # No truth that a training could look at.
        assert target.mean is None
        assert target.std is None
        assert not target.can_sample
        assert target.names[-1] == "bias"
        rows_of_bias = np.abs(np.asarray(target.signed_rows)[:, -1])
        np.testing.assert_array_equal(rows_of_bias, 1.0)


def test_features_are_standardised_by_their_own_moments():
    target = Heart()
    labels = 2 * tables.load("heart").labels - 1
    design = np.asarray(target.signed_rows) * labels[:, None]
    np.testing.assert_allclose(design[:, :-1].mean(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(design[:, :-1].std(axis=0), 1.0, rtol=1e-5)


def test_the_mode_of_heart_has_a_vanishing_gradient_where_newton_finds_it():
    """Newton in double precision, from its own formulae, against the target's gradient."""
    heart = tables.load("heart")
    z = (heart.features - heart.features.mean(axis=0)) / heart.features.std(axis=0)
    design = np.column_stack([z, np.ones(len(z))])
    w = np.zeros(14)
    for _ in range(20):
        p = 1 / (1 + np.exp(-design @ w))
        slope = design.T @ (heart.labels - p) - w
        w += np.linalg.solve((design.T * (p * (1 - p))) @ design + np.eye(14), slope)
    at_mode = np.asarray(Heart().gradients(jnp.asarray(w, dtype=float)[None]))
    assert np.abs(at_mode).max() < 1e-3
    assert np.abs(np.asarray(Heart().gradients(jnp.zeros((1, 14))))).max() > 10


def test_predict_standardises_with_the_moments_of_training():
    target = regression()
    new = np.array([[1.0, 2.0, 3.0], [0.0, 5.0, -1.0]])
    z = (new - FEATURES.mean(axis=0)) / FEATURES.std(axis=0)
    expected = 1 / (1 + np.exp(-(POINTS[:, :-1] @ z.T + POINTS[:, -1:])))
    found = target.predict(jnp.asarray(POINTS), new)
    assert found.shape == (6, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    with pytest.raises(ArgumentError, match=r"`features` argument must be an array \(rows, 3\)"):
        target.predict(jnp.asarray(POINTS), new[:, :2])


def test_a_split_keeps_the_test_rows_out_of_the_posterior():
    target, features, labels = LogisticRegression.split("heart", 4)
    training, test = tables.split(tables.load("heart"), 4)
    assert target.name == "heart-split"
    assert target.size == 216
    np.testing.assert_array_equal(features, test.features)
    np.testing.assert_array_equal(labels, test.labels)
    alone = LogisticRegression(training.features, training.labels)
    points = jax.random.normal(jax.random.key(0), (3, 14))
    np.testing.assert_array_equal(target.log_densities(points), alone.log_densities(points))


def test_splits_of_one_data_set_share_a_trace():
    traces = []

    @eqx.filter_jit
    def evaluate(target, x):
        traces.append(None)
        return target.log_density(x)

    values = [
        float(evaluate(LogisticRegression.split("heart", seed)[0], jnp.full(14, 0.1)))
        for seed in (0, 1)
    ]
    assert values[0] != values[1]
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (FEATURES[:, 0], LABELS, "`features` .* shape"),
        (np.full((3, 2), np.nan), [0, 1, 1], "`features` .* finite"),
        (FEATURES, LABELS[:-1], "`labels` .* 40 labels, each 0 or 1"),
        (FEATURES, LABELS + 1, "`labels` .* 40 labels, each 0 or 1"),
    ],
)
def test_bad_data(features, labels, message):
    with pytest.raises(ArgumentError, match=message):
        LogisticRegression(features, labels)


@pytest.mark.parametrize(
    "options", [{"prior_scale": 0.0}, {"batch_size": 0}, {"feature_names": ["a", "b"]}]
)
def test_bad_options(options):
    with pytest.raises(ArgumentError, match=f"`{next(iter(options))}` argument must be"):
        regression(**options)


def test_australian_without_its_data_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    monkeypatch.setenv("SALMC_CACHE", str(tmp_path / "cache"))

    def offline(*arguments, **options):
        raise ConnectionError

    monkeypatch.setattr("pooch.retrieve", offline)
    with pytest.raises(DataError, match=r"australian\.csv is not on this machine"):
        load_target("australian")
