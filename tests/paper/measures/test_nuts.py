import json
import sys

import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.errors import ArgumentError, DataError, NotDifferentiableError, SalmcError
from salmc.targets import Gaussian
from salmc_paper.measures import references
from salmc_paper.measures.nuts import nuts
from salmc_paper.measures.references import Reference, disagreement, measured, reference

MEAN, COVARIANCE = [1.0, -3.0], [[1.0, 0.6], [0.6, 4.0]]
TARGET = Gaussian(MEAN, COVARIANCE)


@pytest.fixture(scope="module")
def draws():
    pytest.importorskip("blackjax", reason="BlackJAX is in the extra `bench`")
    return nuts(TARGET, chains=16, draws=600, warmup=300, seed=1)


def test_moments_of_a_gaussian(draws):
    """Within 4.5 standard errors from the spread of 16 chains (Student's t: p = 4e-4)."""
    found = measured(TARGET, draws, {})
    truth = Reference(
        "truth",
        found.names,
        np.array(MEAN),
        np.sqrt(np.diag(COVARIANCE)),
        np.zeros(2),
        np.zeros(2),
        {},
    )
    assert disagreement(found, truth) < 4.5
    assert 0.002 < found.largest_error < 0.05


def test_what_draws_say_of_themselves(draws):
    assert draws.method == "nuts"
    assert draws.kind == "chains"
    assert draws.positions.shape == (16, 600, 2)
    flat = jnp.asarray(draws.positions[:, -1])
    np.testing.assert_allclose(TARGET.log_densities(flat), draws.log_density[:, -1], rtol=1e-4)
    settings = draws.settings
    assert settings["warmup_seconds"] > 0
    assert settings["divergences"] == 0
    assert 0.6 < settings["acceptance"] < 0.99
    assert 1 <= settings["leapfrogs"] < 32
    assert draws.seconds > 0
    assert draws.compile_seconds > 0
    json.dumps(settings)


def test_threads_change_the_draws_and_not_the_target():
    """Eight standard errors of 4 × 500 draws at ESS of at least a third."""
    pytest.importorskip("blackjax", reason="BlackJAX is in the extra `bench`")
    made = nuts(TARGET, chains=4, draws=500, warmup=200, seed=2, threads=2)
    assert made.positions.shape == (4, 500, 2)
    assert len(np.unique(made.positions[:, -1, 0])) == 4
    error = np.sqrt(np.diag(COVARIANCE) * 3 / 2000)
    assert np.all(np.abs(made.positions.mean(axis=(0, 1)) - MEAN) < 8 * error)
    with pytest.raises(ArgumentError, match="divisor of the 4 chains"):
        nuts(TARGET, chains=4, threads=3)


def test_chains_move_and_differ(draws):
    """Blocks of draws follow on each other: no row is left empty or repeated."""
    assert np.all(np.any(np.diff(draws.positions, axis=1) != 0, axis=2).mean(axis=1) > 0.95)
    assert len(np.unique(draws.positions[:, -1, 0])) == 16


def test_blocks_of_draws_have_randomness_of_their_own(draws):
    """Draws 250 apart, the length of a block: 4000 pairs, within five standard errors."""
    before, after = draws.positions[:, :250], draws.positions[:, 250:500]
    for i in range(2):
        correlation = np.corrcoef(before[..., i].ravel(), after[..., i].ravel())[0, 1]
        assert abs(correlation) < 5 / np.sqrt(before[..., i].size)


def test_bad_arguments():
    pytest.importorskip("blackjax", reason="BlackJAX is in the extra `bench`")
    for options in ({"chains": 0}, {"draws": 0}, {"warmup": 3}, {"mass_matrix": "full"}):
        with pytest.raises(ArgumentError, match=f"`{next(iter(options))}` argument"):
            nuts(TARGET, **options)
    with pytest.raises(ArgumentError, match=r"`start` argument must be an array of shape \(4, 2\)"):
        nuts(TARGET, chains=4, start=np.zeros((3, 2)))
    black_box = salmc.Target.from_numpy(lambda x: -np.sum(x**2, axis=1), dim=2)
    with pytest.raises(NotDifferentiableError, match="nuts needs the gradient"):
        nuts(black_box)


def test_without_blackjax_there_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(SalmcError, match=r"NUTS needs BlackJAX.*salmc\[bench\]"):
        nuts(TARGET)


@pytest.mark.parametrize("name", references.REFERENCES)
def test_shipped_references_are_precise_and_of_the_right_shape(name):
    found = reference(name)
    assert found.target == name
    assert found.mean.shape == ({"heart": 14, "australian": 15, "german": 25}[name],)
    assert found.largest_error <= 0.005
    assert found.names[-1] == "bias"


def log_posterior(rows: np.ndarray, points: np.ndarray) -> np.ndarray:
    margins = points @ rows.T
    return -np.sum(np.logaddexp(0.0, -margins), axis=1) - 0.5 * np.sum(points**2, axis=1)


@pytest.mark.parametrize("name", ["heart", "german"])
def test_shipped_references_against_importance_sampling(name):
    """Another method altogether: Student's t draws around the mode, weighed by the posterior.

    The errors are those of self-normalised importance sampling by the delta method, and the
    reference's own. 4.5 of them: the worst of 50 exceeds that with probability 3e-4.
    """
    found = reference(name)
    rows = np.asarray(salmc.targets.load_target(name).signed_rows, dtype=np.float64)
    dim, mode = rows.shape[1], np.zeros(rows.shape[1])
    for _ in range(20):
        doubts = 1 / (1 + np.exp(rows @ mode))
        precision = (rows.T * (doubts * (1 - doubts))) @ rows + np.eye(dim)
        mode += np.linalg.solve(precision, rows.T @ doubts - mode)
    generator, freedom = np.random.default_rng(0), 30
    normal = generator.normal(size=(20_000, dim))
    stretch = np.sqrt(freedom / generator.chisquare(freedom, size=(20_000, 1)))
    z = normal * stretch
    points = mode + z @ np.linalg.cholesky(np.linalg.inv(precision)).T
    log_proposal = -(freedom + dim) / 2 * np.log1p(np.sum(z**2, axis=1) / freedom)
    log_weights = log_posterior(rows, points) - log_proposal
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    assert 1 / np.sum(weights**2) > 4000

    offset = points - found.mean
    mean = weights @ offset
    mean_error = np.sqrt(weights**2 @ (offset - mean) ** 2 + found.mean_error**2)
    assert np.max(np.abs(mean) / mean_error) < 4.5
    squares = (offset - mean) ** 2
    variance = weights @ squares
    error = np.sqrt(weights**2 @ (squares - variance) ** 2) / (2 * found.std)
    apart = np.sqrt(variance) - found.std
    assert np.max(np.abs(apart) / np.hypot(error, found.std_error)) < 4.5
    # Errors of a few hundredths of an sd: a reference that is off by a tenth would be found out.
    assert np.max(mean_error / found.std) < 0.02


def test_references_survive_json_and_damage_is_met():
    found = reference("heart")
    content = json.loads(json.dumps(found.to_json()))
    np.testing.assert_array_equal(Reference.from_json(content).std, found.std)
    for damage in ({"mean": [1.0]}, {"std": None}, {"std": [-1.0] * 14}, {"names": 3}):
        with pytest.raises(DataError, match="reference moments"):
            Reference.from_json({**content, **damage})
    with pytest.raises(ArgumentError, match="`name` argument must be one of"):
        reference("ring")


def test_errors_of_the_moments_are_those_that_repetition_shows():
    """Antithetic chains: the mean is known far better, the sd worse than by independent draws.

    The claimed errors against the spread of the moments themselves over 200 repetitions. That
    spread is known to 5 %, the mean of the claims better still: they agree within 20 %.
    """
    generator = np.random.default_rng(0)
    found = []
    for _ in range(200):
        half = generator.normal(size=(32, 50, 1))
        chains = np.stack([half, -half], axis=2).reshape(32, 100, 1)
        draws = salmc.Draws(chains + 0.1 * generator.normal(size=chains.shape), chains[..., 0], 1.0)
        found.append(measured(Gaussian([0.0], [[1.0]]), draws, {}))
    for moment in ("mean", "std"):
        spread = np.std([getattr(one, moment) for one in found])
        claimed = np.mean([getattr(one, f"{moment}_error") for one in found])
        np.testing.assert_allclose(claimed / spread, 1.0, atol=0.2)


def test_disagreement_is_in_standard_errors():
    first = Reference("a", ("x",), np.zeros(1), np.ones(1), np.full(1, 0.03), np.full(1, 0.1), {})
    second = Reference(
        "a", ("x",), np.full(1, 0.1), np.ones(1), np.full(1, 0.04), np.full(1, 0.1), {}
    )
    np.testing.assert_allclose(disagreement(first, second), 2.0)
