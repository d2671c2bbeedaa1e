"""The parts of the kernels: a small network, the bijections that a flow is made of, and the affine
one, `Whitening`, to the coordinates that all kernels live in.

Within a flow batches come last, (features, n), for speed on CPUs; see `spline`.
"""

import contextlib
import contextvars
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from salmc.kernels.spline import Grid, RawParameters, Values
from salmc.programs import on_device
from salmc.target import Points, Scalar

Batch = Float[Array, "dim n"]
LogScales = Float[Array, " n"]
SplineRule = Callable[[Values, RawParameters, Grid], tuple[Values, Values]]
"""`spline` or `spline_inverse`."""

_SMALLEST_SQUARED_RADIUS = 1e-12
"""Nearer than this the direction is not defined; the map is the identity there to first order."""


_NO_DIGITS = 1e-3
"""Below it the series of `_log_lightening` is cut off after three terms, an error of 1e-13."""

_NARROWEST = 1e-10
"""Variances below this share of the largest are raised to it: a flat cloud still has an inverse."""

_SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Of a guess at the covariance, that are tried."""


class Network(eqx.Module):
    """A fully connected network; inputs (features, n) ↦ outputs (features, n).

    Weights may have a leading axis, over which `jax.lax.scan` goes.
    """

    weights: tuple[Float[Array, "..."], ...]
    biases: tuple[Float[Array, "..."], ...]
    activation: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, inputs: Float[Array, "inputs n"]) -> Float[Array, "outputs n"]:
        *hidden, (last_weight, last_bias) = zip(self.weights, self.biases, strict=True)
        for weight, bias in hidden:
            inputs = self.activation(weight @ inputs + bias)
        return last_weight @ inputs + last_bias


def network(
    generator: np.random.Generator,
    sizes: Sequence[int],
    activation: Callable[[Array], Array],
    *,
    last_gain: float,
    bias_scale: float = 0.0,
    stack: tuple[int, ...] = (),
) -> Network:
    """A network with random weights.

    Args:
        generator: of NumPy on purpose: drawn one by one with JAX, the weights of a flow take
            seconds, as each shape compiles a program of its own.
        sizes: of the layers, input and output included.
        activation: after each layer but the last.
        last_gain: of the last layer; 0 for a network that starts as zero.
        bias_scale: standard deviation of the biases of the hidden layers.
        stack: leading axes of the weights.
    """
    weights, biases = [], []
    for i, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        is_last = i == len(sizes) - 2
        gain = last_gain if is_last else np.sqrt(2.0)
        claim_weights(*stack, outputs, inputs)
        weight = generator.standard_normal((*stack, outputs, inputs)) * gain / np.sqrt(inputs or 1)
        bias = generator.standard_normal((*stack, outputs, 1)) * (0.0 if is_last else bias_scale)
        weights.append(on_device(weight))
        biases.append(on_device(bias))
    return Network(tuple(weights), tuple(biases), activation)


_LEFT: contextvars.ContextVar[list[int] | None] = contextvars.ContextVar("left", default=None)
"""Weights that may still be made, where there is a limit."""


@contextlib.contextmanager
def at_most_weights(count: int) -> Iterator[None]:
    """Within this block kernels of more weights are refused before they take memory: a file may
    describe any."""
    token = _LEFT.set([count])
    try:
        yield
    finally:
        _LEFT.reset(token)


def claim_weights(*shape: int) -> None:
    """Say what is about to be made.

    Raises:
        ValueError: if that is more than `at_most_weights` allows.
    """
    left = _LEFT.get()
    if left is None:
        return
    left[0] -= math.prod(shape)
    if left[0] < 0:
        raise ValueError("its description asks for more weights than there are")


def leaky(values: Array) -> Array:
    """The rectifier of all networks over images."""
    return jax.nn.leaky_relu(values, 0.2)


def numpy_generator(key: PRNGKeyArray) -> np.random.Generator:
    """A NumPy generator seeded by a JAX key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


def couple(
    conditioner: Network, points: Batch, state: Batch | None, grid: Grid, rule: SplineRule
) -> tuple[Batch, LogScales]:
    """A coupling: the second half of the coordinates goes through splines.

        (a, b) ↦ (a, spline(b; network(a, x)))

    The Jacobian is triangular, so that log |det| is the sum of the log slopes. A single coordinate
    is all second half, and its spline depends on x at most.
    """
    half = len(points) // 2
    kept, moved = points[:half], points[half:]
    raw = conditioner(_beside(kept, state)).reshape(len(moved), -1, points.shape[1])
    moved, log_slopes = rule(moved, raw, grid)
    return jnp.concatenate([kept, moved]), jnp.sum(log_slopes, axis=0)


def stretch_radius(
    conditioner: Network, points: Batch, state: Batch | None, grid: Grid, rule: SplineRule
) -> tuple[Batch, LogScales]:
    """A radial layer: the radius goes through a spline that depends on the direction.

        r e ↦ ρ(r; e) e,   log |det| = log ρ'(r) + (d − 1) log(ρ / r)

    Directions stay as they are. Shells, rings, stars and elliptical tails, which are hard for
    couplings, are simple here. At the origin the spline has slope 1 whatever the direction, which
    makes the map differentiable there.
    """
    dim = len(points)
    squared = jnp.sum(points * points, axis=0)
    radius = jnp.sqrt(jnp.maximum(squared, _SMALLEST_SQUARED_RADIUS))
    raw = conditioner(_beside(points / radius, state))[None]
    (new_radius,), (log_slope,) = rule(radius[None], raw, grid)
    ratio = new_radius / radius
    return points * ratio, log_slope + (dim - 1) * jnp.log(ratio)


def lighten(points: Batch, heaviness: Float[Array, " tails"]) -> tuple[Batch, LogScales]:
    """Tails by powers become Gaussian ones: each coordinate's, then those of the radius.

        z ↦ z √(log(1 + κ z²) / (κ z²)),   so that  exp(−u²/2) = (1 + κ z²)^{−1/(2κ)}

    The last line is the kernel of Student's t with 1/κ degrees of freedom; κ → 0 is the identity.
    With the radius in the place of z it is the multivariate one, whose coordinates are heavy
    together and not one by one.

    Args:
        points: x.
        heaviness: κ of each coordinate and, beyond one dimension, of the radius.
    """
    dim = len(points)
    scaled = heaviness[:dim, None] * points * points
    log_ratio = _log_lightening(scaled)
    points, total = points * jnp.exp(log_ratio), -jnp.sum(log_ratio + jnp.log1p(scaled), axis=0)
    if dim > 1:
        scaled = heaviness[dim] * jnp.sum(points * points, axis=0)
        log_ratio = _log_lightening(scaled)
        points = points * jnp.exp(log_ratio)
        total = total + (dim - 2) * log_ratio - jnp.log1p(scaled)
    return points, total


def make_heavy(points: Batch, heaviness: Float[Array, " tails"]) -> tuple[Batch, LogScales]:
    """The inverse of `lighten`, u ↦ u √((exp(κ u²) − 1) / (κ u²)), and its log |det|."""
    dim, total = len(points), jnp.zeros(points.shape[1], points.dtype)
    if dim > 1:
        scaled = heaviness[dim] * jnp.sum(points * points, axis=0)
        log_ratio = _log_lightening(jnp.expm1(scaled))
        points, total = points * jnp.exp(-log_ratio), scaled - (dim - 2) * log_ratio
    scaled = heaviness[:dim, None] * points * points
    log_ratio = _log_lightening(jnp.expm1(scaled))
    return points * jnp.exp(-log_ratio), total + jnp.sum(log_ratio + scaled, axis=0)


def _log_lightening(t: Float[Array, "..."]) -> Float[Array, "..."]:
    """½ log(log(1 + t) / t), by its series where the quotient has no digits."""
    usable = jnp.maximum(t, _NO_DIGITS)
    exact = 0.5 * jnp.log(jnp.log1p(usable) / usable)
    series = t * (-1 / 4 + t * (5 / 48 - t / 16))
    return jnp.where(t < _NO_DIGITS, series, exact)


def _beside(features: Float[Array, "features n"], state: Batch | None) -> Float[Array, "more n"]:
    return features if state is None else jnp.concatenate([features, state])


class Whitening(eqx.Module):
    """Whitened coordinates u = W (x − m), in which the pool has mean 0 and covariance I.

    Critic and kernel see u alone, so that one set of defaults serves targets of any location, scale
    and correlation. The directions are principal axes, the widest first.
    """

    mean: Float[Array, " dim"]
    forward_matrix: Float[Array, "dim dim"]
    inverse_matrix: Float[Array, "dim dim"]

    @classmethod
    def fit(cls, points: Points, guess: np.ndarray | None = None) -> "Whitening":
        """From the mean and covariance of points; in double precision, whatever theirs is.

        Args:
            points: a cloud.
            guess: a covariance from elsewhere, such as Laplace's. In many dimensions that of the
                points errs by √(dim / n); as much of the guess is mixed in as makes one half of
                the points most likely, given the other half.
        """
        values = np.asarray(points, dtype=np.float64)
        covariance = np.cov(values.T).reshape(values.shape[1], -1)
        if guess is not None:
            share = _best_share(values, guess)
            covariance = (1.0 - share) * covariance + share * guess
        variances, axes = np.linalg.eigh(covariance)
        # A cloud of equal points has no width at all: any unit will do.
        widest = variances[-1] if variances[-1] > 0.0 else 1.0 / _NARROWEST
        variances = np.maximum(variances, _NARROWEST * widest)[::-1]
        axes = axes[:, ::-1]
        return cls(
            on_device(values.mean(axis=0)),
            on_device(axes / np.sqrt(variances)),
            on_device((axes * np.sqrt(variances)).T),
        )

    @classmethod
    def identity(cls, dim: int) -> "Whitening":
        """Coordinates as they are."""
        return cls(jnp.zeros(dim), jnp.eye(dim), jnp.eye(dim))

    def whiten(self, x: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """x ↦ u."""
        return (x - self.mean) @ self.forward_matrix

    def colour(self, u: Float[Array, "*n dim"]) -> Float[Array, "*n dim"]:
        """u ↦ x."""
        return self.mean + u @ self.inverse_matrix

    @property
    def log_determinant(self) -> Scalar:
        """log |det ∂u/∂x|: log q(x'|x) = log q(u'|u) + this."""
        return jnp.linalg.slogdet(self.forward_matrix)[1]


def _best_share(values: np.ndarray, guess: np.ndarray) -> float:
    """The share of a guess at which a Gaussian of every other point likes the others best."""
    known, held = values[::2], values[1::2]
    centred, covariance = held - np.mean(known, axis=0), np.cov(known.T)
    found = []
    for share in _SHARES:
        try:
            factor = np.linalg.cholesky((1.0 - share) * covariance + share * guess)
        except np.linalg.LinAlgError:
            found.append(-np.inf)
            continue
        squares = np.sum(np.linalg.solve(factor, centred.T) ** 2) / len(held)
        found.append(-0.5 * squares - np.sum(np.log(np.diag(factor))))
    return _SHARES[int(np.argmax(found))]
