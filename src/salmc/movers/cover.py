"""A Gaussian that covers the target: where tempering begins, and what clouds tell of its edges.

From values of log p alone. The Gaussian q = N(m, S) begins as N(0, 2.5 I), the paper's choice, or
as what the target knows of itself. One round draws from q at several scales at once and takes the
moments of q^{1−β} p^β, where β ≤ 1 is as large as leaves a sixth of the draws to count (Kish's
effective size). `start.find_location` repeats that until q fits, and so chooses among modes;
`find_cover` never contracts: tempering carries all modes along. With

    reach = max over directions of (|shift| + 2 sd) / sd_q   of those moments,

* the reach is that of the widest draws: p is flat as far as q sees; q takes those moments;
* the mass is at q's edge, and q hardly knows the target (β < 0.02): q takes those moments;
* q knows the target, and the mass comes near its edge: q is widened a little, once. A heavy tail or
  the mouth of a funnel would pull it outward for ever;
* all mass is well within: q covers.

`widened` looks at what tempering arrived at: particles that press against q show that it did not
cover in their direction. `find_edges` looks whether they press against the faces of a box.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.programs import compiled, on_device
from salmc.target import AbstractTarget, Points

PAPER_VARIANCE = 2.5
"""Variance of the start in the paper's experiments."""

FIRST_SCALES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
MOST_ROUNDS = 200
NEAR_ENOUGH = 0.02
"""Below this β the Gaussian hardly knows the target yet."""

SATURATED = 12.0
"""A reach like this has all its weight on the widest of the scales."""

COVERED = 3.0
GROWTH = 1.5
_MOST_WIDENED = 2.0
_WIDENING = 2.0
_QUANTILE = 1.645
"""Of N(0, 1), 95 %."""

_SHRINKAGE = 0.1
"""Share of the correlations given up, for a covariance that stays well away from singular."""


_FEWEST_EACH, _BISECTIONS, _SAME_FOR_ALL = 8, 25, 0.98
"""Of `find_edges`: points for each face, halvings, and the share of points that must still be
inside a hundredth of the cloud's extent before the face."""


class Location(eqx.Module):
    """A Gaussian: where the target is and how wide."""

    mean: Float[Array, " dim"]
    cholesky: Float[Array, "dim dim"]

    @classmethod
    def of(cls, points: Points) -> "Location":
        """The Gaussian of given points."""
        values = np.asarray(points, np.float64)
        deviation = np.maximum(np.std(values, axis=0), np.finfo(np.float32).tiny)
        units = (values - np.mean(values, axis=0)) / deviation
        correlation = units.T @ units / len(units) + 1e-3 * np.eye(len(deviation))
        return cls(
            on_device(np.mean(values, axis=0)),
            on_device(deviation[:, None] * np.linalg.cholesky(correlation)),
        )

    @compiled
    def sample(self, key: PRNGKeyArray, count: int, widening: float = 1.0) -> Points:
        """Draws from N(mean, widening² · covariance)."""
        noise = jax.random.normal(key, (count, len(self.mean)))
        return self.mean + widening * noise @ self.cholesky.T


@compiled
def find_cover(target: AbstractTarget, key: PRNGKeyArray) -> Location:
    """A Gaussian that covers the target, as the module's text says."""

    def unsettled(carry: tuple[Array, Location, Array]) -> Array:
        round_number, _, outward = carry
        return (round_number < MOST_ROUNDS) & outward

    def body(carry: tuple[Array, Location, Array]) -> tuple[Array, Location, Array]:
        round_number, location, _ = carry
        round_key = jax.random.fold_in(key, round_number)
        found, log_beta, moved = adapt(target, location, round_key, FIRST_SCALES)
        shift, spread = (
            jax.scipy.linalg.solve_triangular(location.cholesky, values, lower=True)
            for values in (found.mean - location.mean, found.cholesky)
        )
        reach = jnp.max(jnp.abs(shift) + 2.0 * jnp.sqrt(jnp.sum(spread**2, axis=1)))
        unknown = (log_beta < jnp.log(NEAR_ENOUGH)) & (reach > COVERED)
        usable = jnp.isfinite(moved)
        outward = usable & ((reach > SATURATED) | unknown)
        widening = jnp.where(usable, jnp.clip(reach / COVERED, 1.0, _MOST_WIDENED), 1.0)
        location = Location(
            jnp.where(outward, found.mean, location.mean),
            jnp.where(outward, GROWTH * found.cholesky, widening * location.cholesky),
        )
        return round_number + 1, location, outward

    carry = (jnp.zeros((), dtype=int), first_location(target), jnp.array(True))
    return jax.lax.while_loop(unsettled, body, carry)[1]


def widened(location: Location, points: np.ndarray) -> Location | None:
    """A wider Gaussian where points that came from it press against its edge; None if none do.

    The directions are the principal axes of the points in the Gaussian's own units, the measure is
    the quantiles of 5 and 95 %, and what is wide already stays as it is.
    """
    mean, cholesky = (np.asarray(a, np.float64) for a in (location.mean, location.cholesky))
    units = np.linalg.solve(cholesky, (np.asarray(points, np.float64) - mean).T).T
    # A few far out must not turn the axes.
    limits = 1.5 * np.quantile(np.abs(units), 0.95, axis=0)
    held = np.clip(units, -limits, limits)
    axes = np.linalg.eigh(held.T @ held)[1]
    along = units @ axes
    low, high = np.quantile(along, [0.05, 0.95], axis=0)
    reach = np.maximum(np.abs(low), np.abs(high)) / _QUANTILE
    pressed = reach > 1.0
    if not np.any(pressed):
        return None
    factors = np.where(pressed, _WIDENING * reach, 1.0)
    shift = cholesky @ (axes @ np.where(pressed, np.median(along, axis=0), 0.0))
    wide = cholesky @ (axes * factors)
    covariance = wide @ wide.T
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation) + 1e-6 * np.eye(len(deviation))
    return Location(
        on_device(mean + shift),
        on_device(deviation[:, None] * np.linalg.cholesky(correlation)),
    )


def first_location(target: AbstractTarget) -> Location:
    """N(0, 2.5 I), or the Gaussian of the points that the target knows of."""
    if target.start is None:
        return Location(jnp.zeros(target.dim), jnp.sqrt(PAPER_VARIANCE) * jnp.eye(target.dim))
    mean, deviation = jnp.mean(target.start, axis=0), jnp.std(target.start, axis=0)
    # One point has no width: the paper's then.
    width = jnp.where(deviation > 0.0, 1.5 * deviation, jnp.sqrt(PAPER_VARIANCE))
    return Location(mean, jnp.diag(width))


def find_edges(
    log_densities: Callable[[np.ndarray], np.ndarray], points: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Bounds of the box or half space that a density is zero outside of; None if none shows.

    A face is taken for one if points of the cloud all leave the support at the same value of one
    coordinate, whatever their others are. An edge of any other form is left to the kernel.

    Args:
        log_densities: of an array of the shape of `points`, on the host.
        points: a cloud within the support.
    """
    count, dim = points.shape
    each = count // (2 * dim)
    if each < _FEWEST_EACH:
        return None
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    extent = np.maximum(high - low, np.finfo(np.float32).tiny)
    face = np.concatenate([high, low])
    step = np.concatenate([extent, -extent])
    which = np.tile(np.arange(dim), 2)

    def inside(levels: np.ndarray) -> np.ndarray:
        """The share of some points that are in the support with one coordinate at a level."""
        probes = points.copy()
        for i, level in enumerate(levels):
            probes[i * each : (i + 1) * each, which[i]] = level
        values = log_densities(probes)[: 2 * dim * each].reshape(2 * dim, each)
        return np.mean(values > -np.inf, axis=1)

    hard = inside(face + 0.05 * step) == 0.0
    if not np.any(hard):
        return None
    near, far = face, face + 0.05 * step
    for _ in range(_BISECTIONS):
        middle = 0.5 * (near + far)
        out = inside(middle) == 0.0
        near, far = np.where(out, near, middle), np.where(out, middle, far)
    hard &= inside(far - 0.01 * step) >= _SAME_FOR_ALL
    if not np.any(hard):
        return None
    limits = np.where(hard, far, np.where(step > 0, np.inf, -np.inf))
    return limits[dim:], limits[:dim]


def adapt(
    target: AbstractTarget, location: Location, key: PRNGKeyArray, scales: tuple[float, ...]
) -> tuple[Location, Float[Array, ""], Float[Array, ""]]:
    """One round: draw at several scales, weight, match the moments.

    Returns:
        The adapted Gaussian, log β, and how far the Gaussian moved.
    """
    dim = target.dim
    draws = len(scales) * max(500, 20 * dim)
    scale_of_draw = jnp.tile(jnp.array(scales), draws // len(scales))
    noise = jax.random.normal(key, (draws, dim)) * scale_of_draw[:, None]
    points = location.mean + noise @ location.cholesky.T
    log_density = target.log_densities(points)
    finite = jnp.isfinite(log_density)

    # The mixture over scales, up to the constant factor |S|^−½.
    squares = jnp.sum(noise**2, axis=1)[:, None]
    widths = jnp.array(scales)
    log_proposal = jax.nn.logsumexp(-0.5 * squares / widths**2 - dim * jnp.log(widths), axis=1)
    log_ratio = jnp.where(finite, log_density - log_proposal, -jnp.inf)
    log_ratio = log_ratio - jnp.max(jnp.where(finite, log_ratio, -jnp.inf))
    weights, log_beta = _tempered_weights(log_ratio)

    mean = weights @ points
    centred = points - mean
    covariance = (centred * weights[:, None]).T @ centred
    variance = jnp.diag(covariance)
    covariance = (1.0 - _SHRINKAGE) * covariance + _SHRINKAGE * jnp.diag(variance)
    # In units of its own sd the matrix is well scaled whatever the units of the coordinates.
    deviation = jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny))
    correlation = covariance / deviation[:, None] / deviation[None, :]
    cholesky = deviation[:, None] * jnp.linalg.cholesky(correlation + 1e-4 * jnp.eye(dim))

    before = jnp.sqrt(jnp.sum(location.cholesky**2, axis=1))
    shift = jnp.abs(mean - location.mean) / jnp.minimum(before, deviation)
    stretch = jnp.abs(jnp.log(deviation / before))
    moved = jnp.maximum(jnp.max(shift), jnp.max(stretch))
    usable = (jnp.sum(finite) > 2 * dim) & jnp.all(jnp.isfinite(cholesky))
    adapted = Location(
        jnp.where(usable, mean, location.mean), jnp.where(usable, cholesky, location.cholesky)
    )
    return adapted, log_beta, jnp.where(usable, moved, jnp.inf)


def _tempered_weights(
    log_ratio: Float[Array, " n"],
) -> tuple[Float[Array, " n"], Float[Array, ""]]:
    """Weights ∝ (p/q)^β and log β, for the largest β ≤ 1 at which a sixth of the draws count.

    A sixth, because only one scale in three or more can fit. β is found by bisection on its
    logarithm: it may be as small as 10⁻¹² where the target is far away and narrow.
    """
    usable = jnp.maximum(jnp.sum(jnp.isfinite(log_ratio)), 1)
    wanted = usable / 6.0

    def weights_at(log_beta: Array) -> Array:
        scaled = jnp.where(jnp.isfinite(log_ratio), jnp.exp(log_beta) * log_ratio, -jnp.inf)
        return jax.nn.softmax(scaled)

    def halve(_: Array, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = 0.5 * (low + high)
        enough = 1.0 / jnp.sum(weights_at(middle) ** 2) >= wanted
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    low, _ = jax.lax.fori_loop(0, 30, halve, (jnp.array(-30.0), jnp.array(0.0)))
    full = 1.0 / jnp.sum(weights_at(jnp.array(0.0)) ** 2) >= wanted
    log_beta = jnp.where(full, 0.0, low)
    return weights_at(log_beta), log_beta
