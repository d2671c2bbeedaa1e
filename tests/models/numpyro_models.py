"""Models that people have, in NumPyro: functions, their data, and what NUTS runs in their place."""

import jax.numpy as jnp
import model_data as data
import numpyro
import numpyro.distributions as dist


def schools():
    """Centred: NUTS runs the non-centred form, of the same posterior."""
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", 8):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("effect", dist.Normal(theta, data.SIGMA), obs=data.EFFECT)


def schools_for_nuts():
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", 8):
        eta = numpyro.sample("eta", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * eta)
        numpyro.sample("effect", dist.Normal(theta, data.SIGMA), obs=data.EFFECT)


def regression():
    """A slope for each group, around a common one; positive scales."""
    between = numpyro.sample("between", dist.HalfNormal(1))
    common = numpyro.sample("common", dist.Normal(0, 2))
    noise = numpyro.sample("noise", dist.Exponential(1))
    with numpyro.plate("group", data.GROUPS):
        slope = numpyro.sample("slope", dist.Normal(common, between))
    mean = slope[data.GROUP] * data.X
    with numpyro.plate("observation", len(data.X)):
        numpyro.sample("y", dist.Normal(mean, noise), obs=data.Y)


def simplex_and_correlation():
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    numpyro.sample("counts", dist.Multinomial(total_count=30, probs=shares), obs=data.COUNTS)
    scales = numpyro.sample("scales", dist.Exponential(1).expand([3]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(3, 2.0))
    numpyro.deterministic("correlation", factor @ factor.T)
    with numpyro.plate("row", len(data.ROWS)):
        scaled = scales[:, None] * factor
        numpyro.sample("rows", dist.MultivariateNormal(0.0, scale_tril=scaled), obs=data.ROWS)


def mixture():
    """Two components whose labels may be exchanged: two modes of the same weight."""
    shares = numpyro.sample("shares", dist.Dirichlet(2.0 * jnp.ones(2)))
    with numpyro.plate("component", 2):
        centre = numpyro.sample("centre", dist.Normal(0, 5))
        width = numpyro.sample("width", dist.LogNormal(0, 0.5))
    parts = dist.MixtureSameFamily(dist.Categorical(shares), dist.Normal(centre, width))
    with numpyro.plate("observation", len(data.MIXED)):
        numpyro.sample("y", parts, obs=data.MIXED)


def gaussian_process():
    length = numpyro.sample("length", dist.InverseGamma(3, 3))
    height = numpyro.sample("height", dist.HalfNormal(2))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    distance = data.TIMES[:, None] - data.TIMES
    covariance = height**2 * jnp.exp(-0.5 * (distance / length) ** 2)
    covariance += (noise**2 + 1e-4) * jnp.eye(len(data.TIMES))
    mean = jnp.zeros(len(data.TIMES))
    numpyro.sample("y", dist.MultivariateNormal(mean, covariance), obs=data.CURVE)
