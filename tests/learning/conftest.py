"""Small problems that train in seconds. Tests that share sizes share what is compiled."""

import jax
import jax.numpy as jnp
import pytest

from salmc.kernels import FlowKernel, MLPKernel
from salmc.learning import LearningSettings, default_settings
from salmc.progress import SilentReporter
from salmc.target import Target


class PowerCut(SilentReporter):
    """An error that nothing catches, at step 40."""

    done = 0

    def advance(self, steps, **figures):
        self.done += steps
        if self.done >= 40:
            raise RuntimeError("power cut")


@pytest.fixture
def power_cut():
    return PowerCut()


def _two_modes(x):
    """½ N((−2, 0), 0.25 I) + ½ N((2, 0), 0.25 I): mean 0, sd (√4.25, ½)."""
    modes = jnp.array([[-2.0, 0.0], [2.0, 0.0]])
    return jax.nn.logsumexp(-2.0 * jnp.sum((x - modes) ** 2, axis=1))


@pytest.fixture(scope="session")
def two_modes():
    return Target(_two_modes, 2, name="two-modes")


@pytest.fixture(scope="session")
def flow():
    return FlowKernel(jax.random.key(0), 2, layers=2, width=32, knots=8, radial_knots=6)


@pytest.fixture(scope="session")
def mlp():
    return MLPKernel(jax.random.key(0), 2, width=32, depth=2)


@pytest.fixture(scope="session")
def flow_settings():
    return default_settings("flow", 2).replace(steps=60, batch=128, pool_size=512, chunk=20)


@pytest.fixture(scope="session")
def mlp_settings():
    return LearningSettings(
        decorrelation=0.3,
        steps=60,
        batch=128,
        pool_size=512,
        chunk=20,
        mixture_components=4,
        mixture_every=30,
        average=0.98,
    )
