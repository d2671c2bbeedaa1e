"""PyMC's models as targets, held to PyMC's own functions."""

import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc

Y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
SIGMA = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
SCHOOLS = list("ABCDEFGH")

pymc = pytest.importorskip("pymc")
pytestmark = [
    pytest.mark.usefixtures("little_effort"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def model():
    with pymc.Model(coords={"school": SCHOOLS, "part": [1, 2, 3]}, name="") as made:
        sigma = pymc.Data("sigma", SIGMA, dims="school")
        width = pymc.Data("width", 5.0)
        mu = pymc.Normal("mu", 0, width)
        tau = pymc.HalfCauchy("tau", 5)
        eta = pymc.Normal("eta", 0, 1, dims="school")
        theta = pymc.Deterministic("theta", mu + tau * eta, dims="school")
        pymc.Dirichlet("weights", np.ones(3), dims="part")
        pymc.Normal("effect", theta, sigma, observed=Y, dims="school")
    return made


@pytest.fixture(scope="module")
def target(model):
    return salmc.from_pymc(model)


@pytest.fixture(scope="module")
def draws(target):
    positions = np.random.default_rng(0).normal(size=(2, 30, target.dim)).astype("f4")
    return salmc.Draws(positions, None, 1.0, target=target).evaluated()


def _point(model, x):
    """PyMC's point of a vector, whose parts are in the order of their names."""
    point, done = {}, 0
    initial = model.initial_point()
    for name in sorted(initial):
        size = np.size(initial[name])
        point[name] = np.asarray(x[done : done + size], float).reshape(np.shape(initial[name]))
        done += size
    return point


def test_the_density_is_pymcs(model, target, draws):
    logp = model.compile_logp()
    for x, value in zip(draws.positions[0, :5], draws.log_density[0, :5], strict=True):
        assert float(value) == pytest.approx(float(logp(_point(model, x))), rel=1e-5)


def test_the_variables_are_pymcs(model, target, draws):
    variables = model.unobserved_value_vars
    with model:
        function = model.compile_fn(variables)
    x = draws.positions[0, 0]
    expected = dict(zip([v.name for v in variables], function(_point(model, x)), strict=True))
    own = target.constrain(jnp.asarray(x))
    assert set(own) == {"mu", "eta", "tau", "weights", "theta"}
    for name, value in own.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-5)


def test_gradients_exist(target, draws):
    assert np.all(np.isfinite(target.gradients(jnp.asarray(draws.positions[0, :3]))))


def test_the_precision_of_the_process_is_left_alone(target):
    assert not jax.config.read("jax_enable_x64")


def test_the_tree_reads_like_a_run_of_pymc(model, draws):
    tree = draws.to_arviz()
    assert tree.posterior.theta.dims == ("chain", "draw", "school")
    assert list(tree.posterior.school.values) == SCHOOLS
    assert tree.posterior.weights.dims[2:] == ("part",)
    np.testing.assert_allclose(tree.observed_data.effect, Y)
    np.testing.assert_allclose(tree.constant_data.sigma, SIGMA)
    theta = tree.posterior.theta.values
    expected = -0.5 * ((Y - theta) / SIGMA) ** 2 - np.log(SIGMA) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(tree.log_likelihood.effect, expected, rtol=1e-4)


def test_predicted_data_follow_the_draws(draws):
    """E[y | θ] = θ, though data and axes of the model could be changed: z has mean 0 and sd 1."""
    tree = draws.to_arviz()
    z = (tree.posterior_predictive.effect.values - tree.posterior.theta.values) / SIGMA
    assert abs(z.mean()) < 4 / np.sqrt(z.size)
    assert 0.85 < z.std() < 1.15


def test_names_in_the_summary(draws):
    names = draws.shown.names
    assert {"mu", "tau", "theta[A]", "weights[3]"} <= set(names)
    assert not any("__" in name for name in names)


def test_inference_data_for_arviz_before_1(draws):
    az = pytest.importorskip("arviz")
    if not az.__version__.startswith("0."):
        pytest.skip("ArviZ 1 takes the tree as it is")
    found = draws.to_inference_data()
    assert set(found.groups()) >= {"posterior", "log_likelihood", "observed_data"}
    assert found.posterior.theta.dims == ("chain", "draw", "school")


@pytest.mark.slow
def test_arviz_before_1_takes_it_as_it_takes_pymcs_own(draws):
    az = pytest.importorskip("arviz")
    if not az.__version__.startswith("0."):
        pytest.skip("ArviZ 1 takes the tree as it is")
    found = draws.to_inference_data()
    assert np.isfinite(az.loo(found).elpd_loo)
    labels = az.plot_forest(found, var_names=["theta"])[0].get_yticklabels()
    assert any("A" in label.get_text() for label in labels)
    az.plot_ppc(found, num_pp_samples=5)
    assert "theta[A]" in az.summary(found, kind="stats").index


def test_without_arviz_a_sentence_says_what_to_do(draws, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(salmc.MissingPackageError, match="ArviZ 1 takes"):
        draws.to_inference_data()
    # ArviZ 1 has the name still, of a tree.
    later = types.SimpleNamespace(__version__="1.3.0", InferenceData=dict)
    monkeypatch.setitem(sys.modules, "arviz", later)
    with pytest.raises(salmc.MissingPackageError, match="ArviZ 1 takes"):
        draws.to_inference_data()


def test_discrete_variables_are_refused():
    with pymc.Model() as model:
        pymc.Poisson("count", 3.0)
    with pytest.raises(salmc.TargetError, match="discrete variables, count"):
        salmc.from_pymc(model)


def test_no_model():
    with pytest.raises(salmc.ArgumentError, match="`model` argument must be a PyMC model"):
        salmc.from_pymc(lambda: None)


@pytest.mark.slow
def test_draws_agree_with_nuts(model, target):
    """Within 0.15 of a posterior sd, five standard errors of NUTS."""
    with model:
        nuts = pymc.sample(2000, tune=1000, chains=2, cores=1, random_seed=0, progressbar=False)
    draws = salmc.fit(target, seed=0, progress=False).sample(progress=False)
    own = draws.to_arviz().posterior
    for name, change in (("theta", np.asarray), ("tau", np.log), ("weights", np.asarray)):
        ours, theirs = (change(tree[name].values) for tree in (own, nuts.posterior))
        ours, theirs = (v.reshape(-1, *v.shape[2:]) for v in (ours, theirs))
        spread = theirs.std(axis=0)
        assert np.max(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / spread) < 0.15
        assert np.max(np.abs(ours.std(axis=0) / spread - 1)) < 0.15
