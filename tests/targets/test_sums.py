"""Sums over many data lose no more digits than the result is rounded by."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.targets import sums


@pytest.fixture
def values():
    return np.random.default_rng(0).uniform(0.0, 1.0, 2_000_000).astype(np.float32)


def test_many_chunks_are_as_exact_as_one_sum(values, monkeypatch):
    """A thousand chunks of 1,000 each: added plainly, the error is some twenty spacings."""
    monkeypatch.setattr(sums, "MOST_AT_ONCE", 2000)
    summed = jax.jit(lambda data: sums.sum_over_chunks(lambda part: jnp.sum(part), data, 1))
    exact = np.sum(values, dtype=np.float64)
    assert abs(float(summed(jnp.asarray(values))) - exact) <= 2 * np.spacing(np.float32(exact))


def test_chunks_that_do_not_divide_the_data_miss_none(monkeypatch):
    monkeypatch.setattr(sums, "MOST_AT_ONCE", 21)
    data = jnp.arange(100.0)
    assert float(sums.sum_over_chunks(lambda part: jnp.sum(part), data, 3)) == 4950.0
