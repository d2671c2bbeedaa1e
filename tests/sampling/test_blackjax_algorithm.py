"""A trained kernel in BlackJAX's loops: its own runner, and one scan with NUTS."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.util import run_inference_algorithm

import salmc

MEAN, SD = np.array([1.0, -2.0]), np.array([0.5, 2.0])


def log_density(x):
    return -0.5 * jnp.sum(((x - MEAN) / SD) ** 2)


@pytest.fixture(scope="module")
def sampler():
    """An untrained flow is nearly N(0, I), which here is nearly the target, whitened."""
    sizes = {"layers": 1, "width": 4, "knots": 4, "radial_knots": 4}
    kernel = salmc.kernels.FlowKernel(jax.random.key(0), dim=2, **sizes)
    scale = 1.2 * np.diag(SD)
    whitening = salmc.kernels.Whitening(
        jnp.asarray(MEAN), jnp.asarray(np.linalg.inv(scale)), jnp.asarray(scale)
    )
    target = salmc.Target(log_density, 2)
    return salmc.Sampler(kernel, target, whitening, np.asarray(MEAN)[None])


def _check(positions, effective):
    """Means within four standard errors, of `effective` draws."""
    error = SD / np.sqrt(effective)
    assert np.all(np.abs(positions.mean(axis=0) - MEAN) < 4 * error)
    assert np.all(np.abs(positions.std(axis=0) / SD - 1) < 4 / np.sqrt(2 * effective))


def test_it_runs_in_blackjaxs_own_loop(sampler):
    algorithm = sampler.as_blackjax()
    final, (states, infos) = run_inference_algorithm(
        rng_key=jax.random.key(1),
        inference_algorithm=algorithm,
        num_steps=3000,
        initial_position=jnp.asarray(MEAN),
        transform=lambda state, info: (state, info),
    )
    assert infos.is_accepted.shape == (3000,)
    assert states.logdensity[-1] == final.logdensity
    np.testing.assert_allclose(
        states.logdensity[:50], jax.vmap(log_density)(states.position[:50]), atol=1e-4
    )
    # About two thirds of the proposals are taken: each draw is worth about a half.
    _check(np.asarray(states.position), 1500)


def test_it_alternates_with_nuts_in_one_scan(sampler):
    ours = sampler.as_blackjax()
    nuts = blackjax.nuts(log_density, step_size=0.5, inverse_mass_matrix=jnp.asarray(SD**2))

    def both(position, key):
        first, second = jax.random.split(key)
        state, info = ours.step(first, ours.init(position))
        local, _ = nuts.step(second, nuts.init(state.position))
        return local.position, (local.position, info.is_accepted)

    keys = jax.random.split(jax.random.key(2), 1500)
    _, (positions, accepted) = jax.lax.scan(both, jnp.asarray(MEAN), keys)
    assert 0.3 < float(accepted.mean()) < 1.0
    _check(np.asarray(positions), 1000)


def test_positions_are_the_users_where_there_are_bounds(sampler):
    target = salmc.Target(lambda x: -jnp.sum(x), 2, bounds=[(0, None), (0, None)])
    bounded = salmc.Sampler(
        sampler.kernel, target, salmc.kernels.Whitening.identity(2), np.ones((1, 2))
    )
    algorithm = bounded.as_blackjax()
    state = algorithm.init(jnp.array([0.5, 2.0]))
    np.testing.assert_allclose(state.position, [0.5, 2.0])
    assert float(state.logdensity) == pytest.approx(-2.5, abs=1e-5)
    for key in jax.random.split(jax.random.PRNGKey(0), 5):  # keys of the old kind, too
        state, _ = algorithm.step(key, state)
        assert jnp.all(state.position > 0)
        assert float(state.logdensity) == pytest.approx(-float(state.position.sum()), rel=1e-4)
