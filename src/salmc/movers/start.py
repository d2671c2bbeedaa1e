"""Where particles start when nobody says: a short search for the target's location and scale.

The search starts at N(0, 2.5 I), the paper's choice, and adapts a Gaussian q = N(m, S) to the
target by importance sampling with the tempered ratio (p/q)^β, where β ≤ 1 is as large as leaves a
sixth of the draws to count (Kish's effective size). The draws come from q at several scales at
once, so that the search can grow or shrink by magnitudes in a few rounds and does not settle before
it has arrived. It needs values of log p alone, some tens of batches of them.

A Gaussian that matches the tempered moments covers all modes it has seen. A mode far away from
N(0, 2.5 I) and behind a valley of practically zero density can be missed: if you know of such
modes, start the particles there yourself.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.errors import TargetError
from salmc.programs import RUNTIME_ERRORS, compiled, failure
from salmc.target import AbstractTarget, Points, require_scalar

PAPER_VARIANCE = 2.5
"""Variance of the start in the paper's experiments."""

_OVERDISPERSION = 1.25
"""Particles start a little wider than what was found: coming in is easier than going out."""

_FIRST_SCALES = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
_SCALES = (1 / 4, 1.0, 4.0)
_MOST_ROUNDS = 200
_SETTLED = 0.15
"""The search ends when a round moved no mean by more than this share of an sd, and neither a log sd
nor log β by more than this."""

_NEAR_ENOUGH = 0.02
"""Below this β the Gaussian hardly knows the target yet: the search goes on however slow it is."""

_SHRINKAGE = 0.1
"""Share of the correlations given up, for a covariance that stays well away from singular."""


class Location(eqx.Module):
    """A Gaussian: where the target is and how wide."""

    mean: Float[Array, " dim"]
    cholesky: Float[Array, "dim dim"]

    def sample(self, key: PRNGKeyArray, count: int, widening: float = 1.0) -> Points:
        """Draws from N(mean, widening² · covariance)."""
        noise = jax.random.normal(key, (count, len(self.mean)))
        return self.mean + widening * noise @ self.cholesky.T


def find_start(target: AbstractTarget, key: PRNGKeyArray, count: int) -> Points:
    """`count` particles that cover the target, found from values of its density alone."""
    search_key, draw_key = jax.random.split(key)
    return find_location(target, search_key).sample(draw_key, count, _OVERDISPERSION)


@compiled
def find_location(target: AbstractTarget, key: PRNGKeyArray) -> Location:
    """Adapt a Gaussian to the target, as the module's text says."""
    first_key, loop_key = jax.random.split(key)
    start = Location(jnp.zeros(target.dim), jnp.sqrt(PAPER_VARIANCE) * jnp.eye(target.dim))
    first, log_beta, _ = _adapt(target, start, first_key, _FIRST_SCALES)

    def unsettled(carry: tuple[Array, Location, Array, Array]) -> Array:
        round_number, _, _, moved = carry
        return (round_number < _MOST_ROUNDS) & (moved > _SETTLED)

    def body(
        carry: tuple[Array, Location, Array, Array],
    ) -> tuple[Array, Location, Array, Array]:
        round_number, location, before, _ = carry
        round_key = jax.random.fold_in(loop_key, round_number)
        location, log_beta, moved = _adapt(target, location, round_key, _SCALES)
        moved = jnp.maximum(moved, jnp.abs(log_beta - before))
        moved = jnp.where(log_beta < jnp.log(_NEAR_ENOUGH), jnp.inf, moved)
        return round_number + 1, location, log_beta, moved

    carry = (jnp.zeros((), dtype=int), first, log_beta, jnp.array(jnp.inf))
    return jax.lax.while_loop(unsettled, body, carry)[1]


def _adapt(
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


def check_at(target: AbstractTarget, points: Points) -> None:
    """Judge a density by its values at the first points.

    Raises:
        TargetError: if it does not return a scalar, raises an error of its own from NumPy,
            returns +inf, or is NaN or zero everywhere.
    """
    shape = jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), points.dtype))
    require_scalar(target.name, target.dim, shape)
    try:
        values = np.asarray(_raw_log_densities(target, points))
    except RUNTIME_ERRORS as error:
        reason = failure(error).removeprefix("TargetError: ")
        raise TargetError(f"The log density of `{target.name}` failed: {reason}") from error
    if np.any(values == np.inf):
        where = np.asarray(points)[np.argmax(values == np.inf)]
        raise TargetError(
            f"The log density of `{target.name}` is +inf at {np.round(where, 4).tolist()}: "
            "no distribution has that. Bound the density there."
        )
    if np.all(np.isnan(values)):
        raise TargetError(
            f"The log density of `{target.name}` is NaN at all {len(values)} starting points. "
            "Evaluate it at one point by hand to find the cause."
        )
    if np.all(np.isnan(values) | (values == -np.inf)):
        raise TargetError(
            f"The density of `{target.name}` is zero at all {len(values)} starting points, so "
            "nothing shows where to go. Start where it is positive: pass an array as `particles`."
        )


@compiled
def _raw_log_densities(target: AbstractTarget, points: Points) -> Float[Array, " n"]:
    """As `log_densities`, with NaN and +inf left to be seen."""
    return jax.vmap(target.log_density)(points)
