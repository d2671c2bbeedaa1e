import math

import numpy as np
import pytest

from salmc.errors import ArgumentError
from salmc_paper.images.classes import (
    class_distribution,
    classes_per_chain,
    stays_if_independent,
    steps_between_changes,
    transition_counts,
    transition_matrix,
)
from salmc_paper.images.frechet import frechet_distance, frechet_with_floor, principal_components
from salmc_paper.images.neighbours import check_for_copies, nearest_neighbours


def test_shares_of_classes():
    classes = np.array([[0, 0, 1], [3, 0, 1]])
    np.testing.assert_allclose(class_distribution(classes, 4), [3 / 6, 2 / 6, 0, 1 / 6])


def test_transitions_go_from_row_to_column_and_not_across_chains():
    classes = np.array([[0, 1, 1, 0], [2, 2, 0, 1]])
    np.testing.assert_array_equal(transition_counts(classes, 3), [[0, 2, 0], [1, 1, 0], [1, 0, 1]])
    matrix = transition_matrix(classes, 4)
    np.testing.assert_allclose(matrix[0], [0, 1, 0, 0])
    np.testing.assert_allclose(matrix[2], [0.5, 0, 0.5, 0])
    assert np.isnan(matrix[3]).all()


def test_chain_that_alternates_changes_at_every_step():
    assert steps_between_changes(np.array([[0, 1] * 10])) == 1.0


def test_chain_that_stays_k_steps_changes_every_k():
    chain = np.repeat(np.arange(200) % 10, 8)[None]
    # 1,599 transitions, 199 changes: the last stay is cut off by the end.
    assert steps_between_changes(chain) == 1599 / 199
    assert steps_between_changes(np.zeros((3, 5), int)) == math.inf


def test_classes_that_a_chain_visits_are_counted_for_each_chain():
    assert classes_per_chain(np.array([[0, 0, 0, 0], [1, 2, 1, 3]])) == 2.0


def test_independent_draws_change_as_often_as_their_shares_say():
    shares = np.array([0.5, 0.3, 0.2])
    classes = np.random.default_rng(0).choice(3, size=(50, 2000), p=shares)
    expected = stays_if_independent(shares)
    assert expected == pytest.approx(1 / (1 - 0.38))
    # The share of changes, 0.62, has a standard error below 0.002 here.
    assert steps_between_changes(classes) == pytest.approx(expected, rel=0.01)


def test_bad_classes_are_told():
    for classes in (np.array([[0, 4]]), np.array([[-1, 0]]), np.array([[0.5, 1.0]])):
        with pytest.raises(ArgumentError, match="classes"):
            class_distribution(classes, 4)
    with pytest.raises(ArgumentError, match="two steps"):
        steps_between_changes(np.zeros((4, 1), int))


def with_moments(generator, mean, covariance, count=500):
    """Vectors whose sample moments are exactly these."""
    vectors = generator.standard_normal((count, len(mean)))
    vectors -= vectors.mean(axis=0)
    own = np.linalg.cholesky(vectors.T @ vectors / count)
    return np.linalg.solve(own, vectors.T).T @ np.linalg.cholesky(covariance).T + mean


def test_frechet_distance_of_commuting_gaussians_in_closed_form():
    generator = np.random.default_rng(0)
    rotation = np.linalg.qr(generator.standard_normal((4, 4)))[0]
    first, second = np.array([1.0, 4.0, 9.0, 0.25]), np.array([4.0, 1.0, 9.0, 1.0])
    mean = np.array([1.0, 2.0, 0.0, -1.0])
    found = frechet_distance(
        with_moments(generator, np.zeros(4), rotation * first @ rotation.T),
        with_moments(generator, mean, rotation * second @ rotation.T),
    )
    expected = mean @ mean + np.sum((np.sqrt(first) - np.sqrt(second)) ** 2)
    assert found == pytest.approx(expected, abs=1e-9)


def test_frechet_distance_of_correlated_gaussians_in_the_plane():
    # For 2 × 2 matrices tr √M = √(tr M + 2 √det M), and M = Σ₁Σ₂ has the same trace of root.
    generator = np.random.default_rng(1)
    first, second = np.array([[2.0, 0.9], [0.9, 1.0]]), np.array([[1.0, -0.6], [-0.6, 3.0]])
    product = first @ second
    root = math.sqrt(np.trace(product) + 2 * math.sqrt(np.linalg.det(product)))
    found = frechet_distance(
        with_moments(generator, np.zeros(2), first), with_moments(generator, np.zeros(2), second)
    )
    assert found == pytest.approx(np.trace(first) + np.trace(second) - 2 * root, abs=1e-9)


def test_frechet_distance_is_zero_for_the_same_set_also_if_singular():
    vectors = np.random.default_rng(0).standard_normal((300, 6))
    vectors[:, 2] = 0.0
    vectors[:, 3] = vectors[:, 4]
    assert frechet_distance(vectors, vectors) == pytest.approx(0.0, abs=1e-6)


def test_floor_is_near_that_of_the_same_distribution_and_tells_a_shift():
    generator = np.random.default_rng(0)
    real, other = generator.standard_normal((2, 2000, 8))
    same = frechet_with_floor(generator.standard_normal((1000, 8)), real, other)
    shifted = frechet_with_floor(generator.standard_normal((1000, 8)) + 0.5, real, other)
    assert same.value < 3 * same.floor
    assert shifted.floor == same.floor
    # |shift|² = 8 · 0.25, up to the noise of a mean of 1,000.
    assert shifted.value - same.value == pytest.approx(2.0, abs=0.3)
    with pytest.raises(ArgumentError, match="at least as many"):
        frechet_with_floor(other, real, other[:10])


def test_principal_components_find_the_plane_that_images_lie_in():
    generator = np.random.default_rng(0)
    plane = np.linalg.qr(generator.standard_normal((16, 2)))[0]
    points = generator.standard_normal((50, 2)) * 20 @ plane.T + 128
    images = np.rint(points).astype(np.uint8).reshape(50, 4, 4, 1)
    mean, directions = principal_components(images, 2)
    assert mean.shape == (16,)
    # The two spaces agree up to rounding to bytes.
    assert np.linalg.svd(plane.T @ directions)[1].min() > 0.999


def blobs(generator, count):
    """Images with a random bright square: many different, none alike."""
    images = generator.integers(0, 60, (count, 12, 12, 1), dtype=np.uint8)
    for image in images:
        row, column = generator.integers(0, 7, 2)
        image[row : row + 5, column : column + 5] += np.uint8(150)
    return images


def test_nearest_neighbours_are_those_of_a_plain_search(monkeypatch):
    monkeypatch.setattr("salmc_paper.images.neighbours._BLOCK", 7)
    generator = np.random.default_rng(0)
    images, training = blobs(generator, 20), blobs(generator, 50)
    found = nearest_neighbours(images, training)
    difference = images[:, None].astype(float) - training[None].astype(float)
    distances = np.sqrt(np.sum((difference / 255) ** 2, axis=(2, 3, 4)))
    np.testing.assert_array_equal(found.nearest, distances.argmin(axis=1))
    ordered = np.sort(distances, axis=1)
    np.testing.assert_allclose(found.distance, ordered[:, 0], rtol=1e-5)
    np.testing.assert_allclose(found.ratio, ordered[:, 0] / ordered[:, 1], rtol=1e-5)


def test_fresh_images_are_no_copies_and_copies_are_found():
    generator = np.random.default_rng(0)
    training, held_out, fresh = (blobs(generator, count) for count in (600, 300, 300))
    found = check_for_copies(fresh, held_out, training)
    assert not found.copies
    assert found.share <= found.limit
    assert found.held_out_share <= 0.01
    # A tenth of the draws are training images, hardly changed.
    mixed = fresh.copy()
    mixed[:30] = training[:30] + generator.integers(0, 3, (30, 12, 12, 1), dtype=np.uint8)
    found = check_for_copies(mixed, held_out, training)
    assert found.copies
    assert found.share == pytest.approx(0.1, abs=0.02)
    np.testing.assert_array_equal(found.draws.nearest[:30], np.arange(30))


def test_exact_copies_are_found_also_where_the_training_set_has_doubles():
    generator = np.random.default_rng(0)
    training, held_out = blobs(generator, 200), blobs(generator, 200)
    doubled = np.concatenate([training, training])
    found = check_for_copies(training[:50], held_out, doubled)
    assert found.draws.distance.max() == 0
    assert found.share == 1.0


def test_draws_without_noise_are_near_to_all_and_copies_of_none():
    generator = np.random.default_rng(0)
    training, held_out, fresh = (blobs(generator, count) for count in (400, 200, 200))
    # The bright squares alone, on the mean of the noise: nearer to every image than real ones are.
    smooth = np.where(fresh >= 150, 180, 30).astype(np.uint8)
    found = check_for_copies(smooth, held_out, training)
    assert np.quantile(found.draws.distance, 0.9) < np.quantile(found.held_out.distance, 0.01)
    assert not found.copies
