"""NumPyro's models as targets, held to NumPyro's own functions."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.diagnostics.trial.tails import far_out

numpyro = pytest.importorskip("numpyro")
import numpyro.distributions as dist  # noqa: E402
from numpyro.infer.util import constrain_fn, log_likelihood, potential_energy  # noqa: E402

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = ["Choate", "Deerfield", "Andover", "Exeter", "Hotchkiss", "Lawr", "Paul", "Hermon"]


def schools(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfNormal(5))
    with numpyro.plate("school", len(sigma)):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("effect", dist.Normal(theta, sigma), obs=y)
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(3)))
    numpyro.sample("factor", dist.LKJCholesky(2, 1.0))
    numpyro.deterministic("most", jnp.max(weights))


@pytest.fixture(scope="module")
def target():
    found = salmc.from_numpyro(schools, SIGMA, y=Y)
    return found.labelled(coords={"school": SCHOOLS}, dims={"weights": ["part"]})


@pytest.fixture(scope="module")
def draws(target):
    positions = np.random.default_rng(0).normal(size=(2, 30, target.dim)).astype("f4")
    return salmc.Draws(positions, None, 1.0, target=target).evaluated()


def _tree(target, x):
    """The unconstrained variables by name, in the order that the names of coordinates tell."""
    tree = {}
    for name, value in zip(target.names, x, strict=True):
        tree.setdefault(name.split("[")[0], []).append(value)
    return {
        name: jnp.asarray(v[0] if name in ("mu", "tau") else v, dtype=float)
        for name, v in tree.items()
    }


def test_the_density_and_the_variables_are_numpyros(target, draws):
    for x in draws.positions[0, :3]:
        tree = _tree(target, x)
        expected = -potential_energy(schools, (SIGMA,), {"y": Y}, tree)
        assert float(target.log_density(jnp.asarray(x))) == pytest.approx(float(expected), rel=1e-6)
        own = target.constrain(jnp.asarray(x))
        values = constrain_fn(schools, (SIGMA,), {"y": Y}, tree, return_deterministic=True)
        for name, value in values.items():
            if name in own:
                np.testing.assert_allclose(own[name], value, rtol=1e-6)
    assert list(own) == ["mu", "tau", "theta", "weights", "factor", "most"]


def test_the_tree_reads_like_a_run_of_numpyro(draws):
    tree = draws.to_arviz()
    assert tree.posterior.theta.dims == ("chain", "draw", "school")
    assert list(tree.posterior.theta.school.values) == SCHOOLS
    assert tree.posterior.weights.dims[2:] == ("part",)
    assert tree.posterior.factor.shape == (2, 30, 2, 2)
    assert tree.observed_data.effect.dims == ("school",)
    np.testing.assert_allclose(tree.observed_data.effect, Y)
    samples = {
        name: jnp.asarray(tree.posterior[name].values)
        for name in ("mu", "tau", "theta", "weights", "factor")
    }
    expected = log_likelihood(schools, samples, SIGMA, y=Y, batch_ndims=2)["effect"]
    np.testing.assert_allclose(tree.log_likelihood.effect, expected, rtol=1e-5)
    assert tree.posterior_predictive.effect.dims == ("chain", "draw", "school")


def test_predicted_data_follow_the_draws(draws):
    """E[y | θ] = θ: the mean over all of (y − θ)/σ is 0 within 1/√n, n = 480; four of these."""
    tree = draws.to_arviz()
    z = (tree.posterior_predictive.effect.values - tree.posterior.theta.values) / SIGMA
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert 0.85 < z.std() < 1.15  # 4.6 standard errors, 1/√(2n) each


def test_arviz_takes_it(draws):
    from arviz_stats import loo

    assert np.isfinite(loo(draws.to_arviz()).elpd)


def test_summary_speaks_of_the_models_variables(draws):
    summary = draws.summary(hunt=False)
    names = [row.name for row in summary.evidence.coordinates]
    assert names[:3] == ["mu", "tau", "theta[Choate]"]
    assert "factor[1, 0]" in names
    assert "weights[2]" in names
    rows = {row.name: row for row in summary.evidence.coordinates}
    assert rows["tau"].low > 0
    # The corner of a Cholesky factor of correlations is 1, always: no chain is stuck there.
    assert rows["factor[0, 0]"].mean == 1.0
    assert rows["factor[0, 0]"].rhat is None
    assert not any("never moved" in text for text in summary.verdict.sentences)


def test_a_stuck_coordinate_shows_all_the_same(target, draws):
    positions = draws.positions.copy()
    positions[..., target.names.index("tau")] = 0.3
    summary = salmc.Draws(positions, None, 1.0, target=target).summary(hunt=False)
    assert any("never moved" in text for text in summary.verdict.sentences)


def test_the_start_is_the_prior(target):
    """The prior of μ is N(0, 5²): the middle four fifths of 64 draws of it spread by 2 to 6."""
    spread = np.std(np.asarray(target.start), axis=0)[target.names.index("mu")]
    assert 2.0 < spread < 6.0


def test_a_simplex_that_is_cut_far_out_integrates(target):
    """NumPyro cuts it at the smallest number of single precision."""
    points = np.asarray(target.start, np.float64)
    density = HostDensity(target, points[0], effort=1.0)
    assert far_out(density, points, Frame.of(points), target.names).improper == ""


def test_folder_opened_without_the_model_keeps_names(draws, tmp_path):
    from salmc.sampling.files.folder import write_run

    write_run(draws, tmp_path / "run", summary=draws.summary(hunt=False))
    run = salmc.open_run(tmp_path / "run")
    assert run.draws.target is None
    assert run.settings["names"] == list(draws.shown.names)
    assert run.draws.shown.names == draws.shown.names
    np.testing.assert_array_equal(run.draws.shown.values, draws.shown.values)
    again, first = run.draws.to_arviz(), draws.to_arviz()
    assert again.posterior.theta.dims == ("chain", "draw", "school")
    assert list(again.posterior.school.values) == SCHOOLS
    for group in ("observed_data", "log_likelihood", "posterior_predictive"):
        np.testing.assert_allclose(again[group].effect, first[group].effect)


class TestRefusals:
    def test_discrete_variables(self):
        def model():
            numpyro.sample("z", dist.Bernoulli(0.5))

        with pytest.raises(salmc.TargetError, match="discrete variables, z"):
            salmc.from_numpyro(model)

    def test_minibatches(self):
        def model():
            with numpyro.plate("n", 10, subsample_size=3):
                numpyro.sample("x", dist.Normal())

        with pytest.raises(salmc.TargetError, match="minibatches in the plate n"):
            salmc.from_numpyro(model)

    def test_data_that_are_nan(self):
        y = np.array([1.0, np.nan, 2.0])

        def model(mask):
            x = numpyro.sample("x", dist.Normal())
            with numpyro.handlers.mask(mask=mask):
                numpyro.sample("y", dist.Normal(x), obs=y)

        with pytest.raises(salmc.TargetError, match="data `y` of the model `model` have values"):
            salmc.from_numpyro(model, np.ones(3, bool))
        assert np.isfinite(
            salmc.from_numpyro(model, ~np.isnan(y)).log_density(jnp.zeros(1, dtype=float))
        )

    def test_nothing_to_sample(self):
        def model():
            numpyro.sample("x", dist.Normal(), obs=1.0)

        with pytest.raises(salmc.TargetError, match="no variable to sample"):
            salmc.from_numpyro(model)

    def test_a_model_that_fails(self):
        with pytest.raises(salmc.TargetError, match=r"`schools` does not run: TypeError"):
            salmc.from_numpyro(schools)

    def test_no_model(self):
        with pytest.raises(salmc.ArgumentError, match="`model` argument must be a function"):
            salmc.from_numpyro(3)

    @pytest.mark.parametrize(
        ("package", "function"), [("numpyro", "from_numpyro"), ("pymc", "from_pymc")]
    )
    def test_without_the_library(self, monkeypatch, package, function):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(salmc.MissingPackageError, match=rf'pip install "salmc\[{package}\]"'):
            getattr(salmc, function)(schools)


def test_labels_that_are_none_are_refused(target):
    with pytest.raises(salmc.ArgumentError, match="`dims` argument"):
        target.labelled(dims={"theta": "school"})
    with pytest.raises(salmc.ArgumentError, match="`coords` argument"):
        target.labelled(coords={"school": 3})


def test_improper_priors_and_factors():
    def model():
        x = numpyro.sample("x", dist.ImproperUniform(dist.constraints.real, (), ()))
        numpyro.factor("f", -0.5 * (x - 3.0) ** 2)

    target = salmc.from_numpyro(model)
    value = float(target.log_density(jnp.array([2.0]))) - float(
        target.log_density(jnp.array([3.0]))
    )
    assert value == pytest.approx(-0.5)
    assert (
        "observed_data"
        not in salmc.Draws(np.zeros((2, 4, 1), "f4"), None, 1.0, target=target).to_arviz()
    )


def test_data_without_a_plate_are_predicted_in_their_own_number():
    @numpyro.handlers.reparam(config={})
    def trend(y=None):
        rate = numpyro.sample("rate", dist.HalfNormal())
        numpyro.sample("y", dist.Poisson(rate), obs=y)
        numpyro.sample("pair", dist.Dirichlet(rate * jnp.ones(2)), obs=jnp.full((4, 2), 0.5))

    target = salmc.from_numpyro(trend, np.array([1, 2, 3]))
    assert target.name == "trend"
    tree = salmc.Draws(np.zeros((2, 600, 1), "f4"), None, 1.0, target=target).to_arviz()
    # At every draw: what weighs predictions by draws, such as loo_pit, wants one for each.
    assert tree.posterior_predictive.y.shape == (2, 600, 3)
    assert tree.posterior_predictive.pair.shape == (2, 600, 4, 2)
    assert len(np.unique(tree.posterior_predictive.pair)) > 2000


@pytest.mark.slow
def test_draws_agree_with_nuts():
    """Means and sds of θ and log τ: within 0.15 of a posterior sd, five standard errors of NUTS."""
    from numpyro.infer import MCMC, NUTS

    def model(sigma, y=None):
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfNormal(5))
        with numpyro.plate("school", len(sigma)):
            eta = numpyro.sample("eta", dist.Normal(0, 1))
            theta = numpyro.deterministic("theta", mu + tau * eta)
            numpyro.sample("effect", dist.Normal(theta, sigma), obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=1000, num_samples=4000, progress_bar=False)
    mcmc.run(jax.random.key(0), SIGMA, y=Y)
    nuts = mcmc.get_samples()
    sampler = salmc.fit(salmc.from_numpyro(model, SIGMA, y=Y), seed=0, progress=False)
    draws = sampler.sample(progress=False)
    assert draws.summary().verdict.trustworthy
    own = draws.to_arviz().posterior
    for name, change in (("theta", np.asarray), ("tau", np.log), ("mu", np.asarray)):
        ours, theirs = change(own[name].values), change(np.asarray(nuts[name]))
        ours = ours.reshape(-1, *ours.shape[2:])
        spread = theirs.std(axis=0)
        assert np.max(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / spread) < 0.15
        assert np.max(np.abs(ours.std(axis=0) / spread - 1)) < 0.15
