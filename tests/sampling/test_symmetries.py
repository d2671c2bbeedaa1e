"""Moves to images: they leave any density invariant, and take chains to modes that are alike."""

import jax.numpy as jnp
import numpy as np
import pytest

import salmc
from salmc.errors import OutputError
from salmc.kernels import Whitening
from salmc.kernels.mixture import MixtureKernel
from salmc.sampling.files.symmetry_arrays import arrays_of_symmetries, read_symmetries
from salmc.sampling.replicas import Ladder
from salmc.sampling.sampler import Sampler
from salmc.sampling.symmetries import Symmetries
from salmc.sampling.trajectories import Trajectory

SHARE = 0.3
FLIP = np.diag([-1.0, 1.0])


def log_density(x):
    """0.3 N(−6, 1) + 0.7 N(6, 1), and another N(0, 1): mirrored modes of different weights."""
    modes = [jnp.log(share) - 0.5 * (x[0] - place) ** 2 for share, place in ((SHARE, -6), (0.7, 6))]
    return jnp.logaddexp(*modes) - 0.5 * x[1] ** 2


TARGET = salmc.Target(log_density, dim=2)
WHITENING = Whitening(
    jnp.array([1.0, -2.0]), jnp.diag(jnp.array([0.5, 1.0])), jnp.diag(jnp.array([2.0, 1.0]))
)


def sampler(**moves):
    kernel = MixtureKernel.of(
        np.ones(1), np.zeros((1, 2)), np.eye(2)[None] * 1e-3, np.full(4, 0.25)
    )
    pool = np.array([[-6.0, 0.0], [6.0, 0.0]])
    return Sampler(kernel, TARGET, WHITENING, pool, local=1, **moves)


def trajectory():
    return Trajectory.of(0.3, 3, Symmetries.of(FLIP[None], WHITENING))


def ladder():
    betas = jnp.array([1.0, 0.0])
    factors = jnp.tile(0.5 * jnp.eye(2), (2, 1, 1))
    starts = jnp.zeros((4, 1, 2))
    steps = jnp.array([0.6, 0.0])
    return Ladder(
        betas, steps, factors, jnp.asarray(3), starts, Symmetries.of(FLIP[None], WHITENING)
    )


def test_images_are_those_of_the_users_coordinates():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    symmetries = Symmetries.of(turn[None], WHITENING)
    x = np.array([[3.0, 0.5], [-1.0, 2.0]], np.float32)
    white = WHITENING.whiten(jnp.asarray(x))
    there, back = (
        np.asarray(WHITENING.colour(symmetries(white, jnp.full(2, share)))) for share in (0.0, 1.0)
    )
    np.testing.assert_allclose(there, x @ turn, atol=1e-5)
    np.testing.assert_allclose(back, x @ turn.T, atol=1e-5)


@pytest.mark.parametrize("moves", [{"trajectory": trajectory()}, {"ladder": ladder()}])
def test_modes_have_their_weights_though_they_are_not_equal(moves):
    """Chains come from one to the other by images alone; the proposals of q are never taken.

    Of a mode of 0.7 and its mirror image of 0.3 a flip leaves with 0.3 / 0.7: a share of 64
    chains, whose error is that between chains.
    """
    draws = sampler(**moves).sample(chains=64, draws=500, seed=2, progress=False)
    left = np.mean(draws.positions[..., 0] < 0.0, axis=1)
    error = np.std(left, ddof=1) / np.sqrt(len(left))
    assert error < 0.01
    assert abs(np.mean(left) - SHARE) < 4.0 * error


@pytest.mark.parametrize("moves", [{"trajectory": trajectory()}, {"ladder": ladder()}])
def test_a_file_keeps_them(moves, tmp_path):
    first = sampler(**moves)
    again = salmc.load(first.save(tmp_path / "images.salmc"), target=TARGET)
    draws = [one.sample(8, 20, 3, progress=False).positions for one in (first, again)]
    np.testing.assert_array_equal(*draws)


def test_a_file_whose_maps_are_not_exact_is_refused():
    known = arrays_of_symmetries(trajectory().symmetries)
    arrays = {name: np.asarray(value) for name, value in known.items()}
    assert read_symmetries(arrays, 2) is not None
    wider = arrays["symmetries/matrices"] * np.array([2.0, 0.5])[:, None, None]
    one_way = arrays["symmetries/matrices"][:1]
    for changed in (wider, one_way):
        with pytest.raises((OutputError, ValueError)):
            read_symmetries({**arrays, "symmetries/matrices": changed}, 2)
