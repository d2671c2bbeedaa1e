import numpy as np
import pytest

from salmc.datasets.fetch import find
from salmc.datasets.tables import TABLES, Standardisation, Table, load, split
from salmc.errors import ArgumentError, DataError

SHAPES = {"heart": (270, 13), "australian": (690, 14), "german": (1000, 24)}
# Class counts that the UCI archive documents: disease, approved, bad credit.
POSITIVE = {"heart": 120, "australian": 307, "german": 300}


def table(name: str) -> Table:
    if name == "australian":
        try:
            find("australian.csv", download=False)
        except DataError as error:
            if "is not on this machine" not in str(error):
                raise
            pytest.skip(str(error))
    return load(name)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_those_of_the_archive(name):
    loaded = table(name)
    assert loaded.features.shape == SHAPES[name]
    assert loaded.labels.sum() == POSITIVE[name]
    assert len(set(loaded.feature_names)) == TABLES[name]


def test_values_are_raw():
    heart = load("heart")
    assert heart.feature_names[:2] == ("age", "sex")
    np.testing.assert_array_equal(heart.features[0, :5], [70, 1, 4, 130, 322])
    assert heart.labels[0] == 1


def test_a_split_deals_every_row_once():
    whole = load("heart")
    training, test = split(whole, seed=3)
    assert len(training.labels) == 216
    assert len(test.labels) == 54
    rows = np.concatenate([training.features, test.features])
    labels = np.concatenate([training.labels, test.labels])
    both = np.column_stack([rows, labels])
    expected = np.column_stack([whole.features, whole.labels])
    np.testing.assert_array_equal(both[np.lexsort(both.T)], expected[np.lexsort(expected.T)])


def test_splits_repeat_with_the_seed_and_differ_without():
    whole = load("heart")
    first, again, other = (split(whole, seed)[1].features for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("share", [0.0, 1.0, 0.001, -0.5, float("nan")])
def test_bad_shares(share):
    with pytest.raises(ArgumentError, match="`share` argument must be"):
        split(load("heart"), 0, share)


def test_standardisation_is_that_of_its_own_rows():
    training, test = split(load("german"), seed=0)
    of_training = Standardisation.of(training.features)
    z = of_training.apply(training.features)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0, ddof=0), 1.0, rtol=1e-12)
    assert np.abs(of_training.apply(test.features).mean(axis=0)).max() > 0.01


def test_a_feature_that_never_varies_is_only_centred():
    features = np.array([[0.1, 1.0], [0.1, 3.0], [0.1, 5.0]])
    z = Standardisation.of(features).apply(features)
    np.testing.assert_allclose(z[:, 0], 0.0, atol=1e-15)
    assert np.all(np.isfinite(z))


def test_unknown_tables():
    with pytest.raises(ArgumentError, match="'heart', 'australian', 'german'"):
        load("hart")
