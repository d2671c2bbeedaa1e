"""The energy that is learned from values of log p, and what it does for kernels on (x, v)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from velocity_kernels import VelocityKernel, normal_pool

import salmc
from salmc.learning import al_mc, default_settings, sal_mc
from salmc.learning.learned_energy import Energy, Evaluated, energy_loss, evaluated
from salmc.learning.particles import Proposals, Slice


class StretchedTurn(VelocityKernel):
    """(x', v') = (e^θ v, −e^−θ x): of volume 1 for every θ, and accepted on N(0, I) at θ = 0."""

    name = "stretched"
    explanation = "a turn of (x, v) with a stretch"

    def push(self, points, noise):
        return jnp.exp(self.weight) * noise, -jnp.exp(-self.weight) * points


@pytest.fixture(scope="module")
def normal():
    return salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2), normal_pool()


class Indifferent(eqx.Module):
    """A critic of pairs that has nothing to say."""

    weight: jax.Array

    def __call__(self, pairs):
        return 0.0 * self.weight * pairs[:, 0]


@pytest.mark.parametrize("with_energy", [True, False])
def test_energy_and_velocity_together_are_least_where_all_is_accepted(normal, with_energy):
    """From a stretch on either side of 0, at which all is accepted, some steps lead towards it.

    Velocities alone are smaller the wider x' is: θ grows on both sides.
    """
    target, pool = normal
    settings = default_settings("nice", 2).replace(
        steps=4, pool_size=512, chunk=4, learning_rate=1e-2, energy=0.2 if with_energy else 0.0
    )
    options = {"settings": settings, "critic": Indifferent(jnp.zeros(())), "pool": pool}
    for start in (0.4, -0.4):
        kernel = StretchedTurn(jnp.array(start), 2)
        learned = sal_mc(target, kernel, progress=False, **options)
        assert (float(learned.kernel.weight) > start) == (start < 0.0 or not with_energy)
        assert ("energy" in learned.history) == with_energy


def test_a_kernel_that_is_named_begins_as_a_quarter_turn(normal):
    target, pool = normal
    settings = default_settings("nice", 2).replace(
        steps=4, pool_size=512, chunk=4, learning_rate=1e-6, leap=1, approach=0
    )
    learned = sal_mc(target, "nice", settings=settings, pool=pool, progress=False)
    # On N(0, I) all is accepted but for rounding; with first weights that are random, 0.71 is.
    assert learned.history["acceptance"][0] > 0.99


def test_it_is_learned_from_values():
    """U of two modes: after 400 steps within 0.3 in the mean, of a spread of about 1."""
    generator = np.random.default_rng(0)
    signs = generator.choice([-1.0, 1.0], 512)
    points = jnp.asarray(signs[:, None] * [1.0, 0.0] + 0.5 * generator.standard_normal((512, 2)))
    squares = [jnp.sum((points - jnp.array([s, 0.0])) ** 2, axis=1) for s in (-1.0, 1.0)]
    energies = -jax.nn.logsumexp(-2.0 * jnp.stack(squares), axis=0)
    given = Evaluated(points, energies, jnp.ones(512, dtype=bool))
    energy = Energy(jax.random.key(0), 2)
    weights, static = eqx.partition(energy, eqx.is_array)

    def error(energy):
        difference = energy(points) - energies
        return float(jnp.mean(jnp.abs(difference)))

    @jax.jit
    def descended(weights):
        def step(_, weights):
            slope = jax.grad(lambda weights: energy_loss(eqx.combine(weights, static), given))
            return jax.tree.map(lambda w, g: w - 0.05 * g, weights, slope(weights))

        return jax.lax.fori_loop(0, 400, step, weights)

    assert error(energy) > 0.5
    assert error(eqx.combine(descended(weights), static)) < 0.3


def test_what_a_step_has_evaluated():
    first = jnp.zeros((), dtype=int)
    real = Slice(jnp.zeros((3, 2)), jnp.array([-1.0, -2.0, -3.0]), first)
    points = jnp.array([[1.0, 1.0], [jnp.nan, 0.0], [2.0, 2.0]])
    proposals = Proposals(points, jnp.array([-102.0, jnp.nan, -jnp.inf]), jnp.zeros(3))
    found = evaluated(jnp.array(-2.0), real, proposals)
    assert found.known.tolist() == [True, True, True, True, False, True]
    assert bool(jnp.all(jnp.isfinite(found.points)))
    # U itself below the pool's mean; far above it by its logarithm, and finite where p is 0.
    np.testing.assert_allclose(found.energies[0], -1.0)
    np.testing.assert_allclose(found.energies[3], 10.0 * np.log(11.0), rtol=1e-6)
    np.testing.assert_allclose(found.energies[5], 10.0 * np.log(101.0), rtol=1e-6)


def test_samples_alone_have_no_energy():
    samples = np.random.default_rng(0).standard_normal((200, 2))
    settings = default_settings("nice", 2).replace(steps=2, chunk=2, leap=1, approach=0)
    learned = al_mc(samples, "nice", settings=settings, progress=False)
    assert learned.settings["energy"] == 0.0
    assert "energy" not in learned.history
