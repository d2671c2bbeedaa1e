"""The same models in PyMC."""

import model_data as data
import numpy as np
import pymc as pm

SCHOOLS = {"school": list("ABCDEFGH")}


def schools():
    """Centred: NUTS runs the non-centred form, of the same posterior."""
    with pm.Model(coords=SCHOOLS) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        theta = pm.Normal("theta", mu, tau, dims="school")
        pm.Normal("effect", theta, data.SIGMA, observed=data.EFFECT, dims="school")
    return model


def schools_for_nuts():
    with pm.Model(coords=SCHOOLS) as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfCauchy("tau", 5)
        eta = pm.Normal("eta", 0, 1, dims="school")
        theta = pm.Deterministic("theta", mu + tau * eta, dims="school")
        pm.Normal("effect", theta, data.SIGMA, observed=data.EFFECT, dims="school")
    return model


def regression():
    with pm.Model(coords={"group": np.arange(data.GROUPS)}) as model:
        between = pm.HalfNormal("between", 1)
        common = pm.Normal("common", 0, 2)
        noise = pm.Exponential("noise", 1)
        slope = pm.Normal("slope", common, between, dims="group")
        pm.Normal("y", slope[data.GROUP] * data.X, noise, observed=data.Y)
    return model


def simplex_and_correlation():
    with pm.Model() as model:
        shares = pm.Dirichlet("shares", np.ones(3))
        pm.Multinomial("counts", 30, shares, observed=data.COUNTS)
        factor, _, _ = pm.LKJCholeskyCov("factor", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
        pm.MvNormal("rows", np.zeros(3), chol=factor, observed=data.ROWS)
    return model


def mixture():
    with pm.Model(coords={"component": [0, 1]}) as model:
        shares = pm.Dirichlet("shares", 2.0 * np.ones(2), dims="component")
        centre = pm.Normal("centre", 0, 5, dims="component")
        width = pm.LogNormal("width", 0, 0.5, dims="component")
        pm.NormalMixture("y", shares, centre, sigma=width, observed=data.MIXED)
    return model


def gaussian_process():
    with pm.Model() as model:
        length = pm.InverseGamma("length", 3, 3)
        height = pm.HalfNormal("height", 2)
        noise = pm.HalfNormal("noise", 1)
        process = pm.gp.Marginal(cov_func=height**2 * pm.gp.cov.ExpQuad(1, length))
        process.marginal_likelihood("y", data.TIMES[:, None], data.CURVE, noise, jitter=1e-4)
    return model
