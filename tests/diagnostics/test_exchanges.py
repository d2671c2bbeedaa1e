"""Exchanges of modes, and directions that draws choose: calibrated on exact draws, and sharp."""

import numpy as np
import pytest
from scipy import stats

from salmc.diagnostics.hunt.masses import Region
from salmc.diagnostics.trial.exchanges import exchanges
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.learned_functions import learned_values
from salmc.diagnostics.trial.stein import studentised
from salmc.target import Target

CENTRES = np.array([[0.0, 0.0, 0.0], [6.0, 2.0, -3.0]])
FACTORS = np.array([np.diag([1.0, 0.5, 2.0]), [[0.2, 0.0, 0.0], [0.3, 1.0, 0.0], [0.0, 0.5, 0.4]]])
WEIGHTS = np.array([0.7, 0.3])


def log_densities(x):
    """Two modes of different shapes, each a Student's t with five degrees: no Gaussian."""
    found = []
    for centre, factor, weight in zip(CENTRES, FACTORS, WEIGHTS, strict=True):
        square = np.sum(np.linalg.solve(factor, (x - centre).T) ** 2, axis=0)
        found.append(np.log(weight / np.linalg.det(factor)) - 4.0 * np.log1p(square / 5.0))
    return np.logaddexp(*found)


def draws(generator, weights=WEIGHTS, count=4000):
    which = generator.choice(2, count, p=weights)
    scale = np.sqrt(generator.chisquare(5.0, size=(count, 1)) / 5.0)
    y = generator.normal(size=(count, 3)) / scale
    return CENTRES[which] + np.einsum("nij,nj->ni", FACTORS[which], y)


class NumpyDensity(HostDensity):
    """Values of a NumPy function, with nothing compiled."""

    def __init__(self):
        super().__init__(Target.from_numpy(log_densities, 3), CENTRES[0], effort=1.0)

    def values(self, points):
        return log_densities(points)


REGIONS = [
    Region(CENTRES[0], FACTORS[0], 0.0, 0.1),
    # As a hunt has it: not quite in the middle, and too wide.
    Region(CENTRES[1] + [0.05, -0.2, 0.1], 1.3 * FACTORS[1], -1.0, 0.1),
]


def test_exchanges_of_exact_draws_are_calibrated():
    """p-values of 200 exact samples are uniform: Kolmogorov-Smirnov at 10⁻³."""
    p_values = [
        exchanges(NumpyDensity(), draws(np.random.default_rng(seed)), REGIONS, seed)[0].p_value
        for seed in range(200)
    ]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


@pytest.mark.parametrize(("weights", "times"), [([0.78, 0.22], 0.658), ([0.6, 0.4], 1.556)])
def test_shares_of_modes_are_seen_within_a_tenth(weights, times):
    """4,000 draws tell odds to about 4 %, so that a factor is told to 0.1 of itself by far."""
    (found,) = exchanges(NumpyDensity(), draws(np.random.default_rng(1), weights), REGIONS)
    assert found.p_value < 1e-6
    assert found.times == pytest.approx(times, rel=0.12)


def test_one_mode_and_modes_that_are_the_same_have_nothing_to_exchange():
    points = draws(np.random.default_rng(0))
    assert exchanges(NumpyDensity(), points, REGIONS[:1]) == []
    assert exchanges(NumpyDensity(), points, [REGIONS[0], REGIONS[0]]) == []


def studentised_values(points, scores):
    return [float(studentised(values)[0][0]) for values in learned_values(points, scores).values()]


AXES = np.linalg.qr(np.random.default_rng(7).normal(size=(30, 30)))[0] * np.geomspace(0.1, 10.0, 30)
PRECISION = np.linalg.inv(AXES @ AXES.T)


def thirty(generator, spread=1.0, shift=0.0):
    z = generator.normal(size=(6000, 30))
    z[:, 15] = spread * z[:, 15] + shift
    return z @ AXES.T


def test_learned_functions_of_exact_draws_are_standard_normal():
    """Of 60 samples: means within 3.3 errors of 0 (10⁻³), and spreads by χ² at 10⁻³."""
    found = []
    for seed in range(60):
        points = thirty(np.random.default_rng(seed))
        found.append(studentised_values(points, -points @ PRECISION))
    sizes = np.array(found)
    assert np.all(np.abs(np.mean(sizes, axis=0)) < 3.3 / np.sqrt(60))
    low, high = stats.chi2.ppf([5e-4, 1 - 5e-4], 60)
    squares = np.sum(sizes**2, axis=0)
    assert np.all((low < squares) & (squares < high))


@pytest.mark.parametrize("seed", range(3))
def test_one_direction_of_thirty_is_seen(seed):
    """A tenth too narrow shows in no coordinate: 6,000 draws tell its spread to a hundredth."""
    points = thirty(np.random.default_rng(seed), spread=0.9)
    assert studentised_values(points, -points @ PRECISION)[0] > 4.0
    points = thirty(np.random.default_rng(seed), spread=1.1)
    assert studentised_values(points, -points @ PRECISION)[1] < -4.0
    points = thirty(np.random.default_rng(seed), shift=0.15)
    assert studentised_values(points, -points @ PRECISION)[2] > 4.0


def test_few_draws_choose_nothing():
    points = thirty(np.random.default_rng(0))[:900]
    assert learned_values(points, -points @ PRECISION) == {}


def test_modes_that_last_are_no_surprise():
    """Chains that stay in a mode for 20 draws: as many as belong there, but fewer that count. By
    their order p-values are uniform (Kolmogorov-Smirnov at 10⁻³), without it they are not."""
    lasting, told, untold = 20, [], []
    for seed in range(100):
        generator = np.random.default_rng(seed)
        which = np.repeat(generator.choice(2, 200, p=WEIGHTS), lasting)
        noise = generator.normal(size=(len(which), 3))
        noise /= np.sqrt(generator.chisquare(5.0, size=(len(which), 1)) / 5.0)
        points = CENTRES[which] + np.einsum("nij,nj->ni", FACTORS[which], noise)
        order = generator.permutation(len(points))
        for found, known in ((told, order), (untold, None)):
            given = exchanges(NumpyDensity(), points[order], REGIONS, seed, known)
            found.append(given[0].p_value)
    assert stats.kstest(told, "uniform").pvalue > 1e-3
    assert stats.kstest(untold, "uniform").pvalue < 1e-6
