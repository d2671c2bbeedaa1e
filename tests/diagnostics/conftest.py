"""Small targets with known truth, and chains of known autocorrelation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from salmc.target import AbstractTarget


class Mixture(AbstractTarget):
    """Equal Gaussians of sd 0.5 around given centres. `known=False` hides the truth."""

    centres: jax.Array
    known: bool = eqx.field(static=True)
    smooth: bool = eqx.field(static=True)
    name: str = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    def __init__(self, centres, known=True, differentiable=True):
        self.centres = jnp.asarray(centres, dtype=float)
        self.known = known
        self.smooth = differentiable
        self.name = f"mog{len(self.centres)}"
        self.dim = self.centres.shape[1]

    @property
    def differentiable(self):
        return self.smooth

    def log_density(self, x):
        return jax.nn.logsumexp(-jnp.sum((x - self.centres) ** 2, axis=1) / 0.5)

    @property
    def mean(self):
        return jnp.mean(self.centres, axis=0) if self.known else None

    @property
    def std(self):
        return jnp.sqrt(jnp.var(self.centres, axis=0) + 0.25) if self.known else None

    @property
    def can_sample(self):
        return self.known

    def sample(self, key, n):
        first, second = jax.random.split(key)
        chosen = jax.random.randint(first, (n,), 0, len(self.centres))
        return self.centres[chosen] + 0.5 * jax.random.normal(second, (n, self.dim))

    @property
    def component_weights(self):
        count = len(self.centres)
        return jnp.full(count, 1.0 / count) if self.known else None

    def component(self, points):
        return jnp.argmin(jnp.sum((points[:, None] - self.centres) ** 2, axis=-1), axis=1)


@pytest.fixture
def mixture():
    return Mixture


@pytest.fixture
def six_centres():
    angles = np.arange(6) * np.pi / 3
    return 5.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


@pytest.fixture
def autoregressive():
    """AR(1) chains (chain, draw, 1) with standard normal margin and correlation ρ."""

    def make(rho, chains, draws, seed=0):
        generator = np.random.default_rng(seed)
        noise = generator.normal(size=(chains, draws))
        values = np.empty((chains, draws))
        values[:, 0] = noise[:, 0]
        for t in range(1, draws):
            values[:, t] = rho * values[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
        return values[:, :, None]

    return make
