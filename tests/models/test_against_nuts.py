"""Models of both libraries, sampled by `salmc.sample` and by the library's own NUTS.

Of every number that both have, mean, sd and the 5 and 95 % quantiles are compared. Each has a
Monte Carlo error by ArviZ's estimators on either side; the difference must be within 5 of its
errors: for 300 comparisons, chance exceeds that once in 5,000 runs if errors are right, and errors
estimated from some hundred effective draws are right within a tenth.
"""

import jax
import numpy as np
import pytest
import xarray
from arviz_stats import mcse

import salmc

numpyro = pytest.importorskip("numpyro")
pymc = pytest.importorskip("pymc")

import numpyro_models  # noqa: E402
import pymc_models  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

NAMES = ("schools", "regression", "simplex_and_correlation", "mixture", "gaussian_process")
ERRORS = 5.0


def nuts_of_numpyro(model):
    from numpyro.infer import MCMC, NUTS, init_to_median

    kernel = NUTS(model, target_accept_prob=0.95, init_strategy=init_to_median)
    mcmc = MCMC(
        kernel,
        num_warmup=1000,
        num_samples=2500,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0))
    return {name: np.asarray(v) for name, v in mcmc.get_samples(group_by_chain=True).items()}


def nuts_of_pymc(model):
    with model:
        found = pymc.sample(
            2500, tune=1000, chains=4, cores=1, target_accept=0.95, random_seed=0, progressbar=False
        )
    return {name: np.asarray(values) for name, values in found.posterior.items()}


@pytest.mark.parametrize("library", ["numpyro", "pymc"])
@pytest.mark.parametrize("name", NAMES)
def test_draws_agree_with_nuts(library, name):
    models = {"numpyro": numpyro_models, "pymc": pymc_models}[library]
    model = getattr(models, name)
    other = getattr(models, f"{name}_for_nuts", model)
    if library == "numpyro":
        target, nuts = salmc.from_numpyro(model), nuts_of_numpyro(other)
    else:
        target, nuts = salmc.from_pymc(model()), nuts_of_pymc(other())
    draws = salmc.sample(target, effective=4000, progress=False)
    assert draws.summary().verdict.degree != "not trustworthy"
    ours = {name: np.asarray(v) for name, v in draws.to_arviz().posterior.items()}
    assert set(ours) <= set(nuts)
    if name == "mixture":
        _check_labels(ours["centre"])
        ours, nuts = _without_labels(ours), _without_labels(nuts)
    worst = max(
        (_largest_error(ours[name], nuts[name]), name) for name in ours if _moves(ours[name])
    )
    assert worst[0] < ERRORS, worst


def _check_labels(centre):
    """Either order of the two labels has one half of the draws, within four standard errors."""
    first = (centre[..., 0] < centre[..., 1]).astype(float)
    error = float(mcse(_array(first[..., None]), method="mean")["x"][0])
    assert abs(first.mean() - 0.5) < 4 * error
    assert error < 0.05


def _without_labels(values):
    """Components in the order of their centres."""
    order = np.argsort(values["centre"], axis=-1)
    return {name: np.take_along_axis(values[name], order, axis=-1) for name in values}


def _moves(values):
    return np.any(np.ptp(values, axis=(0, 1)) > 1e-6)


def _largest_error(ours, theirs):
    """Difference of mean, sd and two quantiles of all numbers, in its own standard error."""
    found = [_figures(_array(values.reshape(*values.shape[:2], -1))) for values in (ours, theirs)]
    (first, first_error), (second, second_error) = found
    error = np.sqrt(first_error**2 + second_error**2)
    moving = np.all(error > 1e-9, axis=0)  # the corner of a correlation matrix does not
    return float(np.max(np.abs(first - second)[:, moving] / error[:, moving]))


def _figures(values):
    """(figure, number) each: mean, sd, and quantiles of 5 and 95 %; and their errors."""
    figures = [values.mean(("chain", "draw"))["x"], values.std(("chain", "draw"))["x"]]
    errors = [mcse(values, method=method)["x"] for method in ("mean", "sd")]
    for prob in (0.05, 0.95):
        figures.append(values.quantile(prob, ("chain", "draw"))["x"])
        errors.append(mcse(values, method="quantile", prob=prob)["x"])
    return np.asarray(figures, float), np.asarray(errors, float)


def _array(values):
    return xarray.Dataset({"x": (("chain", "draw", "number"), np.asarray(values, float))})
