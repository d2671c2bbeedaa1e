"""A sampler of replicas at several temperatures, where chains along the gradient stay apart.

Chains in separate modes never meet, and a mixture of all modes may have more components than can be
fitted. At a higher temperature there are no barriers (`sampling.replicas`). What it takes is found
in stages, each from what the last one shows:

    particles, annealed from Gaussians that cover the target (`annealing`)
    where all modes are images of one (`symmetry_search`), chains along the gradient that go from
    each place to its images: these need no replicas
    the same from a Gaussian of their own mean and covariance, which is nearer: fewer temperatures
    replicas, tuned until chains at β = 1 agree (`chains`)
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.answers.gradient.answer import bound, followed_with_symmetries
from salmc.answers.hunted import MOST_DIMENSIONS, missed_modes
from salmc.answers.replicas.annealing import anneal
from salmc.answers.replicas.chains import MOST_ROUNDS, MOST_RUNGS, Found, ReplicaChains
from salmc.answers.replicas.symmetry_search import symmetries_of
from salmc.kernels.layers import Whitening
from salmc.kernels.mixture import MixtureKernel, gaussian_shares
from salmc.movers.cover import find_cover, first_location, widened
from salmc.programs import compiled
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler
from salmc.sampling.symmetries import Symmetries
from salmc.target import AbstractTarget, Points

METHOD = "replicas"

_WIDER = 1.2
"""How much wider than the particles the second Gaussian is."""

_MOST_WIDENED = 3
_LESS = 4.0
"""log ∫ p, by which particles that count may have found less than others."""

_POOL = 4096
_MOST_DIMENSIONS = 200
"""Beyond which exchanges are rejected too often, and all temperatures together are too much."""


class ReplicaAnswer(NamedTuple):
    """A sampler, its effective draws for each draw, and what it was tuned by.

    Attributes:
        sampler: exact.
        rate: effective draws for each draw.
        cloud, log_density: of chains at β = 1, in coordinates without bounds, in random order.
    """

    sampler: Sampler
    rate: float
    cloud: Float[np.ndarray, "n dim"]
    log_density: Float[np.ndarray, " n"]


def replica_answer(
    base: AbstractTarget, seed: int, report: AbstractReporter
) -> ReplicaAnswer | None:
    """A sampler of replicas that were tuned to a target; None where they do not mix, or lack a
    mode that a hunt finds.

    Args:
        base: differentiable, in coordinates without bounds.
        seed: the same seed gives the same sampler.
        report: told of each round.
    """
    if base.dim > _MOST_DIMENSIONS:
        return None
    report.start(f"tuning replicas on {base.name}", MOST_ROUNDS + 2)
    key = jax.random.key(seed)
    cloud = _covered(base, key)
    report.advance(1)
    if cloud is None:
        return None
    maps = symmetries_of(base, cloud, seed)
    if maps is not None:
        found, mixed = followed_with_symmetries(base, cloud, maps, seed, report)
        if mixed:
            return ReplicaAnswer(bound(found, seed), found.rate, found.cloud, found.log_density)
        report.start(f"tuning replicas on {base.name}", MOST_ROUNDS + 1)
    whitening, kernel = Whitening.fit(jnp.asarray(cloud)), _gaussian(base.dim, _WIDER)
    rungs, _ = anneal(base, whitening, kernel, jax.random.fold_in(key, 1))
    report.advance(1)
    if rungs[-1].beta < 1.0:
        return None
    parts = (base, whitening, kernel)
    symmetries = None if maps is None else Symmetries.of(maps, whitening)
    chains = ReplicaChains(*parts, rungs, jax.random.fold_in(key, 2), report, symmetries)
    if len(chains.betas) > MOST_RUNGS:
        return None
    tuned = chains.run()
    if not tuned.rate or _lacks_a_mode(base, tuned.cloud, seed):
        return None
    return ReplicaAnswer(_bound(*parts, tuned, seed), tuned.rate, tuned.cloud, tuned.log_density)


def _covered(base: AbstractTarget, key: PRNGKeyArray) -> Float[np.ndarray, "n dim"] | None:
    """Particles near the target, annealed from Gaussians around it; None where none came there.

    A Gaussian that a search found may be around one mode of several, and one around the origin may
    be far off: what both find is taken, unless one of them finds next to nothing.
    """
    kernel, clouds = _gaussian(base.dim, 1.0), []
    begun = (find_cover(base, jax.random.fold_in(key, 3)), first_location(base))
    for number, location in enumerate(begun):
        for widening in range(_MOST_WIDENED):
            factor = np.asarray(location.cholesky, np.float64)
            inverse = jnp.asarray(np.linalg.inv(factor).T, dtype=float)
            whitening = Whitening(location.mean, inverse, location.cholesky.T)
            one = jax.random.fold_in(key, 4 + _MOST_WIDENED * number + widening)
            rungs, evidence = anneal(base, whitening, kernel, one)
            if rungs[-1].beta < 1.0:
                break
            cloud = np.asarray(whitening.colour(jnp.asarray(rungs[-1].points)), np.float64)
            volume = np.sum(np.log(np.abs(np.diag(factor))))
            clouds.append((evidence + volume, cloud))
            wider = widened(location, cloud)
            if wider is None:
                break
            location = wider
    best = max((evidence for evidence, _ in clouds), default=0.0)
    near = [cloud for evidence, cloud in clouds if evidence > best - _LESS]
    return np.concatenate(near) if near else None


def _gaussian(dim: int, width: float) -> MixtureKernel:
    """One Gaussian in white coordinates, with the tails that all mixtures have."""
    means, factors = np.zeros((1, dim)), width * np.eye(dim)[None]
    return MixtureKernel.of(np.ones(1), means, factors, gaussian_shares())


def _lacks_a_mode(base: AbstractTarget, cloud: np.ndarray, seed: int) -> bool:
    """Whether a hunt finds one; beyond some dimensions none is made."""
    if base.dim > MOST_DIMENSIONS:
        return False
    return len(missed_modes(base, cloud[:_POOL], seed).shares) > 0


def _bound(
    base: AbstractTarget, whitening: Whitening, kernel: MixtureKernel, found: Found, seed: int
) -> Sampler:
    """What was found, as a sampler."""
    cloud, known = (
        jnp.asarray(part[:_POOL], dtype=float) for part in (found.cloud, found.log_density)
    )
    pool, log_density = _outward(base, cloud, known)
    return Sampler(
        kernel=kernel,
        target=base,
        whitening=whitening,
        pool=np.asarray(pool),
        method=METHOD,
        settings={
            "seed": seed,
            "target": base.name,
            "rate": found.rate,
            "temperatures": found.ladder.rungs,
            "length": int(found.ladder.length),
        },
        pool_log_density=np.asarray(log_density),
        ladder=found.ladder,
    )


@compiled
def _outward(target: AbstractTarget, points: Points, values: Array) -> tuple[Array, Array]:
    return target.outward(points, values)
