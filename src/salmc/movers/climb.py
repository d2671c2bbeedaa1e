"""Climbs to the modes: L-BFGS from many starts, and Laplace's Gaussian at each mode found.

    m_k = argmax log p near a start,   C_k = (−∇² log p(m_k))⁻¹
    log mass_k = log p(m_k) + ½ log |2π C_k|

A mode that is narrow beside others is all but invisible to draws, and plain to a climb. Modes of
next to no mass, such as the neck of a funnel, are let go. SciPy climbs, on the host: nothing is
compiled but value, gradient and Hessian of one point.
"""

import weakref
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.optimize import minimize

from salmc.metropolis import log_ratio, taken
from salmc.programs import compiled, on_device
from salmc.target import AbstractTarget, Point, Points, Scalar

Values = Float[Array, " n"]

_MOST_STEPS = 200
_MOST_CLIMBS, ARRIVED = 3, 0.1
"""A climb goes on, in Laplace's units, while the top seems to be so much higher in log p."""

NEAR = 0.5
"""Ends of climbs that are nearer to each other than this, in Laplace's units, are one mode."""

NEGLIGIBLE = -12.0
"""Modes of less than e^−12 of the heaviest one's mass are let go."""

_WIDENED = 0.3
"""Over √dim: how much wider Laplace's Gaussians propose than they are, as tails must not be wanting
and in many dimensions every hundredth counts."""


_asked: deque[tuple[weakref.ref[AbstractTarget], bool]] = deque(maxlen=16)
"""Targets of late, and whether they can be climbed: tracing second derivatives takes a second."""


class Modes(NamedTuple):
    """Modes with Laplace's Gaussian at each, the heaviest first."""

    positions: Float[np.ndarray, "modes dim"]
    factors: Float[np.ndarray, "modes dim dim"]
    """Triangular A with C = A Aᵀ."""
    log_masses: Float[np.ndarray, " modes"]
    gradients: int = 0
    """How many gradients the climbs took."""
    tops: int = 0
    """At how many of the modes the gradient vanishes: at walls and kinks it does not."""


def can_climb(target: AbstractTarget) -> bool:
    """Whether JAX can take first and second derivatives of a density.

    A loop of unknown length has none backwards, and some solvers of differential equations none
    twice: such a target can be sampled all the same.
    """
    if not target.differentiable:
        return False
    # Bounds and bends are differentiable: what they are made of decides, and is asked once.
    outer = target.outer
    for known, answer in _asked:
        if known() is outer:
            return answer
    point = jax.ShapeDtypeStruct((outer.dim,), jnp.zeros(()).dtype)
    try:
        jax.eval_shape(second_derivatives(outer), point)
        answer = True
    except (TypeError, ValueError, NotImplementedError):
        answer = False
    _asked.append((weakref.ref(outer), answer))
    return answer


def find_modes(target: AbstractTarget, starts: Points, repeats: int | None = None) -> Modes:
    """The modes that climbs from some starts end at; none, where no climb ends at a maximum.

    Args:
        target: differentiable twice.
        starts: where to climb from, in this order.
        repeats: so many climbs in a row that find nothing new are the last; by default all climb.
    """
    target.require_gradient("climbing")
    found: list[tuple[np.ndarray, np.ndarray, float, bool]] = []
    gradients = known = 0

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal gradients
        gradients += 1
        value, gradient = _value_and_gradient(target, on_device(x))
        if not np.isfinite(value) or not np.all(np.isfinite(gradient)):
            return np.inf, np.zeros_like(x)
        return -float(value), -np.asarray(gradient, np.float64)

    def climb(start: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, float, bool]:
        """Where it ends, Laplace's factor there, −log p, and whether it is a top."""
        end, axes, top = start, unit, False
        for _ in range(_MOST_CLIMBS):
            result = minimize(
                lambda y, end=end, axes=axes: _along(axes, *negative(end + axes @ y)),
                np.zeros_like(end),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": _MOST_STEPS},
            )
            end = end + axes @ result.x
            if not np.isfinite(result.fun) or not np.all(np.isfinite(end)):
                return end, None, np.inf, False
            if any(_distance(end, mode, factor) < NEAR for mode, factor, *_ in found):
                return end, None, result.fun, False
            factor = _laplace(np.asarray(_hessian(target, on_device(end)), np.float64))
            # Half the square of Newton's step: how much higher a Gaussian's top would be.
            if factor is None:
                break
            top = bool(np.sum((factor.T @ negative(end)[1]) ** 2) < 2.0 * ARRIVED)
            if top:
                break
            axes = factor
        return end, factor, result.fun, top

    places = np.asarray(starts, np.float64)
    unit = np.diag(_units(places))
    for start in places:
        # Where the first climbs all lead away, as from a hierarchical model's, the others do too.
        if known == repeats or (repeats is not None and not found and known > repeats // 3):
            break
        known += 1
        if not np.isfinite(negative(start)[0]):
            continue
        end, factor, height, top = climb(start)
        if factor is not None:
            log_volume = np.sum(np.log(np.diag(factor))) + 0.5 * len(end) * np.log(2 * np.pi)
            found.append((end, factor, log_volume - height, top))
            known = 0
    found.sort(key=lambda mode: -mode[2])
    kept = [mode for mode in found if mode[2] > found[0][2] + NEGLIGIBLE]
    dim = target.dim
    return Modes(
        np.array([mode[0] for mode in kept]).reshape(-1, dim),
        np.array([mode[1] for mode in kept]).reshape(-1, dim, dim),
        np.array([mode[2] for mode in kept]),
        gradients,
        sum(mode[3] for mode in kept),
    )


def balance(
    target: AbstractTarget,
    key: PRNGKeyArray,
    modes: Modes,
    points: Points,
    values: Values,
    sweeps: int = 20,
) -> tuple[Points, Values, float]:
    """Exact independence moves of a cloud by Laplace's mixture: modes come to their own weights.

    With proposals x' ~ r = Σ_k w_k N(m_k, C_k), accepted with min{1, p(x') r(x) / (p(x) r(x'))}.

    Returns:
        The cloud, log p there, and the share of proposals that the last sweep accepted.
    """
    masses = np.exp(modes.log_masses - modes.log_masses[0])
    # A mode that Laplace thinks light may be heavy: each is proposed often enough to show it.
    weights = 0.5 * masses / np.sum(masses) + 0.5 / len(masses)
    factors = (1.0 + _WIDENED / np.sqrt(target.dim)) * modes.factors
    means = on_device(modes.positions)
    shares, widened = on_device(weights), on_device(factors)
    points, values, accepted = _balance(
        target, key, shares, means, widened, points, values, jnp.array(sweeps)
    )
    return points, values, float(accepted)


@compiled
def _balance(
    target: AbstractTarget,
    key: PRNGKeyArray,
    weights: Float[Array, " modes"],
    means: Float[Array, "modes dim"],
    factors: Float[Array, "modes dim dim"],
    points: Points,
    values: Values,
    sweeps: Int[Array, ""],
) -> tuple[Points, Values, Scalar]:
    log_volumes = jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)), axis=1)

    def log_r(points: Points) -> Values:
        def each(mean: Array, factor: Array) -> Array:
            noise = jax.scipy.linalg.solve_triangular(factor, (points - mean).T, lower=True)
            return -0.5 * jnp.sum(noise**2, axis=0)

        parts = jax.vmap(each)(means, factors) - log_volumes[:, None]
        return jax.nn.logsumexp(parts + jnp.log(weights)[:, None], axis=0)

    def sweep(
        i: Array, carry: tuple[Array, Array, Array, Array]
    ) -> tuple[Array, Array, Array, Array]:
        points, values, proposed, _ = carry
        keys = jax.random.split(jax.random.fold_in(key, i), 3)
        which = jax.random.categorical(keys[0], jnp.log(weights), shape=(len(points),))
        noise = jax.random.normal(keys[1], points.shape)
        # A matrix for each mode and not for each point, which in 500 dimensions would be 8 GB.
        each = means[:, None] + jnp.einsum("kij,nj->kni", factors, noise)
        new = jnp.take_along_axis(each, which[None, :, None], axis=0)[0]
        new_values, new_proposed = target.log_densities(new), log_r(new)
        threshold = jnp.log1p(-jax.random.uniform(keys[2], (len(points),)))
        moves = taken(threshold, log_ratio(new_values, values, proposed - new_proposed))
        return (
            jnp.where(moves[:, None], new, points),
            jnp.where(moves, new_values, values),
            jnp.where(moves, new_proposed, proposed),
            jnp.mean(moves, dtype=points.dtype),
        )

    carry = (points, values, log_r(points), jnp.zeros((), points.dtype))
    points, values, _, accepted = jax.lax.fori_loop(0, sweeps, sweep, carry)
    return points, values, accepted


def _along(axes: np.ndarray, value: float, gradient: np.ndarray) -> tuple[float, np.ndarray]:
    """A value and its gradient, in coordinates along some axes."""
    return value, axes.T @ gradient


def _units(starts: np.ndarray) -> np.ndarray:
    """How far apart the starts are in each coordinate: far out in tails of a power law a gradient
    is next to nothing by any other measure, and a climb would end where it began."""
    apart = np.quantile(starts, 0.75, axis=0) - np.quantile(starts, 0.25, axis=0)
    return np.where(np.isfinite(apart) & (apart > 0.0), apart, 1.0)


def _laplace(hessian: np.ndarray) -> np.ndarray | None:
    """A triangular factor of (−H)⁻¹; None unless −H is finite and positive definite."""
    if not np.all(np.isfinite(hessian)):
        return None
    scale = np.sqrt(np.maximum(-np.diag(hessian), 0.0))
    if not np.all(scale > 0.0):
        return None
    # In units in which its diagonal is 1, single precision leaves a few parts in a million.
    values, axes = np.linalg.eigh(-hessian / np.outer(scale, scale))
    if values[0] < -1e-3:
        return None
    covariance = (axes / np.maximum(values, 1e-6)) @ axes.T
    try:
        return np.linalg.cholesky(covariance) / scale[:, None]
    except np.linalg.LinAlgError:
        return None


def _distance(point: np.ndarray, mode: np.ndarray, factor: np.ndarray) -> float:
    return float(np.linalg.norm(np.linalg.solve(factor, point - mode)) / np.sqrt(len(mode)))


@compiled
def _value_and_gradient(target: AbstractTarget, x: Point) -> tuple[Scalar, Point]:
    return jax.value_and_grad(target.log_density)(x)


@compiled
def _hessian(target: AbstractTarget, x: Point) -> Float[Array, "dim dim"]:
    return second_derivatives(target)(x)


def second_derivatives(target: AbstractTarget) -> Callable[[Point], Float[Array, "dim dim"]]:
    """The Hessian of log p."""
    # Backwards twice: functions that bring their own gradient often have none forwards.
    return jax.jacrev(jax.grad(target.log_density))
