"""Modes that a cloud lacks, before anything is learned from it.

The hunt that judges draws (`diagnostics.hunt`) finds modes that climbs from a few starts do not:
it looks at tens of thousands of places, tempers particles from far around, and tries mirrored and
permuted copies. What it would hold against the draws in the end had better be known from the
beginning.
"""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.answers.mixture.fitting import fit_mixture
from salmc.answers.work import work
from salmc.diagnostics.hunt import hunt
from salmc.diagnostics.hunt.starts import copies
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import HostDensity
from salmc.movers.climb import Modes, balance
from salmc.target import AbstractTarget, Points

MOST_DIMENSIONS = 30
"""Beyond which a hunt takes longer than all else: there only those ask whom other modes surprise
the least."""

_HUNTS, _PARTICLES = 3, 4096
"""Hunts at most, while they find anything, and particles that each is shown."""

_APART = 10**6
"""Between the seeds of these hunts and those of verdicts."""


_EFFORTS = ((1e5, 1.0), (1e6, 0.3), (1e7, 0.06))
"""Numbers that an evaluation computes, below which so large a share of a whole hunt is made."""

_LEAST_EFFORT, _IMAGES = 0.01, 12


class Missed(NamedTuple):
    """Modes that a cloud lacks, or has far too little of.

    Attributes:
        positions, factors: of Gaussians about as wide as they are; factors are triangular.
        shares: of all mass, that belong there.
        evaluations: of the density, that the hunt took.
    """

    positions: Float[np.ndarray, "modes dim"]
    factors: Float[np.ndarray, "modes dim dim"]
    shares: Float[np.ndarray, " modes"]
    evaluations: int


def missed_modes(target: AbstractTarget, cloud: Float[np.ndarray, "n dim"], seed: int) -> Missed:
    """Hunt for modes that a cloud lacks.

    Args:
        target: in coordinates without bounds.
        cloud: particles in random order, in the same coordinates.
        seed: of the hunt. The verdict's own hunt has another one, and looks elsewhere.
    """
    dim, density = target.dim, HostDensity(target, cloud[0], _effort(target))
    told = hunt(density, cloud, Frame.of(cloud), target.names, seed=_APART + seed)
    found = [mode for mode in (*told.missed, *told.wrong_weights) if mode.share > mode.drawn]
    covariances = [mode.factor @ mode.factor.T for mode in found]
    return Missed(
        np.array([mode.position for mode in found]).reshape(-1, dim),
        np.array([np.linalg.cholesky(one) for one in covariances]).reshape(-1, dim, dim),
        np.array([mode.share for mode in found]),
        density.evaluations,
    )


def images_of(
    target: AbstractTarget, cloud: Float[np.ndarray, "n dim"], seed: int
) -> Float[np.ndarray, "m dim"]:
    """Mirrored, flipped and relabelled particles: climbs from there find modes that are alike.

    A hunt looks everywhere and weighs what it finds, which takes a hundred times as many
    evaluations: where each of them counts, a mixture that draws there weighs it as well.
    """
    generator = np.random.default_rng([_APART, seed])
    return copies(cloud, Frame.of(cloud), target.names, generator, _IMAGES)


def _effort(target: AbstractTarget) -> float:
    """Of the hunt: by what is counted, not timed, so that a seed means the same every time."""
    found = work(target)
    return next((share for most, share in _EFFORTS if found < most), _LEAST_EFFORT)


def with_missed_modes(
    target: AbstractTarget, key: PRNGKeyArray, points: Points, values: Float[Array, " n"]
) -> tuple[Points, Float[Array, " n"]]:
    """A pool, and log p there, with the modes that it lacked, at their own weights.

    Exact independence moves balance it, by a mixture of what is there and what was found.
    """
    for number in range(_HUNTS):
        one = jax.random.fold_in(key, number)
        generator = np.random.default_rng(int(jax.random.bits(one)))
        cloud = np.asarray(points, np.float64)
        some = cloud[generator.permutation(len(cloud))[:_PARTICLES]]
        missed = missed_modes(target, some, number)
        if not len(missed.shares):
            break
        own = fit_mixture(some, np.ones(len(some)), generator)
        shares = np.concatenate(
            [own.weights * (1.0 - min(np.sum(missed.shares), 0.9)), missed.shares]
        )
        modes = Modes(
            np.concatenate([own.means, missed.positions]),
            np.concatenate([own.factors, missed.factors]),
            np.log(np.maximum(shares, 1e-6) / np.max(shares)),
        )
        points, values, _ = balance(target, one, modes, points, values)
    return points, values
