"""Is the density itself sound? Noise, numbers that are not numbers, and digits that are lost.

The same draws are evaluated twice, places right beside them once, and both in double precision
where the process computes in single. A density that answers differently each time, is NaN where
double precision finds as much mass as anywhere, or is off by as much as decides a Metropolis step,
has other draws than the user thinks, and no test that trusts the density can tell.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from salmc.diagnostics.point_sets import Cloud, Numbers
from salmc.diagnostics.trial.frame import Frame
from salmc.diagnostics.trial.host import LITTLE, HostDensity

_POINTS, _FEW = 256, 16
"""Draws that are looked at; and that a density which takes long is asked about in both precisions:
sums over many data are what loses digits."""

_LEAST_NOISE = 1e-9
_BETWEEN = 3.29
"""The quantiles of 5 and 95 % of N(0, 1) lie so far apart."""


class Soundness(NamedTuple):
    """Of the density at some draws and right beside them."""

    noise: float
    """Standard deviation of what two evaluations of one point differ by."""
    nan_share: float
    """Of places right beside draws."""
    zero_share: float
    """The same, of −inf."""
    infinite_share: float
    """The same, of +inf."""
    single_error: float
    """Standard deviation of single against double precision at draws; NaN where not compared."""
    lost_share: float
    """Of places beside draws: NaN or zero here, and likely in double precision."""
    resolution: float
    """Numbers that single precision has within the width of the coordinate it has fewest for."""
    mismatch: float
    """Spread of log p against the values that came with the draws, whatever a few of them do, as
    beside a bound where digits are lost; NaN without any."""


def soundness(
    density: HostDensity, points: Cloud, stored: Numbers, frame: Frame, seed: int = 0
) -> Soundness:
    """Look at the density at some draws, and beside them.

    Args:
        density: in the same coordinates as the points.
        points: (n, dim), draws.
        stored: (n,), log p as it came with them; NaN where it did not.
        frame: of the sample.
        seed: of the places beside draws.
    """
    generator = np.random.default_rng(seed)
    count = min(density.share_of(_POINTS, 32), len(points))
    chosen = points[:count]
    steps = generator.normal(size=chosen.shape) * 1.7 / np.sqrt(frame.dim)
    beside = chosen + frame.directions(steps)
    first = density.raw(chosen)
    second = density.raw(chosen)
    near = density.raw(beside)
    noise = _spread(first - second) / np.sqrt(2.0)
    return Soundness(
        noise=noise if noise > _LEAST_NOISE else 0.0,
        nan_share=float(np.mean(np.isnan(near))),
        zero_share=float(np.mean(near == -np.inf)),
        infinite_share=float(np.mean(near == np.inf)),
        **_in_double(density, chosen, first, beside, near),
        resolution=_resolution(points, frame),
        mismatch=_usual_spread(first - stored[:count]),
    )


def _spread(differences: Numbers) -> float:
    known = differences[np.isfinite(differences)]
    return float(np.std(known)) if len(known) > 1 else float("nan")


def _usual_spread(differences: Numbers) -> float:
    """The standard deviation of a normal with the same quantiles of 5 and 95 %."""
    known = differences[np.isfinite(differences)]
    if len(known) < 2:
        return float("nan")
    low, high = np.quantile(known, [0.05, 0.95])
    return float(high - low) / _BETWEEN


def _in_double(
    density: HostDensity, chosen: Cloud, first: Numbers, beside: Cloud, near: Numbers
) -> dict[str, float]:
    untold = {"single_error": float("nan"), "lost_share": 0.0}
    if density.effort < LITTLE:
        if not density.target.differentiable:
            return untold  # a black box: what it computes in is its own affair
        chosen, first, beside, near = (one[:_FEW] for one in (chosen, first, beside, near))
    values = density.in_double(np.concatenate([chosen, beside]))
    if values is None:
        return untold
    exact, exact_near = values[: len(chosen)], values[len(chosen) :]
    finite = exact[np.isfinite(exact)]
    if len(finite) < 4:
        return untold
    likely = exact_near > np.quantile(finite, 0.05)
    lost = likely & ~np.isfinite(near) & np.isfinite(exact_near)
    return {"single_error": _spread(first - exact), "lost_share": float(np.mean(lost))}


def _resolution(points: Cloud, frame: Frame) -> float:
    dtype = jnp.zeros(()).dtype
    largest = np.quantile(np.abs(points), 0.9, axis=0).astype(dtype)
    return float(np.min(frame.scale / np.spacing(largest)))
