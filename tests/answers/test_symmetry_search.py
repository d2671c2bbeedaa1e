"""Symmetries are seen from modes: of all coordinates that go together, and only if p has them."""

import jax.numpy as jnp
import numpy as np

import salmc
from salmc.answers.replicas.answer import replica_answer
from salmc.answers.replicas.symmetry_search import symmetries_of
from salmc.progress import SilentReporter

X = np.linspace(-2.0, 2.0, 30)
Y = np.tanh(2.0 * X - 1.0) - 0.6 * np.tanh(X + 1.5)
UNITS = 2


def units(x):
    """Two hidden units v tanh(w x + b), in any order and of any sign: eight modes of one shape."""
    weights, biases, outputs = x[:UNITS], x[UNITS : 2 * UNITS], x[2 * UNITS :]
    fitted = jnp.tanh(X[:, None] * weights + biases) @ outputs
    return -0.5 * jnp.sum((Y - fitted) ** 2) / 0.1**2 - 0.5 * jnp.sum(x**2)


TARGET = salmc.Target(units, 3 * UNITS, name="units")


def cloud(seed=0, count=300):
    """Near all of the modes, and on none of them."""
    generator = np.random.default_rng(seed)
    one = np.array([2.0, 1.0, -1.0, 1.5, 1.0, -0.6]).reshape(3, UNITS)
    points = np.array(
        [
            one[:, generator.permutation(UNITS)] * generator.choice([-1.0, 1.0], UNITS)
            for _ in range(count)
        ]
    )
    return points.reshape(count, -1) + 0.1 * generator.standard_normal((count, 3 * UNITS))


def test_maps_of_hidden_units():
    maps = symmetries_of(TARGET, cloud(), 0)
    points = cloud(1, 50)
    values = np.asarray(TARGET.log_densities(jnp.asarray(points)))
    for one in maps:
        images = np.asarray(TARGET.log_densities(jnp.asarray(points @ one)))
        np.testing.assert_allclose(images, values, rtol=1e-3)
    # One after the other they make the whole group of 2! 2² maps.
    group = {np.eye(3 * UNITS).tobytes()}
    for _ in range(8):
        group |= {(np.frombuffer(a).reshape(6, 6) @ one).tobytes() for a in group for one in maps}
    rounded = {np.round(np.frombuffer(a)).astype(int).tobytes() for a in group}
    assert len(rounded) == 8


def test_modes_that_are_not_alike_have_no_map():
    def bent(x):
        return units(x) + 0.3 * x[0] - 0.2 * x[1]

    assert symmetries_of(salmc.Target(bent, 3 * UNITS), cloud(), 0) is None


def test_chains_come_to_all_images_without_replicas():
    answer = replica_answer(TARGET, 0, SilentReporter())
    assert answer.sampler.ladder is None
    draws = answer.sampler.sample(chains=32, draws=500, seed=1, progress=False)
    # Signs of both outputs, and which weight is the larger: each is fair, chain by chain.
    x = draws.positions
    for side in (x[..., 4] > 0.0, x[..., 5] > 0.0, np.abs(x[..., 0]) > np.abs(x[..., 1])):
        shares = np.mean(side, axis=1)
        error = np.std(shares, ddof=1) / np.sqrt(len(shares))
        assert error < 0.02
        assert abs(np.mean(shares) - 0.5) < 4.0 * error
