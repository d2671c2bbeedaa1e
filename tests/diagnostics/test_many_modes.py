"""Several modes at once, clusters, and second looks: calibrated on exact draws, and sharp."""

import numpy as np
import pytest
from scipy import stats

from salmc.diagnostics.hunt.masses import Region
from salmc.diagnostics.trial.copies import cluster_shifts
from salmc.diagnostics.trial.exchanges import exchanges
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.orbits import OrbitTest, asked_again, uniform_p_value
from salmc.target import Target

PLACES = np.arange(-5.0, 6.0)
"""Eleven modes in a row, of sd 0.1, under a normal of sd 2."""
SD, WIDTH = 0.1, 2.0


class NumpyDensity(HostDensity):
    """Values of a NumPy function, with nothing compiled."""

    def __init__(self, function, dim):
        super().__init__(Target.from_numpy(function, dim), np.zeros(dim), effort=1.0)
        self.function = function

    def values(self, points):
        return self.function(points)


def row(x):
    squares = -0.5 * ((x[:, :1] - PLACES) / SD) ** 2 - 0.5 * (PLACES / WIDTH) ** 2
    return np.logaddexp.reduce(squares, axis=1)


def row_draws(generator, width=WIDTH, extra=1.0, count=4000):
    shares = np.exp(-0.5 * (PLACES / width) ** 2)
    shares[7] *= extra
    which = generator.choice(len(PLACES), count, p=shares / np.sum(shares))
    return PLACES[which, None] + SD * generator.normal(size=(count, 1))


# One of them twice, as climbs may end twice in one mode.
REGIONS = [
    Region(np.array([place]), np.array([[SD]]), -0.5 * (place / WIDTH) ** 2, 0.05)
    for place in [*PLACES, 1.01]
]


def exchanged(points, seed=0):
    return exchanges(NumpyDensity(row, 1), points, REGIONS, seed)


def test_modes_beside_all_others_are_calibrated():
    """p-values of one mode, and of the distance, over 40 exact samples: Kolmogorov at 10⁻³."""
    found = [
        exchanged(row_draws(np.random.default_rng(seed), count=800), seed) for seed in range(40)
    ]
    one = [next(e for e in every if abs(e.position[0] - 2.0) < 0.1) for every in found]
    assert all(exchange.beside is None for exchange in one)
    outward = [next(e for e in every if e.outward) for every in found]
    for kind in (one, outward):
        assert stats.kstest([exchange.p_value for exchange in kind], "uniform").pvalue > 1e-3


def test_a_mode_with_too_much_of_all_others_and_a_row_that_is_too_narrow_are_seen():
    """A third more: 4,000 draws tell a share of 0.12 to 5 % of itself. A tenth narrower: a width is
    told to 1.2 % of itself, and no mode of eleven to better than 5 %."""
    worst = min(exchanged(row_draws(np.random.default_rng(1), extra=1.35)), key=lambda e: e.p_value)
    assert worst.position[0] == 2.0
    assert worst.times == pytest.approx(1.3, abs=0.12)
    assert worst.p_value < 1e-6
    worst = min(
        exchanged(row_draws(np.random.default_rng(1), 0.9 * WIDTH)), key=lambda e: e.p_value
    )
    assert worst.outward
    assert worst.times < 1.0
    assert worst.p_value < 1e-8


def funnels(x):
    """Two far modes of 0.3 and 0.7, each a funnel whose top no draw comes near."""
    width = np.exp(x[:, 0])
    squares = [np.sum((x[:, 1:] - centre) ** 2, axis=1) / width for centre in (-6.0, 6.0)]
    parts = np.log([0.3, 0.7])[:, None] - 0.5 * np.array(squares)
    return np.logaddexp(*parts) - 0.5 * (x[:, 0] ** 2 + 7.0 * x[:, 0])


def funnel_draws(generator, share=0.3):
    first = generator.normal(size=(6000, 1))
    centre = np.where(generator.random((6000, 1)) < share, -6.0, 6.0)
    return np.c_[first, centre + np.exp(0.5 * first) * generator.normal(size=(6000, 7))]


@pytest.mark.parametrize(("share", "least", "most"), [(0.3, 1e-3, 1.0), (0.35, 0.0, 1e-8)])
def test_clusters_lead_from_mode_to_mode(share, least, most):
    """6,000 draws tell 0.3 to 0.006."""
    points = funnel_draws(np.random.default_rng(3), share)
    frame, density = Frame.of(points), NumpyDensity(funnels, 8)
    first = next(cluster_shifts(points, frame))
    step = np.abs(first.points[:, 1] - first.points[:, 0])
    np.testing.assert_allclose(step[:, 1:], 12.0, atol=0.5)
    values = density.values(first.points.reshape(-1, 8)).reshape(first.points.shape[:2])
    weights = np.exp(values - np.max(values, axis=1, keepdims=True))
    weights /= np.sum(weights, axis=1, keepdims=True)
    rows = np.arange(len(weights))
    ranks = np.cumsum(weights, axis=1)[rows, first.place]
    ranks -= np.random.default_rng(1).random(len(rows)) * weights[rows, first.place]
    assert least <= uniform_p_value(ranks) <= most


@pytest.mark.parametrize("size", [1.0, 0.85])
def test_a_second_look_tells_what_a_first_one_does_not(size):
    """One in twenty is 15 % too narrow: what few draws hint at, all others are sure of."""
    points = np.random.default_rng(5).normal(size=(6000, 20)) * np.r_[size, np.ones(19)]
    frame, names = Frame.of(points), [f"x{i}" for i in range(20)]
    density = NumpyDensity(lambda x: -0.5 * np.sum(x**2, axis=1), 20)
    uniform = (np.arange(800) + 0.5) / 800
    hints = [(name, 0.5 + (0.95 if name == "x0" else 1.0) * (uniform - 0.5)) for name in names]
    first = [OrbitTest(f"line {name}", ranks, 1.0) for name, ranks in hints]
    again = asked_again(density, points, frame, names, first)
    assert again[0].name == "line x0"
    assert (again[0].p_value < 1e-9) == (size < 1.0)
    assert min(test.p_value for test in again[1:]) > 1e-4
    assert asked_again(density, points[:1000], frame, names, first) == []
