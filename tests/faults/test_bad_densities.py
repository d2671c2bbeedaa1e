"""Densities that no draws can be had from, in dimensions in which gradients are followed."""

import jax.numpy as jnp
import pytest

import salmc


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
