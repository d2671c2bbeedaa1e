"""The parts of a trial, on densities in NumPy: exact tests must be exact, and see their own."""

import numpy as np
import pytest

from salmc.diagnostics.trial.brinks import brinks
from salmc.diagnostics.trial.frame import Frame, spaced
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.orbits import orbit_tests, uniform_p_value
from salmc.diagnostics.trial.slopes import slopes_hold
from salmc.diagnostics.trial.soundness import soundness
from salmc.diagnostics.trial.stein import stein_tests
from salmc.diagnostics.trial.symmetries import label_exchanges
from salmc.diagnostics.trial.tails import does_not_integrate, far_out
from salmc.diagnostics.trial.trial import put_on_trial
from salmc.target import Target

NAMES = ("x0", "x1")


class NumpyDensity(HostDensity):
    """Values of a NumPy function, with nothing compiled."""

    def __init__(self, function, dim=2):
        super().__init__(Target.from_numpy(function, dim), np.zeros(dim))
        self.function, self._effort = function, 0.2

    def values(self, points):
        found = np.asarray(self.function(points), np.float64)
        return np.where(found < np.inf, found, -np.inf)

    def raw(self, points):
        return np.asarray(self.function(points), np.float64)


def normal(x):
    return -0.5 * np.sum(x**2, axis=1)


def cauchy(x):
    return -1.5 * np.log1p(np.sum(x**2, axis=1))


def half_box(x):
    inside = np.all((x > 0) & (x < 1), axis=1)
    return np.where(inside, 0.0, -np.inf)


def cauchy_draws(generator, count):
    return generator.normal(size=(count, 2)) / np.abs(generator.normal(size=(count, 1)))


DRAWS = {
    normal: lambda generator, count: generator.normal(size=(count, 2)),
    cauchy: cauchy_draws,
    half_box: lambda generator, count: generator.random((count, 2)),
}


@pytest.mark.parametrize("function", DRAWS, ids=lambda function: function.__name__)
def test_orbits_and_brinks_of_exact_draws_are_calibrated(function):
    """Of 20 samples at most 5 have a corrected p-value below 0.05: one is expected at most."""
    low = 0
    for seed in range(20):
        points = DRAWS[function](np.random.default_rng(seed), 300)
        density, frame = NumpyDensity(function), Frame.of(points)
        orbits = orbit_tests(density, points, frame, NAMES, seed)
        ends = brinks(density, points, frame, NAMES, seed)
        p_values = [*(test.p_value for test in orbits), *(end.p_value for end in ends)]
        low += len(p_values) * min(p_values) < 0.05
    assert low <= 5


def test_ranks_that_are_not_uniform_are_seen():
    generator = np.random.default_rng(0)
    assert uniform_p_value(generator.random(1000)) > 1e-3
    assert uniform_p_value(0.98 * generator.random(1000)) < 1e-3
    assert uniform_p_value(generator.beta(1.3, 1.3, 1000)) < 1e-3
    # Three of a thousand at the very end may be made up by rounding; five of 8,000 are outliers.
    ranks = np.random.default_rng(1).uniform(0.01, 1.0, 8000)
    ranks[:3] = 1e-7
    assert uniform_p_value(np.r_[ranks[:1000], 1e-3 * np.arange(1, 10)]) > 1e-3
    ranks[:80] = np.r_[[1e-7] * 5, np.linspace(1e-3, 0.01, 75)]
    assert uniform_p_value(ranks) < 1e-4
    # A chain that stayed there made five of one.
    places = np.arange(8000.0)[:, None]
    assert uniform_p_value(ranks, places) < 1e-4
    places[:5] = 0.0
    assert uniform_p_value(ranks, places) > 1e-3


def worst(function, points, **options):
    tests = orbit_tests(NumpyDensity(function), points, Frame.of(points), NAMES, **options)
    test = min(tests, key=lambda test: test.p_value)
    return test.name, len(tests) * test.p_value


def test_orbits_see_mirrors_and_tails():
    generator = np.random.default_rng(1)
    points = generator.normal(size=(1000, 2))

    def mirrored(x):
        return np.logaddexp(normal(x - 4.0), normal(x + 4.0))

    name, p_value = worst(mirrored, points + 4.0)
    assert p_value < 1e-6
    assert name in ("mirror about 0", "any long line", "long line x0", "long line x1")
    far = cauchy_draws(generator, 8000)
    name, p_value = worst(cauchy, far[np.max(np.abs(far), axis=1) < 20.0])
    assert name == "tails"
    assert p_value < 1e-6


def test_a_ridge_that_is_too_short_is_seen_along_its_axis():
    """Held to 0.01 across, no coordinate can move: 15 % too short shows along main axes alone."""
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2.0)
    points = np.random.default_rng(3).normal(size=(8000, 2)) * [0.01, 0.85] @ turn

    def ridge(x):
        return normal(x @ turn.T / [0.01, 1.0])

    density, frame = NumpyDensity(ridge), Frame.of(points)
    found = {
        test.name: test.p_value
        for test in orbit_tests(density, points, frame, NAMES, alone=True)
        if test.name.partition(" ")[0] in ("line", "axis")
    }
    assert found.pop("axis 0") < 1e-5
    assert min(found.values()) > 1e-3


def test_stein_tests_are_calibrated_even_with_scores_without_variance():
    """Scores of a narrow neck: z/τ with τ uniform has no variance, and its mean is 0."""
    low = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        width = generator.random((600, 1))
        scores = -generator.normal(size=(600, 2)) / width
        points = -scores * width**2 + 5.0 * generator.normal(size=(600, 1)) * [0.0, 1.0]
        low += stein_tests(points, scores, Frame.of(points)).p_value < 0.05
    assert low <= 8


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda x: x + np.array([0.2, 0.0]), "shift"),
        (lambda x: 1.1 * x, "overall spread"),
        (lambda x: x @ np.linalg.cholesky([[1, 0.3], [0.3, 1]]).T, "correlation"),
    ],
)
def test_stein_tests_name_what_is_off(change, told):
    points = change(np.random.default_rng(3).normal(size=(3000, 2)))
    found = stein_tests(points, -points, Frame.of(points))
    assert found.p_value < 1e-6
    assert found.function == told


def falls_and_grows(x):
    """Beyond numbers, in the end."""
    with np.errstate(over="ignore"):
        return normal(x) + np.exp(x[:, 0] - 9)


@pytest.mark.parametrize(
    ("function", "improper", "grows"),
    [
        (normal, "", False),
        (cauchy, "", False),
        (half_box, "", False),
        (lambda x: np.maximum(normal(x), -1e10), "", False),
        # Cut at the smallest number of single precision, as simplexes of NumPyro's are.
        (lambda x: -0.5 * x[:, 0] ** 2 - np.minimum(0.5 * x[:, 1] ** 2, 87.3), "", False),
        (lambda x: -0.5 * x[:, 0] ** 2 - np.minimum(0.5 * x[:, 1] ** 2, 40.0), "along x1", False),
        (lambda x: np.logaddexp(normal(x), np.log(1e-6)), "everywhere", False),
        (lambda x: -np.log1p(np.sum(x**2, axis=1)), "everywhere", False),
        (lambda x: -normal(x), "everywhere", True),
        # Falls, and is +∞ where a formula divides by what was rounded to zero.
        (lambda x: np.where(np.any(np.abs(x) > 20, axis=1), np.inf, normal(x)), "", False),
        (falls_and_grows, "everywhere", True),
        (lambda x: -0.5 * x[:, 0] ** 2, "along x1", False),
        (lambda x: -0.5 * (x[:, 0] + x[:, 1]) ** 2, "along x", False),
    ],
)
def test_what_does_not_integrate(function, improper, grows):
    points = np.random.default_rng(4).normal(size=(500, 2))
    if function is half_box:
        points = np.random.default_rng(4).random((500, 2))
    if improper == "along x":
        points = points @ np.array([[30.0, -30.0], [0.5, 0.5]])
    tails = far_out(NumpyDensity(function), points, Frame.of(points), NAMES)
    assert tails.improper.startswith(improper)
    assert bool(tails.improper) == bool(improper)
    assert tails.grows == grows


def test_a_density_without_draws_is_asked_around_the_origin():
    assert does_not_integrate(Target.from_numpy(normal, 2)) is None
    told = does_not_integrate(Target.from_numpy(lambda x: -normal(x), 2))
    assert told == "This density does not integrate: far out it grows in all directions."


def test_noise_nan_and_other_values():
    generator = np.random.default_rng(5)
    points = generator.normal(size=(600, 2))
    points[:, 0] = np.abs(points[:, 0])

    def noisy(x):
        return np.where(x[:, 0] > 0, normal(x), np.nan) + 0.3 * generator.normal(size=len(x))

    found = soundness(NumpyDensity(noisy), points, normal(points) + 7.0, Frame.of(points))
    assert 0.2 < found.noise < 0.4
    assert 0.1 < found.nan_share < 0.4
    assert found.zero_share == found.infinite_share == 0.0
    assert found.mismatch < 0.5
    other = soundness(NumpyDensity(normal), points, 3.0 * normal(points), Frame.of(points))
    assert other.noise == 0.0
    assert other.mismatch > 1.0


def test_label_exchanges_follow_the_names():
    names = ("w", "mu[0]", "mu[1]", "sd[0]", "sd[1]")
    ((name, order, permutation),) = label_exchanges(names)
    assert "0 and 1" in name
    assert permutation.tolist() == [0, 2, 1, 4, 3]
    assert order.tolist() == [0.0, 1.0, -1.0, 0.0, 0.0]
    assert list(label_exchanges(("x0", "x1"))) == []


def test_spaced_indices_and_frames_of_hard_points():
    generator = np.random.default_rng(7)
    assert len(set(spaced(1000, 100, generator))) == 100
    assert spaced(5, 100, generator).tolist() == [0, 1, 2, 3, 4]
    points = np.concatenate([np.zeros((80, 2)), generator.normal(size=(20, 2))])
    frame = Frame.of(points)
    np.testing.assert_allclose(frame.inward(frame.outward(points)), points, atol=1e-9)
    assert np.all(Frame.of(np.ones((50, 2))).scale > 0)


def test_a_few_lost_digits_are_no_other_density():
    """Values that came with draws differ where a bound takes digits away: one in fifty, by much."""
    points = np.random.default_rng(0).normal(size=(500, 2))
    stored = normal(points)
    stored[::50] += 3.0
    frame = Frame.of(points)
    assert soundness(NumpyDensity(normal), points, stored, frame).mismatch < 1e-9
    stored[::3] += 3.0
    assert soundness(NumpyDensity(normal), points, stored, frame).mismatch > 0.5


class SlopedDensity(NumpyDensity):
    """With a gradient that may be any function's."""

    def __init__(self, function, gradient, dim=2):
        super().__init__(function, dim)
        self.gradient = gradient

    def gradients(self, points):
        return self.gradient(points)


SLOPES = {
    "smooth": (normal, lambda x: -x, True),
    "a kink": (lambda x: -np.sum(np.abs(x), axis=1), lambda x: -np.sign(x), True),
    "narrow modes": (
        lambda x: np.maximum(normal(x / 0.02), normal((x - 1.0) / 0.02)),
        lambda x: np.where(np.sum(x, axis=1, keepdims=True) < 1.0, -x, 1.0 - x) / 4e-4,
        True,
    ),
    "far below zero": (lambda x: normal(x) - 1e6, lambda x: -x, True),
    "a step": (lambda x: normal(x) - (x[:, 0] > 0.5), lambda x: -x, False),
    "a table": (lambda x: -np.round(np.abs(x[:, 0])), lambda x: 0.0 * x, False),
    "half of the gradient": (normal, lambda x: -0.5 * x, False),
    "no gradient": (normal, lambda x: 0.0 * x, False),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_that_belong_to_the_values(name):
    function, gradient, holds = SLOPES[name]
    points = np.random.default_rng(0).normal(size=(600, 2))
    if name == "narrow modes":
        points = 0.02 * points + np.random.default_rng(1).integers(0, 2, (600, 1))
    density = SlopedDensity(function, gradient)
    density._effort = 1.0
    assert slopes_hold(density, points, Frame.of(points)) == holds


def test_questions_that_few_draws_are_not_asked_surprise_nobody():
    target = Target(lambda x: -0.5 * (x**2).sum(), 2)
    draws = np.random.default_rng(0).normal(size=(60, 2))
    values = -0.5 * np.sum(draws**2, axis=1)
    trial = put_on_trial(target, draws, values, 60.0, NAMES, independent=True, search=False)
    assert trial.brinks == ()
    assert trial.brink_p_value == 1.0
