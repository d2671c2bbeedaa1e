"""Densities that no draws can be had from, in dimensions in which gradients are followed."""

import jax.numpy as jnp
import pytest

import salmc


@pytest.mark.parametrize(
    ("log_density", "told"),
    [
        (lambda x: jnp.sum(x**2), "does not integrate: far out it grows"),
        (lambda x: jnp.nan * jnp.sum(x), "NaN at all"),
        (lambda x: x, "must return a scalar"),
    ],
    ids=["wrong sign", "NaN", "vector"],
)
def test_sample_says_in_one_sentence_what_is_wrong(log_density, told):
    with pytest.raises(salmc.TargetError, match=told) as caught:
        salmc.sample(salmc.Target(log_density, 5), effective=500, progress=False)
    assert "\n" not in str(caught.value)
