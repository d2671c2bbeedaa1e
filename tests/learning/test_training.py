"""Learning from end to end on small problems."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.errors import ArgumentError, TargetError
from salmc.kernels import FlowKernel, MLPKernel
from salmc.learning import al_mc, default_settings, sal_mc
from salmc.learning.validation import mmd_squared
from salmc.progress import AbstractReporter
from salmc.target import Target


def _weights(learned):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(learned.kernel)])


class Listener(AbstractReporter):
    def __init__(self):
        self.steps, self.figures, self.stopped = 0, {}, False

    def start(self, description, total):
        self.description, self.total = description, total

    def advance(self, steps, **figures):
        self.steps += steps
        self.figures = figures

    def stop(self):
        self.stopped = True


def test_flow_learns_two_modes_and_tells_of_its_progress(two_modes, flow, flow_settings):
    settings = flow_settings.replace(steps=200, chunk=50)
    listener = Listener()
    learned = sal_mc(two_modes, flow, settings=settings, progress=listener)
    assert (listener.steps, listener.total, listener.stopped) == (200, 200, True)
    assert {"kernel_loss", "acceptance"} <= listener.figures.keys()
    assert listener.description == "learning flow on two-modes"
    assert learned.history["acceptance"][-1] > 0.7
    assert learned.history["step"] == [50.0, 100.0, 150.0, 200.0]
    assert not learned.warnings
    # mean 0, sd (2.062, 0.5), half the mass on each side. Sweeps at acceptance above 0.7
    # renewed the 512 particles, so count 400 as independent: five standard errors.
    error = 5 / np.sqrt(400)
    np.testing.assert_allclose(learned.pool.mean(axis=0), 0, atol=2.062 * error)
    np.testing.assert_allclose(learned.pool.std(axis=0), [2.062, 0.5], rtol=error)
    assert abs(np.mean(learned.pool[:, 0] > 0) - 0.5) < 0.5 * error
    np.testing.assert_allclose(
        learned.pool_log_density, two_modes.log_densities(jnp.asarray(learned.pool)), atol=1e-3
    )
    draws = learned.sample(16, 200, progress=False)
    assert np.mean(draws.accepted) > 0.7


def test_mlp_reduces_the_discrepancy(two_modes, mlp_settings):
    # Without components, which would begin where the pool is.
    mlp = MLPKernel(jax.random.key(0), 2, width=32, depth=2, components=0)
    settings = mlp_settings.replace(steps=400, chunk=100, mixture_every=150, learning_rate=3e-3)
    learned = sal_mc(two_modes, mlp, settings=settings, progress=False)

    def discrepancy(kernel):
        start = jax.random.normal(jax.random.key(1), (1000, 2))
        outputs = start
        for seed in (2, 3):
            noise = jax.random.normal(jax.random.key(seed), (1000, kernel.noise_dim))
            outputs = kernel.propose(outputs, noise).points
        exact = np.random.default_rng(0).normal(size=(1000, 2)) * 0.5
        exact[::2, 0] -= 2.0
        exact[1::2, 0] += 2.0
        return float(mmd_squared(outputs, learned.whitening.whiten(jnp.asarray(exact))))

    # An untrained kernel is a Gaussian; 0.3 of its discrepancy is far outside noise (±0.003).
    assert discrepancy(learned.kernel) < 0.3 * discrepancy(mlp)
    assert {"critic_loss", "kernel_loss", "adversarial", "figure"} <= learned.history.keys()
    # Calibration: the chain has the pool's mean and covariance.
    assert not np.allclose(learned.kernel.calibration_matrix, np.eye(2))


def test_the_literal_scheme_runs(two_modes, mlp, mlp_settings):
    settings = mlp_settings.replace(
        refresh=1.0,
        pool_move="mover",
        pool_size=64,
        batch=64,
        adversarial_form="logistic",
        critic_steps=2,
        extra_transitions=2,
        wasserstein=0.1,
        steps=20,
        mover_steps=50,
    )
    learned = sal_mc(two_modes, mlp, mover="ag-svgd", settings=settings, progress=False)
    assert learned.pool.shape == (64, 2)
    assert np.all(np.isfinite(learned.pool))
    assert np.all(np.isfinite(_weights(learned)))


def test_refresh_by_outputs(two_modes, mlp, mlp_settings):
    settings = mlp_settings.replace(refresh=0.2, refresh_end=0.5, steps=40)
    learned = sal_mc(two_modes, mlp, settings=settings, progress=False)
    assert np.all(np.isfinite(learned.pool_log_density))


def test_every_term_at_once_on_a_conditional_flow(two_modes, flow_settings):
    sizes = {"layers": 2, "width": 16, "knots": 4, "radial_knots": 4}
    kernel = FlowKernel(jax.random.key(0), 2, **sizes, conditional=True)
    settings = flow_settings.replace(
        adversarial=0.5, wasserstein=0.1, decorrelation=0.1, steps=40, regression_start=0.0
    )
    learned = sal_mc(two_modes, kernel, settings=settings, progress=False)
    terms = {"adversarial", "wasserstein", "decorrelation", "likelihood", "regression"}
    assert terms | {"acceptance", "critic_loss"} <= learned.history.keys()
    assert all(np.all(np.isfinite(learned.history[name])) for name in terms)


def test_given_samples(flow, mlp, mlp_settings):
    generator = np.random.default_rng(0)
    samples = 3.0 + generator.normal(size=(200, 2)) * [2.0, 0.1]
    learned = al_mc(samples, mlp, settings=mlp_settings, progress=False)
    assert learned.target is None
    assert len(learned.pool) == 180
    assert np.all(np.any(np.isclose(learned.pool[:5, None], samples, atol=1e-4), axis=1))
    learned = al_mc(
        samples,
        flow,
        settings=default_settings("flow", 2).replace(steps=40, batch=64, chunk=20),
        progress=False,
    )
    # A Gaussian in whitened coordinates: −E log q ≥ 1 + log 2π = 2.84. Over the 20 samples that are
    # held out, −log q of sd 1 has a mean with a standard error of 0.22: five of them.
    assert learned.history["figure"][-1] == pytest.approx(2.84, abs=5 / np.sqrt(20))
    draws = learned.sample(8, 100, progress=False)
    # The means of 180 samples of sd 2 and of 800 draws from what they taught: five standard errors.
    error = 5 * np.array([2.0, 0.1]) * np.sqrt(1 / 180 + 1 / 800)
    # … and a tenth of an sd for a kernel that has trained for 40 steps.
    assert np.all(np.abs(draws.positions.mean(axis=(0, 1)) - 3) < error + np.array([0.2, 0.01]))


@pytest.mark.parametrize("samples", [np.zeros((3, 2)), np.zeros(50), np.full((50, 2), np.nan), "a"])
def test_bad_samples(samples):
    with pytest.raises(ArgumentError, match="samples"):
        al_mc(samples, "mlp", progress=False)


def test_black_box_with_a_region_of_nan(flow, flow_settings):
    def half_normal(points):
        return np.where(points[:, 0] < 5, np.nan, -0.5 * np.sum((points - 5.0) ** 2, axis=1))

    learned = sal_mc(
        Target.from_numpy(half_normal, 2), flow, settings=flow_settings, progress=False
    )
    assert np.min(learned.pool[:, 0]) >= 5
    # E|N(0, 1)| = 0.80. Half of the 512 particles count as independent: five standard errors.
    np.testing.assert_allclose(learned.pool.mean(axis=0), [5.8, 5.0], atol=5 / np.sqrt(256))
    assert learned.history["acceptance"][-1] > 0.5
    assert np.all(np.isfinite(_weights(learned)))
    assert np.all(np.isfinite(learned.history["kernel_loss"]))


def test_target_that_fails_at_once(flow, flow_settings):
    def broken(points):
        raise RuntimeError("no licence")

    with pytest.raises((TargetError, jax.errors.JaxRuntimeError), match="no licence"):
        sal_mc(Target.from_numpy(broken, 2), flow, settings=flow_settings, progress=False)
