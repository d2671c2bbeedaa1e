"""A sampler of chains that follow the gradient, where no mixture fits the target.

Its kernel is one heavy-tailed Gaussian in the coordinates that the chains found, and local steps
follow trajectories (`answers.gradient.chains`): exact, as all of this is. Such a sampler is ready
after seconds. It is no answer where chains that began apart stay apart, or where a hunt finds a
mode that they lack.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from salmc.answers.gradient.chains import CHAINS, MOST_ROUNDS, Found, GradientChains
from salmc.answers.gradient.coordinates import shows_funnels
from salmc.answers.hunted import MOST_DIMENSIONS, missed_modes
from salmc.answers.mixture.laplace import nearly_fits
from salmc.bounds import Unbounded
from salmc.kernels.mixture import MixtureKernel
from salmc.movers.base import check_at, log_densities
from salmc.movers.cover import first_location
from salmc.programs import compiled
from salmc.progress import AbstractReporter
from salmc.sampling.sampler import Sampler
from salmc.sizes import MANY_DATA
from salmc.target import AbstractTarget, Points

METHOD = "gradient"

_POOL = 4096
_MOST_FOR_MIXTURES = 100
"""Dimensions, beyond which a mixture costs more than chains, and seldom fits."""

_BEST_OF = 16
"""Places for each chain, of which the likeliest are begun from."""

_TRIED = 8
_DIFFERENT = 4
"""Points of a pool for each chain, at least, to begin from it."""


class GradientAnswer(NamedTuple):
    """A sampler, its effective draws for each draw, and whether its chains mix."""

    sampler: Sampler
    rate: float
    mixed: bool


def can_follow(target: AbstractTarget) -> bool:
    """Whether gradients are there, and cheap enough for many of them."""
    return target.differentiable and target.size <= MANY_DATA


def can_begin(target: AbstractTarget, seed: int) -> bool:
    """Whether there is density where chains begin."""
    base = target.unbounded
    return check_at(base, _places(base, _first_key(seed)), required=False)


def must_follow(target: AbstractTarget, seed: int) -> bool:
    """Whether many dimensions, or funnels, show that a mixture would be tried in vain."""
    if not can_follow(target):
        return False
    base = target.unbounded
    places = _places(base, _first_key(seed))
    # What is wrong with a density is told here, before anything else is made of it.
    if not check_at(base, places[:_TRIED], required=False):
        return False
    if base.dim > _MOST_FOR_MIXTURES:
        return True
    return shows_funnels(base, places) and not nearly_fits(base, places, seed)


def gradient_answer(
    target: AbstractTarget, known: Sampler | None, seed: int, report: AbstractReporter
) -> GradientAnswer:
    """A sampler of chains that were tuned to a target; see `followed`."""
    found, mixed = followed(target, known, seed, report)
    return GradientAnswer(bound(found, seed), found.rate, mixed)


def followed(
    target: AbstractTarget, known: Sampler | None, seed: int, report: AbstractReporter
) -> tuple[Found, bool]:
    """Tune chains to a target; and whether they mix, and lack no mode that a hunt finds.

    Args:
        target: differentiable.
        known: of another method, whose pool and bounds are taken over.
        seed: the same seed gives the same chains.
        report: told of each round.

    Raises:
        TargetError: if the density is positive nowhere.
    """
    base = target.unbounded
    if known is not None and isinstance(known.target, Unbounded):
        base = Unbounded(known.target.outer, known.target.bounds)
    key = jax.random.key(seed)
    report.start(f"tuning chains on {target.name}", MOST_ROUNDS)
    start = _start(base, known, _first_key(seed))
    found = GradientChains.begin(base, start, jax.random.fold_in(key, 1), report).run()
    mixed = found.mixed
    if mixed and target.dim <= MOST_DIMENSIONS:
        mixed = not _lacks_modes(base, found, seed)
    return found, mixed


def followed_with_symmetries(
    base: AbstractTarget,
    cloud: Float[np.ndarray, "n dim"],
    maps: Float[np.ndarray, "k dim dim"],
    seed: int,
    report: AbstractReporter,
) -> tuple[Found, bool]:
    """Tune chains that go from each mode to its images; and whether they mix, and lack no mode.

    Args:
        base: differentiable, in coordinates without bounds, the same under all maps.
        cloud: particles of its modes.
        maps: linear ones.
        seed: the same seed gives the same sampler.
        report: told of each round.
    """
    report.start(f"tuning chains on {base.name}", MOST_ROUNDS)
    key = jax.random.fold_in(jax.random.key(seed), 2)
    rows = np.random.default_rng(seed).choice(len(cloud), CHAINS)
    start = jnp.asarray(cloud[rows], dtype=float)
    found = GradientChains.begin(base, start, key, report, maps).run()
    lacks = found.mixed and base.dim <= MOST_DIMENSIONS and _lacks_modes(base, found, seed)
    return found, found.mixed and not lacks


def _lacks_modes(base: AbstractTarget, found: Found, seed: int) -> bool:
    """Whether a hunt finds modes that chains lack.

    Where funnels were made straight it also looks where they are not: what is wide there and lies
    beyond the mouth of a funnel is a needle in the coordinates of that funnel.
    """
    cloud = found.cloud[:_POOL]
    if len(missed_modes(found.target, cloud, seed).shares):
        return True
    if found.target is base:
        return False
    values = jnp.asarray(found.log_density[:_POOL], dtype=float)
    points, _ = _outward(found.target, jnp.asarray(cloud, dtype=float), values)
    return bool(len(missed_modes(base, np.asarray(base.inward(points)), seed).shares))


def _start(base: AbstractTarget, known: Sampler | None, key: jax.Array) -> Points:
    """Places of a pool; or, where it is too few, the likeliest of many."""
    if known is not None:
        points = np.unique(np.asarray(known.pool), axis=0)
        if len(points) >= _DIFFERENT * CHAINS:
            rows = np.random.default_rng(0).permutation(len(known.pool))[:CHAINS]
            return base.inward(jnp.asarray(np.asarray(known.pool)[rows], dtype=float))
    places = _places(base, key)
    values = np.asarray(log_densities(base, places))
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values))
    start = places[order[:CHAINS]]
    check_at(base, start)
    return start


def _first_key(seed: int) -> jax.Array:
    return jax.random.fold_in(jax.random.key(seed), 0)


def _places(base: AbstractTarget, key: jax.Array) -> Points:
    return first_location(base).sample(key, _BEST_OF * CHAINS)


def bound(found: Found, seed: int) -> Sampler:
    """What was found, as a sampler."""
    cloud = jnp.asarray(found.cloud[:_POOL], dtype=float)
    values = jnp.asarray(found.log_density[:_POOL], dtype=float)
    pool, log_density = _outward(found.target, cloud, values)
    return Sampler(
        kernel=MixtureKernel(jax.random.key(0), cloud.shape[1], components=1),
        target=found.target,
        whitening=found.whitening,
        pool=np.asarray(pool),
        method=METHOD,
        settings={
            "seed": seed,
            "target": found.target.name,
            "rate": found.rate,
            "step_size": float(found.trajectory.step_size),
            "length": int(found.trajectory.length),
        },
        pool_log_density=np.asarray(log_density),
        local=1,
        trajectory=found.trajectory,
    )


@compiled
def _outward(target: AbstractTarget, points: Points, values: Array) -> tuple[Array, Array]:
    """One program: funnels that are bent back are dozens of operations, each compiled alone."""
    return target.outward(points, values)
