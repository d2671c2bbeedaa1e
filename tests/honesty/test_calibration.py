"""Exactness under test: simulation-based calibration, and a joint test of the SGLD family.

Calibration (Talts et al. 2018): θ* ~ prior, y ~ p(y | θ*), draws of p(θ | y). The rank of θ* among
L independent draws is uniform on 0 … L. Ends of L chains of their own are independent draws. Ranks
of all data sets are compared with the uniform law by χ² at the level 10⁻³; a kernel that is wrong
about its own density fails by far.

Joint test (Geweke 2004): θ moves given y, y is drawn given θ, over and over. If the moves leave
p(θ | y) invariant, θ follows its prior. Methods without a Metropolis step are biased by about their
step size, so the bound that is stated is one on the bias.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from salmc.kernels import Whitening
from salmc.movers import SGHMC, SGLD, SGNHT
from salmc.sampling.chains import Transition
from salmc.target import AbstractTarget
from simple_kernels import Autoregressive, Claiming

SETS, CHAINS, STEPS = 400, 15, 100


class NormalMean(AbstractTarget):
    """θ ~ N(0, 1) twice, y = θ₀ + e^{θ₁/2} times normal numbers."""

    data: jax.Array
    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="normal-mean")

    def log_density(self, x):
        residuals = (self.data - x[0]) * jnp.exp(-0.5 * x[1])
        count = len(self.data)
        return -0.5 * (jnp.sum(x**2) + jnp.sum(residuals**2) + count * x[1])

    @staticmethod
    def simulate(key, x):
        return x[0] + jnp.exp(0.5 * x[1]) * jax.random.normal(key, (6,))


class Counts(AbstractTarget):
    """θ ~ N(0, 1) twice, counts of Poisson with the rates e^θ₀ and e^{θ₀ + θ₁}."""

    data: jax.Array
    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="counts")

    def log_density(self, x):
        logs = jnp.array([x[0], x[0], x[0] + x[1], x[0] + x[1]])
        return -0.5 * jnp.sum(x**2) + jnp.sum(self.data * logs - jnp.exp(logs))

    @staticmethod
    def simulate(key, x):
        rates = jnp.exp(jnp.array([x[0], x[0], x[0] + x[1], x[0] + x[1]]))
        return jax.random.poisson(key, rates).astype(x.dtype)


def ranks(model, kernel, seed=0):
    """(data set, coordinate) of the rank of the truth among the ends of the chains."""
    whitening = Whitening.identity(2)

    def one(key):
        truth_key, data_key, start_key, move_key = jax.random.split(key, 4)
        truth = jax.random.normal(truth_key, (2,))
        transition = Transition(kernel, whitening, model(model.simulate(data_key, truth)))

        def chain(start, key):
            keys = jax.random.split(key, STEPS)
            return jax.lax.scan(lambda s, k: transition.step(k, s), transition.init(start), keys)[
                1
            ].position[-1]

        starts = jax.random.normal(start_key, (CHAINS, 2))
        ends = jax.vmap(chain)(starts, jax.random.split(move_key, CHAINS))
        return jnp.sum(ends < truth, axis=0)

    return np.asarray(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(seed), SETS)))


def p_value(found):
    counts = np.stack([np.bincount(column, minlength=CHAINS + 1) for column in found.T])
    return min(1.0, len(counts) * min(stats.chisquare(row).pvalue for row in counts))


@pytest.mark.parametrize("model", [NormalMean, Counts])
def test_exact_chains_are_calibrated(model):
    assert p_value(ranks(model, Autoregressive(2, pull=0.5, scale=0.7))) > 1e-3


def test_a_kernel_that_is_wrong_about_its_density_is_not():
    wrong = Claiming(Autoregressive(2, pull=0.5, scale=0.7), -2.0)
    assert p_value(ranks(NormalMean, wrong)) < 1e-6


class Joint(AbstractTarget):
    """θ ~ N(0, 1), y ~ N(θ, 1): the posterior of θ, with y carried along as a second coordinate."""

    dim: int = eqx.field(static=True, default=2)
    name: str = eqx.field(static=True, default="joint")

    def log_density(self, x):
        return -0.5 * (x[0] ** 2 + (jax.lax.stop_gradient(x[1]) - x[0]) ** 2)


BOUND = 0.05
"""On the bias of the mean, in sd, and of the sd of θ, relative. Chance: 6000 particles, 4 standard
errors are 0.05 and 0.04."""


def spread_after(mover):
    """Mean and sd of θ after 200 rounds of three steps, from the joint law on."""
    first, second, third = jax.random.split(jax.random.key(3), 3)
    theta = jax.random.normal(first, (6000,))
    particles = jnp.stack([theta, theta + jax.random.normal(second, (6000,))], axis=1)

    def one_round(state, key):
        *move_keys, data_key = jax.random.split(key, 4)
        for move_key in move_keys:
            data = state.particles[:, 1]
            state, _ = mover.step(move_key, state)
            # The moves are of θ alone.
            kept = state.particles.at[:, 1].set(data)
            state = eqx.tree_at(lambda s: s.particles, state, kept)
        data = state.particles[:, 0] + jax.random.normal(data_key, (6000,))
        moved = state.particles.at[:, 1].set(data)
        return eqx.tree_at(lambda s: s.particles, state, moved), None

    keys = jax.random.split(third, 200)
    state, _ = jax.jit(lambda s: jax.lax.scan(one_round, s, keys))(mover.init(third, particles))
    theta = np.asarray(state.particles[:, 0])
    return theta.mean(), theta.std()


@pytest.mark.parametrize(
    "mover",
    [
        SGLD(Joint(), step_size=0.02, decay=0.0),
        SGHMC(Joint(), step_size=0.003, friction=0.2),
        SGNHT(Joint(), step_size=0.05),
    ],
    ids=lambda mover: mover.name,
)
def test_the_joint_law_of_the_sgld_family(mover):
    mean, sd = spread_after(mover)
    assert abs(mean) < BOUND
    assert abs(sd - 1.0) < BOUND


def test_a_step_that_is_too_large_shows():
    """Var = 1/(1 − ε) and more: at ε = 0.3 the sd is off by a fifth."""
    assert spread_after(SGLD(Joint(), step_size=0.3, decay=0.0))[1] > 1.0 + 2 * BOUND
