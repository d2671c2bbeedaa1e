import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError, TargetError
from salmc.targets import Ring, Ring5, Rings


def radial_truth(potential, radii):
    """Radius density ∝ r exp(−U), by integration on a fine grid: mean, sd, E[r²], distribution."""
    r = np.linspace(0.0, 12.0, 1_200_001)
    density = r * np.exp(-potential(r))
    total = density.sum()
    mean = (density @ r) / total
    nearest = np.argmin(np.abs(r[:, None] - np.asarray(radii)), axis=1)
    weights = np.bincount(nearest, weights=density) / total
    second = density @ r**2 / total
    return mean, np.sqrt(second - mean**2), second, weights, (r, np.cumsum(density) / total)


def ring5_potential(r):
    return np.min((r[:, None] - np.arange(1, 6)) ** 2 / 0.04, axis=1)


def test_the_potentials_are_those_of_the_paper():
    for r in (0.3, 1.9, 2.6):
        x = jnp.array([0.6 * r, -0.8 * r])
        np.testing.assert_allclose(Ring().log_density(x), -((r - 2) ** 2) / 0.16, rtol=1e-4)
        np.testing.assert_allclose(
            Ring5().log_density(x), -ring5_potential(np.array([r]))[0], rtol=1e-4
        )


def test_ring_moments():
    _, _, second, _, _ = radial_truth(lambda r: (r - 2) ** 2 / 0.16, [2])
    np.testing.assert_allclose(Ring().std, np.sqrt(second / 2), rtol=1e-5)
    np.testing.assert_allclose(Ring().std, 1.456, atol=5e-4)
    assert Ring().component_weights is None
    with pytest.raises(TargetError, match="no labelled modes"):
        Ring().component(jnp.ones((3, 2)))


def test_ring5_moments_and_weights():
    mean, std, second, weights, _ = radial_truth(ring5_potential, range(1, 6))
    moments = Ring5().statistic_moments
    np.testing.assert_allclose([moments.mean[0], moments.std[0]], [mean, std], rtol=1e-5)
    np.testing.assert_allclose([mean, std], [3.673, 1.252], atol=5e-4)
    np.testing.assert_allclose(Ring5().std, np.sqrt(second / 2), rtol=1e-5)
    np.testing.assert_allclose(Ring5().component_weights, weights, rtol=1e-4)
    np.testing.assert_allclose(weights, np.arange(1, 6) / 15, atol=1e-4)


def test_ring5_is_judged_by_the_radius():
    points = jnp.array([[0.0, 1.2], [3.0, 4.0], [-2.6, 0.0], [2.4, 0.0]])
    np.testing.assert_allclose(Ring5().statistic(points)[:, 0], [1.2, 5.0, 2.6, 2.4], rtol=1e-6)
    # Half-integers divide the rings.
    assert Ring5().component(points).tolist() == [0, 4, 2, 1]


@pytest.mark.parametrize(
    ("target", "potential", "radii"),
    [(Ring, lambda r: (r - 2) ** 2 / 0.16, [2]), (Ring5, ring5_potential, range(1, 6))],
)
def test_distribution_of_exact_radii(target, potential, radii):
    """Kolmogorov's distance of n draws passes 2.2/√n with probability 1.2e-4."""
    *_, (grid, distribution) = radial_truth(potential, radii)
    draws = np.asarray(target().sample(jax.random.key(0), 50_000), dtype=float)
    radius = np.sort(np.linalg.norm(draws, axis=1))
    levels = np.interp(radius, grid, distribution)
    empirical = np.arange(1, len(radius) + 1) / len(radius)
    assert np.abs(levels - empirical).max() < 2.2 / np.sqrt(len(radius))
    angles = np.sort(np.arctan2(draws[:, 1], draws[:, 0]) / (2 * np.pi) + 0.5)
    assert np.abs(angles - empirical).max() < 2.2 / np.sqrt(len(radius))


def test_radius_at_a_level_inverts_the_distribution():
    """The bisection itself, without chance; the cells of the truth are 1e-5 wide."""
    *_, (grid, distribution) = radial_truth(lambda r: (r - 2) ** 2 / 0.16, [2])
    levels = np.linspace(0.001, 0.999, 200)
    with jax.enable_x64(True):
        found = Ring()._radius_at(jnp.asarray(levels, dtype=float), jnp.zeros(200, dtype=int))
    np.testing.assert_allclose(found, np.interp(levels, distribution, grid), rtol=1e-5)


@pytest.mark.parametrize(
    ("radii", "width", "message"),
    [
        ([2.0, 1.0], 0.2, "`radii` argument must be a list of increasing radii"),
        ([0.0], 0.2, "`radii` argument must be a finite number above 0"),
        ([1.0], -0.2, "`width` argument must be a finite number above 0"),
    ],
)
def test_bad_arguments(radii, width, message):
    with pytest.raises(ArgumentError, match=message):
        Rings(radii, width)
