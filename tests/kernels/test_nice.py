"""The NICE kernel: a map of volume one with an inverse, whose Metropolis step is exact."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.kernels import NICEKernel, Whitening
from salmc.sampling.chains import Transition
from salmc.sampling.sampler import Sampler
from salmc.targets import Gaussian, Mog6


@pytest.fixture(scope="module")
def kernel():
    return NICEKernel(jax.random.key(0), 3, velocity_dim=5, width=32, depth=2)


def _points(count, dim, seed=1):
    return jnp.asarray(np.random.default_rng(seed).normal(size=(count, dim)), float)


@eqx.filter_jit
def forward(kernel, x, v):
    """One program, where operations one by one would be fifty."""
    return kernel.forward(x, v)


@eqx.filter_jit
def inverse(kernel, x, v):
    return kernel.inverse(x, v)


def test_the_inverse_undoes_it(kernel):
    x, v = _points(50, 3), _points(50, 5, 2)
    moved = forward(kernel, x, v)
    assert np.mean(np.abs(moved[0] - x)) > 0.1
    for there, back in ((forward, inverse), (inverse, forward)):
        again = back(kernel, *there(kernel, x, v))
        np.testing.assert_allclose(again[0], x, atol=1e-4)
        np.testing.assert_allclose(again[1], v, atol=1e-4)


def test_rows_go_their_own_way(kernel):
    x, v = _points(20, 3), _points(20, 5, 2)
    forwards = jnp.arange(20) % 3 == 0
    found = eqx.filter_jit(kernel.transform)(x, v, forwards)
    there, back = forward(kernel, x, v), inverse(kernel, x, v)
    for here, one, other in zip(found, there, back, strict=True):
        expected = np.where(forwards[:, None], one, other)
        np.testing.assert_allclose(here, expected, atol=1e-5)
    assert not np.allclose(there[0], back[0], atol=1e-2)


@pytest.mark.parametrize("direction", ["forward", "inverse"])
def test_the_volume_is_preserved(kernel, direction):
    def joint(both):
        x, v = getattr(kernel, direction)(both[None, :3], both[None, 3:])
        return jnp.concatenate([x[0], v[0]])

    jacobians = jax.jit(jax.vmap(jax.jacobian(joint)))(_points(20, 8, 3))
    assert np.max(np.abs(jacobians - np.eye(8))) > 0.1
    np.testing.assert_allclose(np.linalg.slogdet(np.asarray(jacobians))[1], 0.0, atol=1e-4)


def test_the_correction_is_that_of_the_velocities(kernel):
    """log N(v') − log N(v), by the normal density itself; the last number is the direction."""
    points, noise = _points(30, 3), _points(30, kernel.noise_dim, 7)
    new, correction = kernel.propose(points, noise)
    before, forwards = noise[:, :-1], noise[:, -1] > 0
    expected, after = kernel.transform(points, before, forwards)
    np.testing.assert_array_equal(new, expected)
    log_n = jax.vmap(lambda v: jnp.sum(jax.scipy.stats.norm.logpdf(v)))
    np.testing.assert_allclose(correction, log_n(after) - log_n(before), atol=1e-4)
    assert 5 < np.sum(np.asarray(forwards)) < 25


class _Forgetful(NICEKernel):
    """Leaves the velocities out of the ratio."""

    def propose(self, points, noise):
        return super().propose(points, noise)._replace(log_correction=jnp.zeros(len(points)))


class _OneWay(NICEKernel):
    """Never goes backwards."""

    def propose(self, points, noise):
        return super().propose(points, noise.at[:, -1].set(1.0))


@eqx.filter_jit
def _advance(kernel, whitening, target, points, key):
    """20 exact steps of every point; the points have to stay exact draws."""
    transition = Transition(kernel, whitening, target)
    state = transition.start(whitening.whiten(points))
    state, steps = transition.block(state, jax.random.split(key, len(points)), jnp.uint32(0), 20)
    return steps.positions[-1], jnp.mean(steps.accepted)


_COUNT = 10_000


def _deviation(kind, target):
    """The largest error of mean, second moments and mean log density, in standard errors.

    Exact draws that took exact steps are exact draws, independent of each other: below 5 in all
    but one case of 10⁵.
    """
    kernel = kind(jax.random.key(3), 2, width=32)
    # Larger changes of v, so that the term that is about them matters, and smaller ones of x.
    kernel = eqx.tree_at(
        lambda kernel: (kernel.velocity_networks.weights[-1], kernel.position_network.weights[-1]),
        kernel,
        (4.0 * kernel.velocity_networks.weights[-1], 0.5 * kernel.position_network.weights[-1]),
    )
    exact = target.sample(jax.random.key(0), _COUNT)
    whitening = Whitening.fit(exact[:2000])
    moved, accepted = _advance(kernel, whitening, target, exact, jax.random.key(1))
    assert 0.1 < accepted < 0.99
    assert np.mean(np.any(moved != exact, axis=1)) > 0.5
    reference = target.sample(jax.random.key(2), _COUNT)

    def functions(points):
        values = target.log_densities(points)[:, None]
        return np.concatenate([points, points**2, points[:, :1] * points[:, 1:], values], axis=1)

    one, other = (np.asarray(functions(points), np.float64) for points in (moved, reference))
    error = np.sqrt((np.var(one, axis=0) + np.var(other, axis=0)) / _COUNT)
    return np.max(np.abs(one.mean(axis=0) - other.mean(axis=0)) / error)


@pytest.mark.parametrize("name", ["gaussian", "mog6"])
def test_exact_draws_stay_exact(name):
    target = Mog6() if name == "mog6" else Gaussian(np.array([1.0, -2.0]), np.diag([4.0, 0.25]))
    assert _deviation(NICEKernel, target) < 5
    assert _deviation(_Forgetful, target) > 8
    assert _deviation(_OneWay, target) > 8


def test_a_sampler_takes_it_as_exact(tmp_path):
    kernel = NICEKernel(jax.random.key(3), 2, width=32)
    target = Mog6()
    pool = target.sample(jax.random.key(0), 200)
    sampler = Sampler(
        kernel=kernel, target=target, whitening=Whitening.fit(pool), pool=pool, method="a-nice-mc"
    )
    draws = sampler.sample(4, 50, progress=False)
    assert draws.settings["exact"] is True
    assert not any("not exact" in warning for warning in draws.warnings)
    with pytest.raises(salmc.ArgumentError, match="tries"):
        sampler.sample(4, 50, tries=2, progress=False)
    again = salmc.load(sampler.save(tmp_path / "kernel.salmc"))
    assert again.kernel.description() == kernel.description()
    same = again.sample(4, 50, progress=False)
    np.testing.assert_array_equal(same.positions, draws.positions)


def test_defaults_follow_the_dimension():
    small, large = NICEKernel(jax.random.key(0), 2), NICEKernel(jax.random.key(0), 25)
    assert (small.velocity_dim, small.depth, small.width) == (2, 1, 400)
    assert (large.velocity_dim, large.depth, large.width) == (50, 2, 400)


@pytest.mark.parametrize("bad", [{"velocity_dim": 0}, {"width": 0}, {"depth": 0}])
def test_bad_arguments(bad):
    with pytest.raises(salmc.ArgumentError, match=next(iter(bad))):
        NICEKernel(jax.random.key(0), 2, **bad)


@pytest.mark.parametrize("depth", [1, 2])
def test_turned_it_is_a_quarter_turn(depth):
    kernel = NICEKernel(jax.random.key(0), 3, velocity_dim=5, width=32, depth=depth).turned()
    x, v = _points(50, 3), _points(50, 5, 2)
    new, after = forward(kernel, x, v)
    np.testing.assert_allclose(new, v[:, :3], atol=1e-5)
    np.testing.assert_allclose(after[:, :3], -x, atol=1e-5)
    np.testing.assert_allclose(after[:, 3:], v[:, 3:], atol=1e-5)


def test_too_narrow_to_be_turned():
    kernel = NICEKernel(jax.random.key(0), 3, width=5)
    assert kernel.turned() is kernel
