"""Replicas: chains at temperatures between a kernel and the target, which exchange their places.

Between the kernel's own density q and the target p lie

    p_β ∝ q^{1−β} p^β,    1 = β_0 > β_1 > … > β_R = 0

and a chain is a replica at each of them. Where p keeps its modes apart, some p_β does not. In each
step the replica at β = 0 is drawn anew from the kernel, all others take a trajectory along the
gradient of their own p_β (`trajectories`), and neighbours exchange their places with

    min{1, exp((β_i − β_{i+1}) (h_{i+1} − h_i))},    h = log p − log q

first all pairs (0, 1), (2, 3), …, then (1, 2), (3, 4), …. This order lets a place travel from the
kernel to the target without turning back on the way. All of it leaves Π p_{β_i} invariant, and what
is kept are the places at β = 1. How fast they come there is a matter of the rejected exchanges,
Σ r_i, alone: a chain needs some 2 + 2 Σ r_i / (1 − r) steps for a place that knows nothing of the
last one.

Reference: Geyer, "Markov chain Monte Carlo maximum likelihood", 1991; Syed, Bouchard-Côté,
Deligiannidis and Doucet, "Non-reversible parallel tempering", JRSS B 2022.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from salmc.kernels.base import AbstractKernel
from salmc.metropolis import acceptance, log_ratio, taken
from salmc.sampling.symmetries import Symmetries
from salmc.sampling.trajectories import SMALLEST, with_slopes
from salmc.target import Points

Places = Float[Array, "rungs chains dim"]
Heights = Float[Array, "rungs chains"]
LogDensities = Callable[[Points], Float[Array, " n"]]


class Ladder(eqx.Module):
    """The temperatures of replicas, and what moves them there.

    Attributes:
        betas: β, from 1 down to 0.
        step_sizes: ε of each, the largest; the last is not used.
        factors: A of each: momenta move by A v, whose shape is that of p_β in one mode.
        length: gradients for each step.
        starts: places at β_1, …, β_R that belong together, from which chains begin.
        symmetries: of the target; in each step places at β = 1 move to images under one of them.
    """

    betas: Float[Array, " rungs"]
    step_sizes: Float[Array, " rungs"]
    factors: Float[Array, "rungs dim dim"]
    length: Int[Array, ""]
    starts: Float[Array, "n others dim"]
    symmetries: Symmetries | None = None

    @property
    def rungs(self) -> int:
        """How many temperatures there are, both ends included."""
        return len(self.betas)

    def begun(self, points: Points) -> Float[Array, "n all"]:
        """Replicas for chains that begin at given places.

        Which of the known ones depends on the place itself and on nothing else, so that a chain is
        the same alone and among others.
        """
        words = jax.lax.bitcast_convert_type(points.astype(jnp.float32), jnp.uint32)
        odd = 2 * jnp.arange(words.shape[1], dtype=jnp.uint32) + 1
        mixed = jnp.sum(words * odd * jnp.uint32(2654435761), axis=1, dtype=jnp.uint32)
        rows = (mixed >> jnp.uint32(8)) % jnp.uint32(len(self.starts))
        return self.starts[rows].reshape(len(points), -1)


class Replicas(NamedTuple):
    """Where replicas are, in white coordinates, with log p and log q there and their slopes."""

    places: Places
    log_p: Heights
    log_q: Heights
    slope_p: Places
    slope_q: Places

    @property
    def heights(self) -> Heights:
        """h = log p − log q."""
        return self.log_p - self.log_q

    @classmethod
    def at(cls, places: Places) -> "Replicas":
        """At given places, of which nothing is known yet."""
        unknown = jnp.full(places.shape[:2], jnp.nan, places.dtype)
        flat = jnp.zeros(places.shape, places.dtype)
        return cls(places, unknown, unknown, flat, flat)


class Randomness(NamedTuple):
    """Of one step."""

    momenta: Places
    shares: Heights
    """Uniform numbers, which decide ε."""
    moves: Heights
    """log U, which decide what is accepted."""


class Rates(NamedTuple):
    """What became of a step's proposals.

    Attributes:
        moved, exchanged: probabilities, of each rung and of each pair of them.
        travelled: squared lengths of trajectories, in units of each rung's own variances.

    Of each chain, or the means of all.
    """

    moved: Any
    exchanged: Any
    travelled: Any


def move(
    kernel: AbstractKernel,
    log_densities: LogDensities,
    ladder: Ladder,
    replicas: Replicas,
    drawn: Points,
    random: Randomness,
    exchanges: Heights,
    first: Bool[Array, ""],
) -> tuple[Replicas, Rates]:
    """One step of all replicas.

    Args:
        kernel: of the density q; prepared.
        log_densities: log p of white points.
        ladder: temperatures and moves.
        replicas: where they are.
        drawn: by the kernel: the new places at β = 0.
        random: of the trajectories.
        exchanges: log U, which decide what is exchanged; those of the last rung choose an image.
        first: whether nothing but their places is known of the replicas.
    """
    places = replicas.places.at[-1].set(drawn)
    slopes = (one.at[-1].set(0.0) for one in (replicas.slope_p, replicas.slope_q))
    replicas = Replicas(places, replicas.log_p, replicas.log_q, *slopes)
    replicas, probability = trajectories(kernel, log_densities, ladder, replicas, random, first)
    variance = jnp.var(places, axis=1, keepdims=True)
    squares = (replicas.places - places) ** 2 / jnp.where(variance > 0.0, variance, 1.0)
    travelled = jnp.mean(jnp.where(jnp.isfinite(squares), squares, 0.0), axis=-1)
    if ladder.symmetries is not None:
        known = (kernel, log_densities, ladder.symmetries)
        replicas = _at_images(*known, replicas, random, exchanges[-1])
    gaps = (ladder.betas[:-1] - ladder.betas[1:])[:, None]
    exchanged = jnp.zeros((ladder.rungs - 1, len(drawn)))
    for parity in (0, 1):
        ratio = gaps * (replicas.heights[1:] - replicas.heights[:-1])
        ratio = jnp.where(jnp.isnan(ratio), -jnp.inf, ratio)
        pairs = (jnp.arange(ladder.rungs - 1) % 2 == parity)[:, None]
        swaps = pairs & taken(exchanges[:-1], ratio)
        exchanged = jnp.where(pairs, acceptance(ratio), exchanged)
        replicas = jax.tree.map(lambda a, swaps=swaps: _exchanged(a, swaps), replicas)
    return replicas, Rates(probability, exchanged, travelled)


def trajectories(
    kernel: AbstractKernel,
    log_densities: LogDensities,
    ladder: Ladder,
    replicas: Replicas,
    random: Randomness,
    first: Bool[Array, ""],
) -> tuple[Replicas, Heights]:
    """A trajectory of each replica, with the probability of its being taken; those at β = 0 stay,
    and learn log p and log q of their places.

    One gradient is all that is compiled: where nothing is known of the replicas, a step of no
    length comes first, and finds it.
    """
    betas = ladder.betas[:, None]
    shape, dim = replicas.log_p.shape, replicas.places.shape[-1]
    share = SMALLEST + (1.0 - SMALLEST) * random.shares
    size = jnp.where(betas > 0.0, ladder.step_sizes[:, None] * share, 0.0)[..., None]

    def known(places: Places) -> Replicas:
        flat = places.reshape(-1, dim)
        parts = (log_densities, lambda points: kernel.log_densities(points, points))
        found = [with_slopes(part, flat) for part in parts]
        values = (jnp.where(jnp.isnan(one), -jnp.inf, one).reshape(shape) for one, _ in found)
        return Replicas(places, *values, *(slope.reshape(places.shape) for _, slope in found))

    def pushed(momenta: Places, at: Replicas, size: Array) -> Places:
        slope = betas[..., None] * at.slope_p + (1.0 - betas)[..., None] * at.slope_q
        change = 0.5 * size * jnp.einsum("rcd,rde->rce", slope, ladder.factors)
        return momenta + jnp.where(size > 0.0, change, 0.0)

    def step(number: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        old, at, momenta = carry
        length = jnp.where(number < 0, 0.0, size)
        momenta = pushed(momenta, at, length)
        at = known(at.places + length * jnp.einsum("rce,rde->rcd", momenta, ladder.factors))
        old = jax.tree.map(lambda a, b: jnp.where(number < 0, a, b), at, old)
        return old, at, pushed(momenta, at, length)

    start = (replicas, replicas, random.momenta)
    old, new, last = jax.lax.fori_loop(-first.astype(int), ladder.length, step, start)
    energy = 0.5 * (jnp.sum(random.momenta**2, axis=-1) - jnp.sum(last**2, axis=-1))
    ratio = log_ratio(
        betas * new.log_p + (1.0 - betas) * new.log_q,
        betas * old.log_p + (1.0 - betas) * old.log_q,
        energy,
        jnp.all(jnp.isfinite(new.places), axis=-1),
    )
    accepted = taken(random.moves, ratio) | (betas == 0.0)
    return jax.tree.map(lambda a, b: _where(accepted, a, b), new, old), acceptance(ratio)


def _at_images(
    kernel: AbstractKernel,
    log_densities: LogDensities,
    symmetries: Symmetries,
    replicas: Replicas,
    random: Randomness,
    choice: Float[Array, " chains"],
) -> Replicas:
    """Replicas at β = 1 at images of their places, where these are taken. Nothing else needs the
    uniform numbers of moves at β = 0."""
    places = symmetries(replicas.places[0], jnp.exp(choice))
    log_p, slope_p = with_slopes(log_densities, places)
    log_q, slope_q = with_slopes(lambda points: kernel.log_densities(points, points), places)
    old = jax.tree.map(lambda one: one[:1], replicas)
    parts = (places, log_p, log_q, slope_p, slope_q)
    new = Replicas(*(one[None] for one in parts))
    finite = jnp.all(jnp.isfinite(places), axis=-1)
    moves = taken(random.moves[-1], log_ratio(log_p, old.log_p[0], 0.0, finite))[None]
    chosen = jax.tree.map(lambda a, b: _where(moves, a, b), new, old)
    return jax.tree.map(lambda one, first: one.at[:1].set(first), replicas, chosen)


def _exchanged(values: Array, swaps: Bool[Array, "pairs chains"]) -> Array:
    """Neighbours exchanged where they are told to; no rung has two of them."""
    none = jnp.zeros((1, swaps.shape[1]), bool)
    up, down = jnp.roll(values, -1, axis=0), jnp.roll(values, 1, axis=0)
    values = _where(jnp.concatenate([none, swaps]), down, values)
    return _where(jnp.concatenate([swaps, none]), up, values)


def _where(which: Bool[Array, "rungs chains"], new: Array, old: Array) -> Array:
    return jnp.where(which if new.ndim == 2 else which[..., None], new, old)
