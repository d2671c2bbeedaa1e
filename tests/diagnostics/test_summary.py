"""The verdict on draws that are known to be right or wrong, with and without the truth."""

import json
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from salmc.diagnostics import against_density, summarize
from salmc.diagnostics.point_sets import subset
from salmc.diagnostics.trial import host
from salmc.sampling.draws import Draws
from salmc.target import Target

TWO = np.array([[5.0, 0.0], [-5.0, 0.0]])


@pytest.fixture(autouse=True)
def fewer_points(monkeypatch):
    """All pairs of 700 points instead of 2000, and a part of the questions: the verdicts do not
    change, the tests are faster."""
    monkeypatch.setattr(host, "MOST_EFFORT", 0.4)
    monkeypatch.setattr(against_density, "DISCREPANCY_POINTS", 700)
    monkeypatch.setattr(against_density, "INVARIANCE_POINTS", 500)


@pytest.fixture
def draws_of():
    def make(target, positions, **options):
        flat = jnp.asarray(positions).reshape(-1, target.dim)
        values = np.asarray(target.log_densities(flat)).reshape(positions.shape[:2])
        return Draws(positions, values, seconds=2.0, target=target, method="test", **options)

    return make


def in_modes(modes, shape, seed=0):
    """Draws around the given centres; `modes` broadcasts to shape."""
    generator = np.random.default_rng(seed)
    return TWO[np.broadcast_to(modes, shape)] + 0.5 * generator.normal(size=(*shape, 2))


def random_modes(shape, seed=1):
    return np.random.default_rng(seed).integers(2, size=shape)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("differentiable", [True, False])
@pytest.mark.parametrize("kind", ["chains", "particles"])
def test_exact_draws_are_trusted(mixture, draws_of, known, differentiable, kind):
    target = mixture(TWO, known, differentiable)
    shape = (8, 300) if kind == "chains" else (600, 2)
    positions = in_modes(random_modes(shape), shape)
    summary = summarize(draws_of(target, positions, kind=kind))
    assert summary.verdict.trustworthy, summary.verdict
    assert summary.verdict.degree == "trustworthy"
    assert "Hunted for other modes" in str(summary.verdict)
    assert ("not defined for particles" in str(summary)) == (kind == "particles")


def test_chains_in_different_modes_disagree(mixture, draws_of):
    positions = in_modes(np.array([0, 0, 1, 1])[:, None], (4, 500))
    verdict = summarize(draws_of(mixture(TWO, known=False), positions)).verdict
    assert not verdict.trustworthy
    assert "Chains disagree" in str(verdict)


def test_all_chains_in_one_mode_show_with_and_without_the_truth(mixture, draws_of):
    positions = in_modes(0, (4, 500))
    unknown = summarize(draws_of(mixture(TWO, known=False), positions)).verdict
    assert not unknown.trustworthy
    assert "A mode is missing: around (x0 = -5, x1 = " in str(unknown)
    untold = summarize(draws_of(mixture(TWO, known=False), positions), hunt=False).verdict
    assert not untold.trustworthy
    known = summarize(draws_of(mixture(TWO), positions)).verdict
    assert not known.trustworthy
    for words in ("1 of 2 modes hold no point", "MMD²", "The mean is off"):
        assert words in str(known)


def test_wrong_weights_of_modes(mixture, draws_of):
    positions = in_modes((np.random.default_rng(2).random((8, 300)) < 0.3).astype(int), (8, 300))
    summary = summarize(draws_of(mixture(TWO), positions), hunt=False)
    assert "Weights of modes" in str(summary.verdict)


def test_right_draws_of_which_an_uneven_handful_is_looked_at_are_trusted(mixture, draws_of):
    """Of 4000 right draws, 700 are compared with exact ones; 60 % of these lie in one mode, which
    is 5 standard errors off. One exact sample in 100 is as far off as the verdict allows."""
    modes = random_modes((8, 500))
    chosen = subset(modes.size, 700, np.random.default_rng(0))
    flat = modes.reshape(-1)
    flat[chosen] = np.random.default_rng(3).random(700) < 0.6
    rest = np.setdiff1d(np.arange(modes.size), chosen)
    flat[rest] = np.random.default_rng(4).random(len(rest)) < (2000 - flat[chosen].sum()) / 3300
    summary = summarize(draws_of(mixture(TWO, True), in_modes(modes, modes.shape)))
    assert summary.verdict.trustworthy, summary.verdict


@pytest.mark.parametrize("differentiable", [True, False])
@pytest.mark.parametrize("sd", [0.0, 1e-3, 0.05])
def test_collapsed_clouds_are_found_without_the_truth(mixture, draws_of, differentiable, sd):
    cloud = TWO[0] + sd * np.random.default_rng(0).normal(size=(300, 1, 2))
    target = mixture(TWO, known=False, differentiable=differentiable)
    summary = summarize(draws_of(target, cloud, kind="particles"), hunt=False)
    assert not summary.verdict.trustworthy
    assert "collapsed" in str(summary.verdict)


def test_particles_in_two_points_are_collapsed(mixture, draws_of):
    cloud = TWO[random_modes((300, 1))]
    draws = draws_of(mixture(TWO, known=False), cloud, kind="particles")
    summary = summarize(draws, hunt=False)
    assert summary.evidence.distinct_particles == 2
    assert "only 2 of 300" in str(summary.verdict)


@pytest.mark.parametrize("differentiable", [True, False])
def test_a_shifted_cloud_is_biased(mixture, draws_of, differentiable):
    cloud = in_modes(random_modes((400, 1)), (400, 1)) + 0.4
    target = mixture(TWO, known=False, differentiable=differentiable)
    verdict = summarize(draws_of(target, cloud, kind="particles")).verdict
    assert not verdict.trustworthy
    assert "Biased" in str(verdict)


def test_a_narrow_cloud_in_25_dimensions_is_biased(draws_of):
    """SVGD's failure: a spread of 0.6, which its own discrepancy hardly shows."""
    target = Target(lambda x: -0.5 * jnp.sum(x**2), 25, differentiable=False)
    cloud = 0.6 * np.random.default_rng(0).normal(size=(400, 1, 25))
    verdict = summarize(draws_of(target, cloud, kind="particles"), hunt=False).verdict
    assert not verdict.trustworthy


def test_strongly_autocorrelated_chains(autoregressive, draws_of):
    """ρ = 0.995: 4·1000·0.0025 = 10 effective draws."""
    target = Target(lambda x: -0.5 * jnp.sum(x**2), 1)
    summary = summarize(draws_of(target, autoregressive(0.995, 4, 1000)), hunt=False)
    assert not summary.verdict.trustworthy
    assert "Too few effective draws" in str(summary.verdict)


def test_many_short_chains_are_trusted(autoregressive, draws_of):
    """ρ = 0.8: 300 chains of 100 draws are worth 300·100/9 = 3300, though R-hat is 1.09."""
    target = Target(lambda x: -0.5 * jnp.sum(x**2), 1)
    summary = summarize(draws_of(target, autoregressive(0.8, 300, 100)))
    assert summary.evidence.largest_rhat > 1.05
    assert summary.verdict.trustworthy, summary.verdict


def test_a_chain_that_never_moves(mixture, draws_of):
    summary = summarize(draws_of(mixture(TWO, known=False), np.ones((4, 100, 2)) * TWO[0]))
    assert not summary.verdict.trustworthy
    json.dumps(summary.to_json(), allow_nan=False)


def test_warnings_and_nan_reach_the_verdict(mixture, draws_of):
    positions = in_modes(random_modes((4, 400)), (4, 400))
    target = mixture(TWO)
    told = draws_of(target, positions, warnings=("Interrupted at step 3 of 9.",))
    warned = summarize(told, hunt=False)
    assert not warned.verdict.trustworthy
    assert "Interrupted at step 3 of 9." in str(warned)
    positions[0, 5:] = np.nan
    summary = summarize(draws_of(target, positions), hunt=False)
    assert not summary.verdict.trustworthy
    assert "395 of 1600 points are NaN" in str(summary)
    nothing = summarize(draws_of(target, positions * np.nan), hunt=False)
    assert nothing.verdict.trustworthy is False


def test_few_draws_are_not_judged(mixture, draws_of):
    verdict = summarize(draws_of(mixture(TWO), in_modes(0, (2, 3)))).verdict
    assert "cannot be judged" in str(verdict)


def test_draws_without_a_target_still_have_a_figure_of_bias():
    x = np.random.default_rng(0).normal(size=(4, 500, 2))
    summary = summarize(Draws(x, -0.5 * np.sum(x**2, axis=2), seconds=1.0))
    assert summary.evidence.ksd_kind == "gradient-free, own reference"
    assert summary.verdict.degree == "no problem found"
    assert "untested: spread, tails and modes" in str(summary.verdict)


def test_burn_in_is_left_out(draws_of):
    target = Target(lambda x: -0.5 * jnp.sum(x**2), 1)
    positions = np.random.default_rng(0).normal(size=(4, 400, 1))
    positions[:, :200] += 50.0
    summary = summarize(draws_of(target, positions, burn_in=0.5), hunt=False)
    assert summary.evidence.draws == 200
    assert abs(summary.evidence.coordinates[0].mean) < 0.2  # 5.6 standard errors


def test_text_json_and_rows_tell_the_same(mixture, draws_of):
    accepted = np.ones((4, 400), dtype=bool)
    positions = in_modes(random_modes((4, 400)), (4, 400))
    summary = summarize(draws_of(mixture(TWO), positions, accepted=accepted), hunt=False)
    content = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert content["acceptance"] == 1.0
    assert content["ess_known_moments"] == 400.0
    assert content["verdict"]["trustworthy"] is summary.verdict.trustworthy
    assert content["mmd"].keys() == {"value", "floor"}
    assert [row["name"] for row in content["coordinates"]] == ["x0", "x1"]
    assert all(len(row) == len(summary.columns) for row in summary.rows())
    text = str(summary)
    assert text.endswith(summary.verdict.sentences[-1])
    labels = [label for label, _ in summary.figures()]
    last_ess = max(i for i, label in enumerate(labels) if label.startswith("ESS"))
    assert labels[last_ess + 1].startswith("bias")


def test_the_same_seed_gives_the_same_summary(mixture, draws_of):
    draws = draws_of(mixture(TWO), in_modes(random_modes((4, 800)), (4, 800)))
    assert draws_json(draws, 3) == draws_json(draws, 3)


def draws_json(draws, seed):
    return json.dumps(summarize(draws, seed=seed).to_json())


def test_importing_diagnostics_does_not_import_arviz():
    code = "import sys, salmc.diagnostics; sys.exit('arviz_stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
