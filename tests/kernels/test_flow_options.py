"""Options of the flow kernel: what they give, which are refused, and tails."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError
from salmc.kernels import FlowKernel
from salmc.kernels.layers import lighten, make_heavy


def test_the_same_key_gives_the_same_weights():
    first, again, other = (FlowKernel(jax.random.key(seed), 2) for seed in (0, 0, 1))
    assert eqx.tree_equal(first, again)
    assert not eqx.tree_equal(first, other)


def test_knots_follow_the_dimension():
    found = [FlowKernel(jax.random.key(0), dim).knots for dim in (1, 2, 5, 10, 25)]
    assert found == [16, 16, 16, 8, 6]


@pytest.mark.parametrize(
    "options",
    [{"layers": 0}, {"width": 0}, {"knots": 1}, {"knots": 1000}, {"interval": 0.0}, {"depth": 0}],
)
def test_bad_options_are_met_at_the_door(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        FlowKernel(jax.random.key(0), 2, **options)


def test_tails_are_those_of_students_t():
    """u of `lighten` has exp(−u²/2) = (1 + κ z²)^(−1/2κ), and the way back is the inverse."""
    points = jnp.array([[0.0, 1e-3, 0.5, 3.0, 40.0], [0.1, -2.0, 0.0, 7.0, -1e3]])
    heaviness = jnp.array([0.3, 1.0, 1e-9])
    light, log_scale = lighten(points, heaviness)
    for row, kappa in ((0, 0.3), (1, 1.0)):
        expected = np.sqrt(np.log1p(kappa * np.asarray(points[row], np.float64) ** 2) / kappa)
        np.testing.assert_allclose(np.abs(light[row]), expected, rtol=1e-5, atol=1e-7)
    back, inverse = make_heavy(light, heaviness)
    np.testing.assert_allclose(back, points, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(log_scale, -inverse, rtol=1e-4, atol=1e-4)


def test_files_from_before_there_were_tails_have_none():
    description = FlowKernel(jax.random.key(0), 2).description()
    del description["tails"]
    assert FlowKernel.from_description(description).tails is None
