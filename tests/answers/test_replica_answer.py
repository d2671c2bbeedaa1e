"""Replicas that are tuned to a target: modes at their weights, and what they are no answer to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.answers.replicas import answer as module
from salmc.answers.replicas.annealing import PARTICLES, anneal, local_shape
from salmc.answers.replicas.answer import replica_answer
from salmc.answers.replicas.chains import ReplicaChains
from salmc.bounds import Unbounded
from salmc.progress import SilentReporter
from salmc.sampling.replicas import Rates

WELLS = 3


def wells(x):
    """Three double wells, of which the right side of each is heavier, and a normal coordinate."""
    each = -(x[:WELLS] ** 4) + 6.0 * x[:WELLS] ** 2 + 0.5 * x[:WELLS]
    return jnp.sum(each) - 0.5 * x[WELLS] ** 2


def right_share():
    grid = np.linspace(-4.0, 4.0, 8001)
    density = np.exp(-(grid**4) + 6.0 * grid**2 + 0.5 * grid - 9.0)
    return float(np.sum(density[grid > 0.0]) / np.sum(density))


TARGET = salmc.Target(wells, WELLS + 1, name="wells")


@pytest.fixture(scope="module")
def answer(reporter):
    return replica_answer(TARGET, 0, reporter)


def test_a_bar_of_rounds_ends_full(answer, reporter):
    assert reporter.left == 0


def test_wells_have_their_weights(answer):
    draws = answer.sampler.sample(chains=32, draws=2000, seed=1, progress=False)
    right = np.mean(draws.positions[..., :WELLS] > 0.0, axis=1)
    # Chains are independent of each other, whatever their draws are.
    error = np.std(right, axis=0, ddof=1) / np.sqrt(len(right))
    assert np.all(error < 0.02)
    assert np.all(np.abs(np.mean(right, axis=0) - right_share()) < 4.0 * error)
    assert 0.7 < answer.rate * draws.positions[..., 0].size / salmc_ess(draws) < 1.0 / 0.3


def salmc_ess(draws):
    from salmc.request.rounds import smallest_ess

    return smallest_ess(draws.positions)


def test_temperatures_lead_from_the_kernel_to_the_target(answer):
    betas = np.asarray(answer.sampler.ladder.betas)
    assert betas[0] == 1.0
    assert betas[-1] == 0.0
    assert np.all(np.diff(betas) < 0.0)
    assert answer.sampler.settings["temperatures"] == len(betas)


def test_a_mode_that_a_hunt_finds_makes_it_no_answer(monkeypatch):
    monkeypatch.setattr(module, "_lacks_a_mode", lambda *given: True)
    assert replica_answer(TARGET, 0, SilentReporter()) is None


def test_a_density_that_is_nowhere_positive_is_no_answer():
    nothing = salmc.Target(lambda x: jnp.sum(x) * 0.0 - jnp.inf, 2)
    assert module._covered(nothing, jax.random.key(0)) is None


def test_evidence_of_annealed_particles():
    """log ∫ p in white units: of N(0, 0.3² I) in two dimensions, log(2π 0.09)."""
    target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2) / 0.09, 2)
    kernel = module._gaussian(2, 1.0)
    rungs, evidence = anneal(target, salmc.kernels.Whitening.identity(2), kernel, jax.random.key(1))
    # A handful of temperatures, each of whose ratios errs by about 1/√(0.6 · 512).
    assert abs(evidence - np.log(2.0 * np.pi * 0.09)) < 4.0 * np.sqrt(len(rungs) / PARTICLES)
    assert rungs[-1].beta == 1.0
    assert np.std(rungs[-1].points) == pytest.approx(0.3, rel=0.15)


def test_shapes_are_those_of_one_mode():
    """Gradients of modes far apart know their widths and not their distance."""
    generator = np.random.default_rng(0)
    widths = np.array([0.1, 2.0])
    noise = generator.standard_normal((5000, 2))
    shape = local_shape(1.0, jnp.asarray(-noise / widths), jnp.zeros((5000, 2)))
    assert np.allclose(shape @ shape.T, np.diag(widths**2), rtol=0.1, atol=0.02)


def test_bounds_stay_where_they_are():
    inside = salmc.Target(lambda x: jnp.log(jnp.abs(jnp.sin(3.0 * x[0]))), 1, bounds=[(0.0, 3.0)])
    found = module._covered(inside.unbounded, jax.random.key(0))
    assert isinstance(inside.unbounded, Unbounded)
    there = np.asarray(inside.unbounded.outward(jnp.asarray(found), jnp.zeros(len(found)))[0])
    assert np.all((there > 0.0) & (there < 3.0))


def test_a_length_suits_the_temperature_that_is_slowest():
    """Hot replicas come as far as they can by two gradients; cold ones go twice as far by twice as
    many, and hold up all others."""

    class Told(ReplicaChains):
        def __init__(self):
            self.length = 2

        def walk(self, blocks):
            cold = np.array([1e-4, 3e-4, 1e-3]) * self.length**2
            return None, None, Rates(None, None, np.array([*cold, 2.0, 0.0]))

    chains = Told()
    chains.choose_length()
    assert chains.length == 64
