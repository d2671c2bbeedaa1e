"""Whatever `salmc.sample` ended in runs in BlackJAX's loops: a mixture, trajectories, a flow.

Each on one law, x₀ = log of a Gamma(3) and x₁ ~ N(x₀, 1), in bent coordinates, and with x₀ given by
its exponential and a bound: positions are the user's, in BlackJAX's runner and in turn with NUTS.
"""

import dataclasses

import blackjax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.util import run_inference_algorithm
from scipy import stats

import salmc
from salmc.kernels import FlowKernel, Whitening
from salmc.kernels.mixture import MixtureKernel
from salmc.sampling.sampler import Sampler
from salmc.sampling.trajectories import Trajectory

CHAINS, STEPS = 2000, 8


def log_density(x):
    """Of (e^x₀, x₁)."""
    return 2.0 * jnp.log(x[0]) - x[0] - 0.5 * (x[1] - jnp.log(x[0])) ** 2


TARGET = salmc.Target(log_density, dim=2, bounds=[(0, None), (None, None)])


def exact(seed, count):
    generator = np.random.default_rng(seed)
    first = generator.gamma(3.0, size=count)
    return np.stack([first, np.log(first) + generator.normal(size=count)], axis=1)


def sampler(way):
    """As `sample` binds it; kernels are rough, as exactness must not depend on them."""
    inner = TARGET.unbounded
    inside = inner.inward(jnp.asarray(exact(0, 500), dtype=float))
    kernel = MixtureKernel(jax.random.key(0), 2, components=2)
    if way == "flow":
        kernel = FlowKernel(jax.random.key(0), 2, layers=1, width=4, knots=4, radial_knots=4)
    made = Sampler(kernel, inner, Whitening.fit(inside), exact(1, 4000), method=way, local=1)
    if way == "gradient":
        far = eqx.tree_at(lambda kernel: kernel.means, kernel, jnp.full((2, 2), 1e4))
        moves = Trajectory(jnp.asarray(1.2), jnp.asarray(3))
        made = dataclasses.replace(made, kernel=far, trajectory=moves)
    return made


def check(positions, where):
    """From exact draws, after some steps of many chains: Kolmogorov-Smirnov, p > 1e-3."""
    assert np.mean(np.any(positions != where, axis=1)) > 0.9
    assert stats.kstest(positions[:, 0], stats.gamma(3.0).cdf).pvalue > 1e-3
    rest = positions[:, 1] - np.log(positions[:, 0])
    assert stats.kstest(rest, stats.norm.cdf).pvalue > 1e-3


SLOW = [pytest.param(way, marks=pytest.mark.slow) for way in ("mixture", "flow")]


@pytest.mark.parametrize("way", ["gradient", *SLOW])
def test_in_blackjaxs_runner_and_in_turn_with_nuts(way):
    ours = sampler(way).as_blackjax()
    # NUTS knows of no bounds: it moves in log x₀, with the Jacobian.
    nuts = blackjax.nuts(
        lambda y: log_density(jnp.array([jnp.exp(y[0]), y[1]])) + y[0],
        step_size=0.5,
        inverse_mass_matrix=jnp.ones(2),
        max_num_doublings=3,
    )
    where = exact(2, CHAINS).astype("f4")

    def alone(key, position):
        _, found = run_inference_algorithm(
            rng_key=key,
            inference_algorithm=ours,
            num_steps=STEPS,
            initial_position=position,
            transform=lambda state, info: (state.position, state.logdensity, info.is_accepted),
        )
        return found

    def both(position, key):
        first, second = jax.random.split(key)
        state, _ = ours.step(first, ours.init(position))
        inside = jnp.array([jnp.log(state.position[0]), state.position[1]])
        local, _ = nuts.step(second, nuts.init(inside))
        position = jnp.array([jnp.exp(local.position[0]), local.position[1]])
        return position, position

    def in_turn(key, position):
        return jax.lax.scan(both, position, jax.random.split(key, STEPS))[1]

    keys = jax.random.split(jax.random.key(3), CHAINS)
    positions, values, accepted = jax.jit(jax.vmap(alone))(keys, where)
    assert accepted.shape == (CHAINS, STEPS)
    assert 0.05 < float(accepted.mean()) < 1.0
    expected = jax.vmap(log_density)(positions[:, -1])
    np.testing.assert_allclose(values[:, -1], expected, rtol=1e-4, atol=1e-3)
    check(np.asarray(positions[:, -1]), where)
    check(np.asarray(jax.jit(jax.vmap(in_turn))(keys, where)[:, -1]), where)
