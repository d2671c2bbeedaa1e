"""Densities whose programs must not meet: LAPACK calls, FFTs and sorts end, on any number of cores.

Each runs in a process of its own with so many threads for XLA, under a time limit: a hang cannot be
caught from within.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np, salmc
from salmc.kernels import FlowKernel, Whitening

GRID = jnp.arange(6.0)


def covariance(x):
    distance = (GRID[:, None] - GRID) ** 2
    return jnp.exp(2 * x[1] - 0.5 * distance / jnp.exp(2 * x[0])) + 0.1 * jnp.eye(6)


def cholesky(x):
    return -0.5 * jnp.sum(x**2) - 0.05 * jnp.sum((jnp.linalg.cholesky(covariance(x)) @ x) ** 2)


def solve(x):
    return -0.5 * jnp.sum(x**2) - 0.05 * x @ jnp.linalg.solve(covariance(x), x)


def fft(x):
    return -0.5 * jnp.sum(x**2) - 0.01 * jnp.sum(jnp.abs(jnp.fft.fft(x)) ** 2)


def sort(x):
    return -0.5 * jnp.sum(x**2) - 0.01 * jnp.sum(jnp.diff(jnp.sort(x)) ** 2)


pool = np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32)
kernel = FlowKernel(jax.random.key(0), 6, layers=1, width=4, knots=4, radial=False)
for density in (cholesky, solve, fft, sort):
    target = salmc.Target(density, 6)
    sampler = salmc.Sampler(kernel, target, Whitening.identity(6), pool)
    draws = sampler.sample(chains=64, draws=128, seed=1, progress=False)
    assert np.all(np.isfinite(draws.positions))
    assert 0 < np.mean(draws.accepted) < 1
    print(density.__name__, "ends")
"""


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_density_ends(threads):
    """XLA's pool has as many threads as the process has cores, or as NPROC says."""
    # Programs of its own: XLA divides their work among the threads that it had then.
    others = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment = {**others, "NPROC": str(threads)}
    command = [sys.executable, "-c", PROGRAM]
    if threads == 1 and hasattr(os, "sched_setaffinity"):
        only = f"import os; os.sched_setaffinity(0, [{min(os.sched_getaffinity(0))}])\n"
        command[-1] = only + PROGRAM
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("ends") == 4
