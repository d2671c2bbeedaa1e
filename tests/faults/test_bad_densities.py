"""Densities that no draws can be had from, in dimensions in which gradients are followed."""

import jax.numpy as jnp
import pytest

import salmc
from salmc.diagnostics.trial.tails import does_not_integrate


@pytest.mark.parametrize(
    ("log_density", "told"),
    [
        (lambda x: jnp.sum(x**2), "does not integrate: far out it grows"),
        (lambda x: 0.0 * jnp.sum(x), "does not integrate: far out it hardly falls"),
        (lambda x: -0.5 * jnp.sum(x[:3] ** 2), "hardly falls along x[34]"),
        (lambda x: jnp.nan * jnp.sum(x), "NaN at all"),
        (lambda x: x, "must return a scalar"),
    ],
    ids=["wrong sign", "constant", "flat direction", "NaN", "vector"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_sample_says_in_one_sentence_what_is_wrong(log_density, told):
    with pytest.raises(salmc.TargetError, match=told) as caught:
        salmc.sample(salmc.Target(log_density, 5), effective=500, progress=False)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "log_density",
    [
        lambda x: -0.5 * jnp.sum(((x - 1e7) / 1e6) ** 2),
        lambda x: -0.5 * jnp.sum(((x - 1e9) / 1e8) ** 2),
        lambda x: -0.5 * jnp.sum(x[:2] ** 2) - 0.5 * (x[2] / 1e8) ** 2,
        lambda x: -jnp.sum(jnp.log1p(x**2)),
        lambda x: -jnp.sum(x**4),
        lambda x: jnp.sum(2.0 * x - jnp.exp(x)),
    ],
    ids=["far", "further", "all but flat", "Cauchy", "overflow", "one tail of each kind"],
)
def test_what_integrates_is_not_refused_for_how_it_looks_from_the_origin(log_density):
    assert does_not_integrate(salmc.Target(log_density, 3)) is None
