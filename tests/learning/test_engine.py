"""Chunks, rollback, early stop, Ctrl-C, and that nothing is compiled twice."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc.learning.engine as engine
import salmc.learning.objective as objective
from salmc.kernels import FlowKernel
from salmc.learning import sal_mc
from salmc.progress import SilentReporter


def _leaves(learned):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(learned.kernel)]


@pytest.mark.parametrize("kind", ["flow", "mlp"])
def test_chunks_do_not_change_the_result(request, two_modes, kind):
    kernel = request.getfixturevalue(kind)
    settings = request.getfixturevalue(f"{kind}_settings")
    runs = [
        sal_mc(two_modes, kernel, settings=settings.replace(chunk=chunk), progress=False)
        for chunk in (20, 7)
    ]
    for one, other in zip(_leaves(runs[0]), _leaves(runs[1]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(runs[0].pool, runs[1].pool)


def _spoil(monkeypatch, when):
    """Chunks for which `when(number)` come back with NaN weights."""
    calls = []
    original = engine.advance_chunk

    def spoiled(method, state, key, count, data=None):
        state, figures, skipped = original(method, state, key, count, data)
        if int(count):
            calls.append(float(state.rate))
            if when(len(calls)):
                weights = jnp.full_like(state.weights, jnp.nan)
                state = dataclasses.replace(state, weights=weights, average=weights)
        return state, figures, skipped

    monkeypatch.setattr(engine, "advance_chunk", spoiled)
    return calls


def test_rollback(two_modes, flow, flow_settings, monkeypatch):
    calls = _spoil(monkeypatch, lambda number: number == 2)
    learned = sal_mc(two_modes, flow, settings=flow_settings, progress=False)
    assert all(np.all(np.isfinite(leaf)) for leaf in _leaves(learned))
    assert learned.history["step"] == [20.0, 40.0, 60.0]
    np.testing.assert_allclose(calls, 3e-3 * np.array([1.0, 1.0, 0.5, 0.5]))
    assert len(learned.warnings) == 1
    assert "diverged between steps 20 and 40" in learned.warnings[0]


def test_training_that_always_diverges_ends(two_modes, flow, flow_settings, monkeypatch):
    _spoil(monkeypatch, lambda number: number > 1)
    learned = sal_mc(two_modes, flow, settings=flow_settings, progress=False)
    assert all(np.all(np.isfinite(leaf)) for leaf in _leaves(learned))
    assert learned.history["step"] == [20.0]
    assert "smaller learning rate" in learned.warnings[-1]


@pytest.fixture
def objective_with_nan(monkeypatch):
    """Losses that are NaN now and then; a list that grows with each trace."""
    traces, original = [], objective.kernel_objective

    def sometimes_nan(kernel, critic, batch, settings, weight):
        traces.append(1)
        loss, terms = original(kernel, critic, batch, settings, weight)
        # One in five, by digits of a particle that nothing else looks at.
        return jnp.where(jnp.abs(1e3 * batch.real[0, 0]) % 1.0 < 0.2, jnp.nan, loss), terms

    monkeypatch.setattr(objective, "kernel_objective", sometimes_nan)
    return traces


def test_bad_updates_are_left_out_and_nothing_is_traced_twice(
    two_modes, flow, flow_settings, objective_with_nan
):
    # A value of no other test: what is compiled with the broken loss must serve no other.
    settings = flow_settings.replace(huber=1.1)
    programs = engine.advance_chunk.kinds
    learned = sal_mc(two_modes, flow, settings=settings, progress=False)
    assert all(np.all(np.isfinite(leaf)) for leaf in _leaves(learned))
    assert "of 60 updates were not finite" in learned.warnings[0]
    assert np.all(np.isfinite(learned.history["kernel_loss"]))

    # Training runs what was compiled ahead of it.
    assert engine.advance_chunk.kinds == programs + 1

    # Other weights, seeds, lengths, rates and chunks share the trace.
    before = len(objective_with_nan)
    assert before >= 1
    other = FlowKernel(jax.random.key(1), 2, layers=2, width=32, knots=8, radial_knots=6)
    changed = settings.replace(steps=50, learning_rate=1e-3, chunk=15)
    sal_mc(two_modes, other, settings=changed, seed=1, progress=False)
    assert len(objective_with_nan) == before


def test_early_stop(two_modes, flow, flow_settings):
    settings = flow_settings.replace(patience=1, chunk=5, steps=59, learning_rate=1e-9)
    learned = sal_mc(two_modes, flow, settings=settings, progress=False)
    assert learned.history["step"][-1] < 59


def test_interruption_keeps_the_last_good_weights(two_modes, flow, flow_settings):
    class Impatient(SilentReporter):
        def advance(self, steps, **figures):
            self.done = getattr(self, "done", 0) + steps
            if self.done == 40:
                raise KeyboardInterrupt

    learned = sal_mc(two_modes, flow, settings=flow_settings, progress=Impatient())
    assert learned.history["step"] == [20.0, 40.0]
    assert "Interrupted at step 40 of 60" in learned.warnings[0]
