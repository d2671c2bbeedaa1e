"""Trajectories: reversible maps of volume 1, chains that leave the target invariant, and files."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import salmc
from salmc.errors import OutputError
from salmc.kernels import Whitening
from salmc.kernels.mixture import MixtureKernel
from salmc.sampling.files.saved import _trajectory
from salmc.sampling.sampler import Sampler
from salmc.sampling.trajectories import Trajectory, follow


def log_density(x):
    """A skewed law with known coordinates: x₀ = log of a Gamma(3), x₁ ~ N(x₀, 1)."""
    return 3.0 * x[0] - jnp.exp(x[0]) - 0.5 * (x[1] - x[0]) ** 2


TARGET = salmc.Target(log_density, dim=2)


def exact(seed, count):
    generator = np.random.default_rng(seed)
    first = np.log(generator.gamma(3.0, size=count))
    return np.stack([first, first + generator.normal(size=count)], axis=1)


def sampler(step_size=1.3, length=3):
    """Of a kernel whose own proposals are nowhere near: trajectories alone move the chains."""
    kernel = MixtureKernel(jax.random.key(0), 2, components=1)
    return Sampler(
        kernel=eqx.tree_at(lambda kernel: kernel.means, kernel, jnp.full((1, 2), 1e4)),
        target=TARGET,
        whitening=Whitening.fit(jnp.asarray(exact(0, 500), dtype=float)),
        pool=exact(1, 4000),
        method="gradient",
        local=1,
        trajectory=Trajectory(jnp.asarray(step_size), jnp.asarray(length)),
    )


def test_with_momenta_turned_round_moves_lead_back():
    points, momenta = (jnp.asarray(exact(seed, 50), dtype=float) for seed in (2, 3))
    share = jnp.linspace(0.0, 1.0, 50)
    trajectory = Trajectory(jnp.asarray(0.3), jnp.asarray(5))
    there = follow(TARGET.log_densities, trajectory, points, momenta, share)

    def last(points, momenta):
        """v', from L steps that are written out again."""
        size = 0.3 * (0.5 + 0.5 * share)[:, None]
        gradient = jax.grad(lambda x: jnp.sum(TARGET.log_densities(x)))
        for _ in range(5):
            momenta = momenta + 0.5 * size * gradient(points)
            points = points + size * momenta
            momenta = momenta + 0.5 * size * gradient(points)
        return momenta

    ends = last(points, momenta)
    squares = [np.sum(np.asarray(v) ** 2, axis=1) for v in (momenta, ends)]
    # Differences of a few rounded numbers of size 10: 1e-5.
    np.testing.assert_allclose(there.log_correction, 0.5 * (squares[0] - squares[1]), atol=1e-4)
    back = follow(TARGET.log_densities, trajectory, there.points, -ends, share)
    np.testing.assert_allclose(back.points, points, atol=1e-4)
    np.testing.assert_allclose(there.log_density, TARGET.log_densities(there.points), atol=1e-5)


def test_chains_leave_the_target_invariant():
    """From exact draws, after three steps of 8000 chains: Kolmogorov-Smirnov, p > 1e-3."""
    draws = sampler().sample(8000, 3, seed=5, start=exact(4, 8000), progress=False)
    last = draws.positions[:, -1]
    assert 0.5 < np.mean(draws.accepted) < 0.95  # rejections matter here
    assert np.mean(np.any(last != exact(4, 8000).astype(last.dtype), axis=1)) > 0.9
    assert stats.kstest(np.exp(last[:, 0]), stats.gamma(3.0).cdf).pvalue > 1e-3
    assert stats.kstest(last[:, 1] - last[:, 0], stats.norm.cdf).pvalue > 1e-3


def test_files_keep_trajectories(tmp_path):
    made = sampler()
    again = salmc.load(made.save(tmp_path / "gradient.salmc"), TARGET)
    one, two = (s.sample(chains=4, draws=20, seed=1, progress=False) for s in (made, again))
    np.testing.assert_array_equal(one.positions, two.positions)
    walking = dataclasses.replace(made, trajectory=None)
    other = walking.sample(chains=4, draws=20, seed=1, progress=False)
    assert np.any(other.positions != one.positions)


@pytest.mark.parametrize(
    "described",
    [
        {"step_size": 0.0, "length": 3},
        {"step_size": "1", "length": 3},
        {"step_size": 0.1, "length": 10**9},
        {"step_size": 0.1, "length": 2.5},
        {"step_size": 0.1},
    ],
)
def test_damaged_trajectories_are_refused(described):
    from salmc.sampling.files.archive import damaged

    with pytest.raises(OutputError), damaged("file.salmc"):
        _trajectory(described)
