"""Monotone rational-quadratic splines with learned knots, and their inverse, with log slopes.

K bins cut [low, high] into widths and heights that sum to high − low; each inner knot has a slope.
In a bin with lower left corner (x₀, y₀), width w, height h, mean slope s = h / w and slopes δ₀, δ₁
at its ends, with t = (x − x₀) / w,

    y     = y₀ + h [s t² + δ₀ t (1 − t)] / [s + (δ₀ + δ₁ − 2 s) t (1 − t)]
    dy/dx = s² [δ₁ t² + 2 s t (1 − t) + δ₀ (1 − t)²] / [s + (δ₀ + δ₁ − 2 s) t (1 − t)]²

and the inverse is the root in [0, 1] of a t² + b t + c = 0, with e = y − y₀ and

    a = h (s − δ₀) + e (δ₀ + δ₁ − 2 s),   b = h δ₀ − e (δ₀ + δ₁ − 2 s),   c = −s e.

Outside [low, high] the map is the identity, and the slope is 1 at both ends. Where all raw
parameters are zero, the knots stand on a `grid` that the caller gives, in x and in y alike: dense
where most points are, and reaching far into the tails with few bins.

Layout: m splines at n points each are (m, n), their raw parameters (m, 3K − 1, n). The batch comes
last, so that compiled code for CPUs runs over contiguous points.

Reference: Durkan, Bekasov, Murray and Papamakarios, "Neural spline flows", NeurIPS 2019.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

MIN_SHARE = 1e-3
"""The least share of the interval that a bin has, in width and in height."""

MIN_SLOPE = 1e-3
"""The least slope at a knot."""

_SLOPE_OFFSET = float(np.log(np.expm1(1.0 - MIN_SLOPE)))
"""Makes the slope of a raw parameter of zero exactly 1: all zeros are the identity."""

_CROWDING = 3.0

Values = Float[Array, "splines n"]
RawParameters = Float[Array, "splines parameters n"]
Grid = Float[np.ndarray, " knots"]


class _Bins(NamedTuple):
    """The bin that each value lies in."""

    inside: Bool[Array, "splines n"]
    value: Values
    """Moved into the interval where it is outside, so that no branch meets a NaN."""
    left: Values
    width: Values
    bottom: Values
    height: Values
    slope_left: Values
    slope_right: Values


def wide_grid(bins: int, reach: float) -> Grid:
    """Knots on [−reach, reach], dense around 0: half of them lie within a fifth of it."""
    steps = np.linspace(-1.0, 1.0, bins + 1)
    return reach * np.sinh(_CROWDING * steps) / np.sinh(_CROWDING)


def radial_grid(bins: int, centre: float, reach: float) -> Grid:
    """Knots on [0, centre + reach]: even up to three beyond the centre, a sixth of them further."""
    if reach <= 3.0:
        return np.linspace(0.0, centre + reach, bins + 1)
    outer = max(bins // 6, 1)
    near = np.linspace(0.0, centre + 3.0, bins - outer + 1)
    return np.concatenate([near, np.linspace(centre + 3.0, centre + reach, outer + 1)[1:]])


def parameter_count(bins: int) -> int:
    """Raw parameters of a spline of so many bins: widths, heights, and slopes at inner knots."""
    return 3 * bins - 1


def spline(x: Values, raw: RawParameters, grid: Grid) -> tuple[Values, Values]:
    """y and log dy/dx.

    Args:
        x: points, of shape (splines, n).
        raw: any real numbers, of shape (splines, 3K − 1, n); zeros are the identity.
        grid: K + 1 increasing numbers; the spline maps the interval between the ends to itself.
    """
    bins = _find_bins(x, raw, grid, edge_axis=0)
    mean_slope = bins.height / bins.width
    t = jnp.clip((bins.value - bins.left) / bins.width, 0.0, 1.0)
    numerator = mean_slope * t * t + bins.slope_left * t * (1 - t)
    y = bins.bottom + bins.height * numerator / _denominator(bins, mean_slope, t)
    log_slope = _log_slope(bins, mean_slope, t)
    return jnp.where(bins.inside, y, x), jnp.where(bins.inside, log_slope, 0.0)


def spline_inverse(
    y: Values, raw: RawParameters, grid: Grid, *, written_out: bool = False
) -> tuple[Values, Values]:
    """x and log dx/dy, for the same parameters as in `spline`.

    `written_out` takes half the time and several times as long to compile: for large batches,
    outside of compiled loops, without gradients.
    """
    bins = (_walk_bins if written_out else _find_bins)(y, raw, grid, edge_axis=1)
    mean_slope = bins.height / bins.width
    above = bins.value - bins.bottom
    bend = above * (bins.slope_left + bins.slope_right - 2 * mean_slope)
    a = bins.height * (mean_slope - bins.slope_left) + bend
    b = bins.height * bins.slope_left - bend
    c = -mean_slope * above
    # The discriminant is positive but for rounding; a root of exactly 0 would have no gradient.
    root = jnp.sqrt(jnp.maximum(b * b - 4 * a * c, 1e-30))
    t = jnp.clip(2 * c / (-b - root), 0.0, 1.0)
    log_slope = -_log_slope(bins, mean_slope, t)
    x = bins.left + bins.width * t
    return jnp.where(bins.inside, x, y), jnp.where(bins.inside, log_slope, 0.0)


def _find_bins(value: Values, raw: RawParameters, grid: Grid, edge_axis: int) -> _Bins:
    """Look values up along the edges in x (`edge_axis` 0) or in y (1)."""
    splines, parameters, n = raw.shape
    count = (parameters + 1) // 3
    low, high = float(grid[0]), float(grid[-1])
    logits = raw[:, : 2 * count].reshape(splines, 2, count, n) + _offsets(grid, raw)[:, None]
    share = jax.nn.softmax(logits, axis=2) * (1 - MIN_SHARE * count) + MIN_SHARE
    sizes = (high - low) * share
    # A running sum written out: `jnp.cumsum` is slow here, to compile as well.
    steps = [jnp.full((splines, 2, n), low, raw.dtype)]
    for i in range(count):
        steps.append(steps[-1] + sizes[:, :, i])
    edges = jnp.stack(steps, axis=2)
    # Slopes are looked up raw, as two of them are needed and no more.
    ends = jnp.zeros((splines, 1, n), raw.dtype)
    table = jnp.concatenate([edges.reshape(splines, -1, n), ends, raw[:, 2 * count :], ends], 1)

    inside = (value > low) & (value < high)
    value = jnp.clip(value, low, high)
    below = jnp.sum(value[:, None] >= edges[:, edge_axis], axis=1, keepdims=True)
    at = jnp.clip(below - 1, 0, count - 1)
    # One gather of all six numbers; masks over the bins take six times as long.
    x_row, y_row, slope_row = 0, count + 1, 2 * count + 2
    rows = np.array([x_row, x_row + 1, y_row, y_row + 1, slope_row, slope_row + 1])
    found = jnp.take_along_axis(table, at + rows[:, None], axis=1)
    left, right, bottom, top = (found[:, i] for i in range(4))
    slope_left, slope_right = (_slope(found[:, i]) for i in (4, 5))
    return _Bins(inside, value, left, right - left, bottom, top - bottom, slope_left, slope_right)


def _walk_bins(value: Values, raw: RawParameters, grid: Grid, edge_axis: int) -> _Bins:
    """`_find_bins` by arithmetic on whole rows alone: one loop over the points, on all cores."""
    count = (raw.shape[1] + 1) // 3
    low, high = float(grid[0]), float(grid[-1])
    offsets = _offsets(grid, raw)
    sizes = []
    for first in (0, count):
        logits = [raw[:, first + i] + offsets[i] for i in range(count)]
        largest = functools.reduce(jnp.maximum, logits)
        powers = [jnp.exp(logit - largest) for logit in logits]
        scale = (high - low) * (1 - MIN_SHARE * count) / functools.reduce(jnp.add, powers)
        sizes.append([power * scale + (high - low) * MIN_SHARE for power in powers])
    widths, heights = sizes
    ends = jnp.zeros_like(value)
    slopes = [ends, *(raw[:, 2 * count + i] for i in range(count - 1)), ends]

    inside = (value > low) & (value < high)
    value = jnp.clip(value, low, high)
    left = bottom = jnp.full_like(value, low)
    found = [left, widths[0], bottom, heights[0], slopes[0], slopes[1]]
    for i in range(1, count):
        left, bottom = left + widths[i - 1], bottom + heights[i - 1]
        beyond = value >= (left, bottom)[edge_axis]
        bin_here = (left, widths[i], bottom, heights[i], slopes[i], slopes[i + 1])
        found = [jnp.where(beyond, new, old) for new, old in zip(bin_here, found, strict=True)]
    left, width, bottom, height, slope_left, slope_right = found
    slopes_here = _slope(slope_left), _slope(slope_right)
    return _Bins(inside, value, left, width, bottom, height, *slopes_here)


def _offsets(grid: Grid, raw: RawParameters) -> Float[np.ndarray, " bins"]:
    """What makes the bins of raw parameters of zero those of the grid."""
    count = len(grid) - 1
    first = np.diff(grid) / (grid[-1] - grid[0])
    return np.log((first - MIN_SHARE) / (1 - MIN_SHARE * count)).astype(raw.dtype)


def _slope(raw: Values) -> Values:
    """Of a knot; 1 where the parameter is zero."""
    return jax.nn.softplus(raw + _SLOPE_OFFSET) + MIN_SLOPE


def _denominator(bins: _Bins, mean_slope: Values, t: Values) -> Values:
    return mean_slope + (bins.slope_left + bins.slope_right - 2 * mean_slope) * t * (1 - t)


def _log_slope(bins: _Bins, mean_slope: Values, t: Values) -> Values:
    """log dy/dx at t."""
    return jnp.log(
        mean_slope**2
        * (bins.slope_right * t * t + 2 * mean_slope * t * (1 - t) + bins.slope_left * (1 - t) ** 2)
        / _denominator(bins, mean_slope, t) ** 2
    )
